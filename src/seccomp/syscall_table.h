// The syscalls that Belljar knows by name (rows of syscalls_x86_64.def), and what their arguments are called.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace belljar {

struct Syscall {
  std::uint32_t number;
  std::string_view name;
  std::string_view arguments;  // "name:width ..." by position; empty: policies can't look at its arguments
};

struct SyscallArgument {
  std::uint8_t position;    // 0 to 5
  std::uint8_t width_bits;  // 16, 32 or 64: the bits that the kernel looks at
};

// One machine's syscalls. Another machine is another table with its own AUDIT_ARCH_* value (linux/audit.h).
struct SyscallTable {
  std::uint32_t audit_arch;
  std::span<const Syscall> syscalls;  // by ascending number
};

const SyscallTable& x86_64_syscalls();

// nullptr where the table has no such row.
const Syscall* find_syscall(const SyscallTable& table, std::string_view name);

// False where the syscall has no argument of that name.
bool find_argument(const Syscall& syscall, std::string_view name, SyscallArgument& argument);

}  // namespace belljar
