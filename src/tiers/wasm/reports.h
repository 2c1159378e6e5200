// Reading what belljar-wasm says of its end.
#pragma once

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "wasm/report.h"

namespace belljar::wasm {

// Its read end does not block.
Result<Pipe> make_report_pipe();

// Call once, when every process of the sandbox is gone. Nothing where no report, or no whole one, came.
std::optional<Report> read_report_pipe(int fd);

// What is wrong with the module at `path`, or that the engine came to a bad end.
Error error_of(const std::string& path, const std::optional<Report>& report);

}  // namespace belljar::wasm
