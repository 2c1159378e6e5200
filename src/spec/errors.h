// The error codes (rows of errors.def), their names and exit statuses.
#pragma once

#include <string_view>

#include "base/result.h"

namespace belljar {

enum class ErrorCode : std::uint16_t {
#define ERROR(name, exit_status, text) name,
#include "spec/errors.def"
#undef ERROR
};

// The stable name, such as "bad_mount".
std::string_view error_name(ErrorCode code);

// The exit status of `belljar run` for this error.
int error_exit_status(ErrorCode code);

// The general sentence of the row.
std::string_view error_text(ErrorCode code);

}  // namespace belljar
