// How much memory there is and is used, as sysinfo(2) and /proc/meminfo tell it.
#pragma once

#include <cstdint>

namespace belljar::kernel {

struct MemoryUse {
  std::uint64_t total_bytes = 0;  // the memory limit
  std::uint64_t free_bytes = 0;
  std::uint64_t shared_bytes = 0;  // files in memory
};

MemoryUse memory_use();

class Process;
// The most memory that the process had, as ru_maxrss of getrusage(2) tells it, but in bytes: no more than the limit.
std::uint64_t memory_peak_of(const Process& process);
// Its own or that of a child of its that it waited for. The tasks lock is held.
std::uint64_t memory_peak_with_children(const Process& process);

}  // namespace belljar::kernel
