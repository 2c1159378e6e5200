// How system calls are dispatched: one row of syscalls.def each, one function each.
#pragma once

#include <cstdint>

#include "kernel/base/result.h"
#include "kernel/task/process.h"

namespace belljar::kernel {

struct SyscallArguments {
  std::uint64_t values[6];

  // Argument `index` as the type that the call has it in.
  template <typename T>
  T get(int index) const {
    return static_cast<T>(values[index]);
  }
};

// What a call returns: a value, or an errno (also kRestart and kRestartNoHandler).
using SyscallResult = SysResult<std::uint64_t>;
using SyscallFunction = SyscallResult (*)(const SyscallArguments& arguments);

// sys_NAME for every row; each is defined in one of the files of this folder.
#define SYSCALL(number, name, support, note, page) SyscallResult sys_##name(const SyscallArguments& arguments);
#define REFUSED(number, name, errno_value, note, page)
#include "kernel/syscalls/syscalls.def"
#undef SYSCALL
#undef REFUSED

}  // namespace belljar::kernel
