#include "cli/calibrate_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/fd.h"
#include "base/utf8.h"
#include "cli/execute.h"
#include "cli/options.h"
#include "cli/run_command.h"
#include "spec/checks.h"
#include "spec/errors.h"
#include "spec/limits.h"

namespace belljar {
namespace {

enum CalibrateOption : std::size_t { kProfile, kPercentile, kFactor, kSince, kForce, kWrite, kHtml, kJson, kHelp };
constexpr Option kOptions[] = {
    {"profile", "NAME", "the runs that belljar run --profile NAME recorded"},
    {"percentile", "PERCENT", "of what the runs used (default 99)"},
    {"factor", "NUMBER", "how many times that the limits are to be (default 3)"},
    {"since", "TIME", "only runs that began that long ago or later (default 30d)"},
    {"force", "", "also from fewer runs than the percentile needs"},
    {"write", "FILE", "write the limits as a policy file, for belljar run --policy FILE"},
    {"html", "FILE", "write a page with the distributions"},
    {"json", "", "print JSON"},
    {"help", "", "show this help"},
};

constexpr std::string_view kUsage =
    "usage: belljar calibrate --profile NAME [OPTIONS]\n\n"
    "Proposes limits from what the recorded runs of a profile used: a factor times a percentile of\n"
    "each. belljar run --limits auto:NAME takes them as they are then.\n\n";

std::optional<double> parse_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

Result<double> number_between(double least, double most, const GivenOption& given, std::string_view such_as) {
  const std::optional<double> number = parse_number(given.value);
  if (number && *number >= least && *number <= most) return *number;
  return fail(ErrorCode::bad_value, fmt::format("--{}: {} is not a number from {} to {}, such as {}",
                                                kOptions[given.option].name, quote(given.value), least, most, such_as));
}

Result<std::string> file_name(const GivenOption& given) {
  const std::string where = written_option(kOptions[given.option].name);
  TRY_VOID(check_path(given.value, where));
  return std::string(given.value);
}

Result<void> apply(const GivenOption& given, CalibrateRequest& request) {
  constexpr LimitRow kSinceRow = {"since", "since", LimitUnit::milliseconds, 2'592'000'000, 1, 3'153'600'000'000, "",
                                  "",      nullptr};
  switch (given.option) {
    case kProfile:
      TRY_VOID(check_profile_name(given.value, "--profile"));
      request.profile = given.value;
      break;
    case kPercentile:
      request.percentile_hundredths =
          static_cast<unsigned>(std::lround(100 * TRY(number_between(1, 99.99, given, "99"))));
      break;
    case kFactor:
      request.factor = TRY(number_between(1.1, 1000, given, "3"));
      break;
    case kSince:
      request.since_ms = TRY(parse_limit(kSinceRow, given.value, "--since"));
      break;
    case kWrite:
      request.policy_file = TRY(file_name(given));
      break;
    case kHtml:
      request.html_file = TRY(file_name(given));
      break;
    case kForce:
      request.force = true;
      break;
    case kJson:
      request.json = true;
      break;
    default:
      break;
  }
  return {};
}

Result<CalibrateRequest> make_request(const ParsedOptions& parsed) {
  if (parsed.error) return std::unexpected(*parsed.error);
  if (!parsed.operands.empty()) {
    return fail(ErrorCode::usage, fmt::format("calibrate takes options only, not {}; a profile is named with --profile",
                                              quote(parsed.operands[0])));
  }
  CalibrateRequest request;
  for (const GivenOption& given : parsed.given) TRY_VOID(apply(given, request));
  if (request.profile.empty()) return fail(ErrorCode::usage, "calibrate needs --profile NAME");
  return request;
}

}  // namespace

int calibrate_command(std::span<char* const> arguments) {
  const ParsedOptions parsed = parse_options(kOptions, arguments);
  if (is_given(parsed, kHelp)) {
    const std::string help = std::string(kUsage) + options_help(kOptions);
    return print(help);
  }
  const Result<CalibrateRequest> request = make_request(parsed);
  return request ? execute_calibrate(*request) : report_error(request.error(), is_given(parsed, kJson));
}

}  // namespace belljar
