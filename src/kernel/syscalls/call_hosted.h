// For tests: calls a system call of the hosted kernel as a program would.
#pragma once

#include <type_traits>

#include "kernel/syscalls/syscalls.h"

namespace belljar::kernel {

template <typename T>
std::uint64_t as_argument(T value) {
  if constexpr (std::is_pointer_v<T> || std::is_null_pointer_v<T>) {
    return reinterpret_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::uint64_t>(value);
  }
}

// The value, or the errno negated: what the raw call leaves in the register.
template <typename... Arguments>
std::int64_t call(SyscallFunction function, Arguments... arguments) {
  const SyscallResult result = function(SyscallArguments{{as_argument(arguments)...}});
  return result ? static_cast<std::int64_t>(*result) : -value_of(result.error());
}

}  // namespace belljar::kernel
