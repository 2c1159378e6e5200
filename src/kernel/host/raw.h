// One system call of the host, from the kernel's own text (the seccomp filter tells by that who asks).
#pragma once

#include <cstdint>
#include <type_traits>

namespace belljar::kernel::host {

template <typename T>
long as_argument(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<long>(value);
  } else {
    return static_cast<long>(value);
  }
}

template <typename A = long, typename B = long, typename C = long, typename D = long, typename E = long,
          typename F = long>
long raw(long number, A a = {}, B b = {}, C c = {}, D d = {}, E e = {}, F f = {}) {
  long result;
  register long r10 asm("r10") = as_argument(d);
  register long r8 asm("r8") = as_argument(e);
  register long r9 asm("r9") = as_argument(f);
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(as_argument(a)), "S"(as_argument(b)), "d"(as_argument(c)), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

}  // namespace belljar::kernel::host
