#include "tiers/wasm/reports.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "spec/errors.h"

namespace belljar::wasm {

Result<Pipe> make_report_pipe() {
  auto pipe = make_pipe();
  if (pipe && ::fcntl(pipe->read.get(), F_SETFL, O_NONBLOCK) == 0) return std::move(*pipe);
  return fail(ErrorCode::no_resources, "can't make a pipe for the engine's report");
}

std::optional<Report> read_report_pipe(int fd) {
  std::array<char, kReportBytesMax + 1> bytes;
  const ssize_t count = ::read(fd, bytes.data(), bytes.size());
  if (count <= 0) return std::nullopt;
  return decode_report({bytes.data(), static_cast<std::size_t>(count)});
}

Error error_of(const std::string& path, const std::optional<Report>& report) {
  if (!report) return {ErrorCode::internal, fmt::format("{}: the engine ended without a report", path)};
  const auto about = [&](ErrorCode code) { return Error{code, fmt::format("{}: {}", path, report->message)}; };
  switch (report->ending) {
    case Ending::bad_module:
      return about(ErrorCode::bad_module);
    case Ending::wrong_wasi:
      return about(ErrorCode::wrong_wasi);
    case Ending::missing_import:
      return about(ErrorCode::missing_import);
    case Ending::no_addresses:
      return about(ErrorCode::no_resources);
    case Ending::unusable:
      return about(ErrorCode::internal);
    default:
      return {ErrorCode::internal, fmt::format("{}: the engine's report is not about what it was asked for", path)};
  }
}

}  // namespace belljar::wasm
