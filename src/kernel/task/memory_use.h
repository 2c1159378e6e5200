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

}  // namespace belljar::kernel
