#include "cli/runs_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/utf8.h"
#include "cli/execute.h"
#include "cli/options.h"
#include "cli/run_command.h"
#include "spec/checks.h"
#include "spec/errors.h"
#include "spec/limits.h"
#include "spec/names.h"

namespace belljar {
namespace {

enum RunsOption : std::size_t { kProfile, kStatus, kSince, kCount, kJson, kHelp };
constexpr Option kRunsOptions[] = {
    {"profile", "NAME", "only runs of this profile"},
    {"status", "STATUS", "only runs that ended so: ok, error, timeout, memory ..."},
    {"since", "TIME", "only runs that began that long ago or later, such as 7d"},
    {"count", "NUMBER", "the latest ones only (default 50; with --json, all)"},
    {"json", "", "print each run as one line of JSON"},
    {"help", "", "show this help"},
};

constexpr std::string_view kRunsUsage =
    "usage: belljar runs [OPTIONS]\n\n"
    "Lists the runs that belljar run --profile NAME has recorded, newest first.\n\n";

enum ShowOption : std::size_t { kShowJson, kShowHelp };
constexpr Option kShowOptions[] = {{"json", "", "print JSON"}, {"help", "", "show this help"}};

constexpr std::string_view kShowUsage =
    "usage: belljar show RUN [--json]\n\n"
    "Shows what is recorded of a run. belljar runs lists their numbers.\n\n";

Result<void> set_status(std::string_view name, RunsRequest& request) {
  if (!find_status(name)) {
    std::vector<std::string_view> known;
#define STATUS(row, meaning) known.push_back(#row);
    BELLJAR_STATUSES(STATUS)
#undef STATUS
    return fail(ErrorCode::bad_value,
                fmt::format("--status: {} is not a status; {}", quote(name), name_hint(name, known)));
  }
  request.status = name;
  return {};
}

Result<RunsRequest> make_runs_request(const ParsedOptions& parsed) {
  constexpr LimitRow kSinceRow = {"since", "since", LimitUnit::milliseconds, 604'800'000, 1, 3'153'600'000'000, "",
                                  "",      nullptr};
  constexpr LimitRow kCountRow = {"count", "count", LimitUnit::count, 50, 1, 1'000'000'000, "", "", nullptr};
  if (parsed.error) return std::unexpected(*parsed.error);
  if (!parsed.operands.empty()) {
    return fail(ErrorCode::usage, fmt::format("runs takes options only, not {}; belljar show {} shows one run",
                                              quote(parsed.operands[0]), one_line(parsed.operands[0], 40)));
  }
  RunsRequest request;
  for (const GivenOption& given : parsed.given) {
    switch (given.option) {
      case kProfile:
        TRY_VOID(check_profile_name(given.value, "--profile"));
        request.profile = given.value;
        break;
      case kStatus:
        TRY_VOID(set_status(given.value, request));
        break;
      case kSince:
        request.since_ms = TRY(parse_limit(kSinceRow, given.value, "--since"));
        break;
      case kCount:
        request.count = TRY(parse_limit(kCountRow, given.value, "--count"));
        break;
      case kJson:
        request.json = true;
        break;
      default:
        break;
    }
  }
  return request;
}

Result<ShowRequest> make_show_request(const ParsedOptions& parsed) {
  if (parsed.error) return std::unexpected(*parsed.error);
  if (parsed.operands.size() != 1) {
    return fail(ErrorCode::usage, "show takes the number of one run: belljar show RUN; belljar runs lists them");
  }
  ShowRequest request;
  const std::string_view text = parsed.operands[0];
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), request.run);
  if (error != std::errc{} || end != text.data() + text.size() || request.run <= 0) {
    return fail(ErrorCode::bad_value,
                fmt::format("{} is not the number of a run; belljar runs lists them", quote(text)));
  }
  for (const GivenOption& given : parsed.given) request.json = request.json || given.option == kShowJson;
  return request;
}

}  // namespace

int runs_command(std::span<char* const> arguments) {
  const ParsedOptions parsed = parse_options(kRunsOptions, arguments);
  if (is_given(parsed, kHelp)) return print(std::string(kRunsUsage) + options_help(kRunsOptions));
  const Result<RunsRequest> request = make_runs_request(parsed);
  return request ? execute_runs(*request) : report_error(request.error(), is_given(parsed, kJson));
}

int show_command(std::span<char* const> arguments) {
  const std::vector<char*> ordered = options_first(kShowOptions, arguments);
  const ParsedOptions parsed = parse_options(kShowOptions, ordered);
  if (is_given(parsed, kShowHelp)) return print(std::string(kShowUsage) + options_help(kShowOptions));
  const Result<ShowRequest> request = make_show_request(parsed);
  return request ? execute_show(*request) : report_error(request.error(), is_given(parsed, kShowJson));
}

}  // namespace belljar
