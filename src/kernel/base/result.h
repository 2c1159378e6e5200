// What a system call answers: a value, or an errno.
#pragma once

#include <errno.h>

#include <cstdint>
#include <expected>
#include <utility>

namespace belljar::kernel {

enum class Errno : int {};

template <typename T>
using SysResult = std::expected<T, Errno>;

// return error(ENOENT);
inline std::unexpected<Errno> error(int errno_value) {
  return std::unexpected(Errno{errno_value});
}

constexpr int value_of(Errno code) {
  return static_cast<int>(code);
}

// Errors that never reach a program: how an interrupted call goes on (signal(7), "Interruption of system calls").
inline constexpr int kRestart = 512;  // again where the handler has SA_RESTART, or where no handler runs; else EINTR
inline constexpr int kRestartNoHandler = 514;  // again where no handler runs; else EINTR

}  // namespace belljar::kernel

#ifndef TRY  // base/result.h has them too, for what sees both
#define TRY(expression)                            \
  ({                                               \
    auto&& try_result_ = (expression);             \
    if (!try_result_) [[unlikely]]                 \
      return std::unexpected(try_result_.error()); \
    std::move(*try_result_);                       \
  })

#define TRY_VOID(expression)                       \
  do {                                             \
    auto&& try_result_ = (expression);             \
    if (!try_result_) [[unlikely]]                 \
      return std::unexpected(try_result_.error()); \
  } while (false)
#endif
