// Result<T>: a value or an Error. Errors travel by value; nothing in Belljar throws below store/.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

namespace belljar {

// The codes are rows of spec/errors.def; spec/errors.h defines the enumerators.
enum class ErrorCode : std::uint16_t;

// One refusal or failure. `message` is one line of plain text: what, where, and what would be right.
struct Error {
  ErrorCode code;
  std::string message;
};

template <typename T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(ErrorCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

// The errno of a failed system call (errno(3)).
struct Errno {
  int value;
};

template <typename T>
using SysResult = std::expected<T, Errno>;

// "No such file or directory" for ENOENT, and so on (strerrordesc_np(3)).
const char* errno_text(int errno_value);

}  // namespace belljar

// Evaluates to the value of a Result, or returns its error from the calling function.
// (A GNU statement expression: both g++ and clang++ take it.)
#define TRY(expression)                                       \
  ({                                                          \
    auto&& try_result_ = (expression);                        \
    if (!try_result_) [[unlikely]]                            \
      return std::unexpected(std::move(try_result_.error())); \
    std::move(*try_result_);                                  \
  })

// The same for a Result<void>.
#define TRY_VOID(expression)                                  \
  do {                                                        \
    auto&& try_result_ = (expression);                        \
    if (!try_result_) [[unlikely]]                            \
      return std::unexpected(std::move(try_result_.error())); \
  } while (false)
