// The end of the whole sandbox, where going on would be wrong.
#pragma once

#include <cstdint>

namespace belljar::kernel {

// Reports `why` to the broker, and ends every process. For what can't happen unless guest code damaged the kernel's
// memory, a process of it was killed from outside, or the kernel has a fault.
[[noreturn]] void stop_sandbox(const char* why);
[[noreturn]] void stop_sandbox_at_fault(int signal, std::uint64_t instruction, std::uint64_t address);

}  // namespace belljar::kernel
