// The host's vDSO, which reads clocks without a system call (vdso(7)). Guests see it too.
#pragma once

#include <cstdint>

namespace belljar::kernel::host {

// `address`: AT_SYSINFO_EHDR of the host's auxiliary vector; 0: there is none, and clocks are read by system calls.
void find_vdso(std::uint64_t address);

// Where the host has mapped it and its data: never unmapped.
struct VdsoRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t header = 0;
};
const VdsoRange& vdso_range();

}  // namespace belljar::kernel::host
