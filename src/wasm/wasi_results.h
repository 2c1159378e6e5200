// What calls of wasi_calls.h share: results of the host's calls as WASI has them.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <ctime>
#include <expected>

#include "wasm/wasi.h"

namespace belljar::wasm {

inline WasiErrno errno_of(long result) {
  return result < 0 ? wasi_errno(errno) : WasiErrno::success;
}

template <typename T>
WasiErrno stored(const Wasi& wasi, std::uint32_t address, const T& value) {
  return wasi.memory().store(address, value) ? WasiErrno::success : WasiErrno::fault;
}

inline std::uint64_t nanoseconds(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

inline timespec to_timespec(std::uint64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

FileStat to_file_stat(const struct stat& status);

// The two times of utimensat(2). Errors: inval, for a time that is given twice.
struct FileTimes {
  timespec times[2];
};
std::expected<FileTimes, WasiErrno> to_file_times(std::uint64_t access_ns, std::uint64_t modify_ns,
                                                  std::uint32_t flags);

// O_APPEND and so on. Nothing for a flag that WASI does not have.
std::expected<int, WasiErrno> to_host_flags(std::uint32_t fd_flags);

}  // namespace belljar::wasm

// Evaluates to the value, or returns the WasiErrno from the calling function.
#define WASI_TRY(expression)                \
  ({                                        \
    auto&& wasi_try_result_ = (expression); \
    if (!wasi_try_result_) [[unlikely]]     \
      return wasi_try_result_.error();      \
    std::move(*wasi_try_result_);           \
  })
