#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/utf8.h"
#include "cli/calibration_pages.h"
#include "cli/execute.h"
#include "cli/recorder.h"
#include "spec/errors.h"

namespace belljar {
namespace {

// Both kinds of file begin with it, and only what does is written over.
constexpr std::string_view kPolicyMark = "# Written by belljar calibrate";
constexpr std::string_view kHtmlMark = "<!DOCTYPE html>\n<!-- Written by belljar calibrate -->";

std::unexpected<Error> cannot_write(const std::string& path, int error) {
  return fail(ErrorCode::store_failed, fmt::format("{} can't be written: {}", one_line(path), errno_text(error)));
}

// In place of an earlier file of ours, at once as a whole.
Result<void> replace_file(const std::string& path, std::string_view text, std::string_view mark) {
  std::string head(mark.size(), '\0');
  const auto before = open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (before &&
      (::pread(before->get(), head.data(), head.size(), 0) != static_cast<ssize_t>(head.size()) || head != mark)) {
    return fail(ErrorCode::bad_value, fmt::format("{} is there already, and belljar calibrate did not write it; name "
                                                  "another file or remove it",
                                                  one_line(path)));
  }
  if (!before && before.error().value != ENOENT) return cannot_write(path, before.error().value);
  const std::string beside = fmt::format("{}.{}.new", path, ::getpid());
  const auto file = open_at(AT_FDCWD, beside.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644);
  if (!file) return cannot_write(path, file.error().value);
  const auto written = write_all(file->get(), text);
  if (written && ::rename(beside.c_str(), path.c_str()) == 0) return {};
  const int error = written ? errno : written.error().value;
  ::unlink(beside.c_str());
  return cannot_write(path, error);
}

Result<Calibration> calibrate_as_asked(const CalibrateRequest& request) {
  Store store = TRY(open_own_store());
  const auto runs = TRY(store.uses(request.profile, unix_ms() - static_cast<std::int64_t>(request.since_ms)));
  const CalibrationOptions options{request.percentile_hundredths, request.factor,
                                   request.force ? SmallSample::accept : SmallSample::refuse};
  Calibration calibration = calibrate(runs, options);
  TRY_VOID(check_enough(calibration, request.profile, fewer_runs_remedy(calibration)));
  return calibration;
}

Result<std::string> carry_out(const CalibrateRequest& request) {
  const Calibration calibration = TRY(calibrate_as_asked(request));
  const CalibrationTitle title{request.profile, request.since_ms, time_text(unix_ms(), "%Y-%m-%d")};
  if (!request.policy_file.empty()) {
    TRY_VOID(replace_file(request.policy_file, calibration_policy(calibration, title), kPolicyMark));
  }
  if (!request.html_file.empty()) {
    TRY_VOID(replace_file(request.html_file, calibration_html(calibration, title), kHtmlMark));
  }
  if (request.json) return calibration_to_json(calibration, request.profile) + "\n";
  return calibration_text(calibration, title);
}

}  // namespace

int execute_calibrate(const CalibrateRequest& request) {
  const Result<std::string> text = carry_out(request);
  if (!text) return report_error(text.error(), request.json);
  return print(*text);
}

}  // namespace belljar
