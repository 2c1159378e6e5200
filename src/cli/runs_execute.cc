#include <fmt/format.h>
#include <unistd.h>

#include <initializer_list>

#include "base/fd.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/execute.h"
#include "cli/recorder.h"
#include "spec/errors.h"
#include "store/store.h"

namespace belljar {
namespace {

constexpr std::uint64_t kCountDefault = 50;

// The record is our own, but its file could have been written by anyone who runs as this user: no type is taken for
// granted.
const Json* find_member(const Json& record, std::initializer_list<const char*> path) {
  const Json* at = &record;
  for (const char* const key : path) {
    const auto found = at->is_object() ? at->find(key) : at->end();
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::uint64_t number_in(const Json& record, std::initializer_list<const char*> path) {
  const Json* const member = find_member(record, path);
  return member != nullptr && member->is_number_unsigned() ? member->get<std::uint64_t>() : 0;
}

std::string text_in(const Json& record, std::initializer_list<const char*> path) {
  const Json* const member = find_member(record, path);
  return member != nullptr && member->is_string() ? one_line(member->get<std::string>()) : "";
}

Json parsed_record(const std::string& record) {
  const auto json = parse_json(record);
  return json ? *json : Json::object();
}

std::string local_time(std::int64_t ms) {
  return time_text(ms, "%Y-%m-%d %H:%M:%S");
}

Json run_to_json(const RecordedRun& run) {
  return {{"run", run.id},
          {"profile", run.profile},
          {"started", time_text(run.started_unix_ms, "%Y-%m-%dT%H:%M:%S%z")},
          {"started_unix_ms", run.started_unix_ms},
          {"record", parsed_record(run.record)}};
}

std::string ending_text(const Json& record) {
  if (const std::uint64_t signal = number_in(record, {"signal"}); signal > 0) return fmt::format("signal {}", signal);
  const Json* const exit_code = find_member(record, {"exit_code"});
  return exit_code != nullptr && exit_code->is_number() ? fmt::format("exit {}", exit_code->get<int>()) : "-";
}

std::string run_line(const RecordedRun& run, std::size_t profile_width) {
  const Json record = parsed_record(run.record);
  const std::uint64_t cpu_ms =
      number_in(record, {"usage", "cpu_user_ms"}) + number_in(record, {"usage", "cpu_system_ms"});
  return fmt::format("{:>6}  {}  {:<{}}  {:<9} {:<10} {:>9} {:>9} {:>9}\n", run.id, local_time(run.started_unix_ms),
                     run.profile, profile_width, one_line(run.status, 40), ending_text(record),
                     show_amount(LimitUnit::milliseconds, number_in(record, {"duration_ms"})),
                     show_amount(LimitUnit::milliseconds, cpu_ms),
                     show_amount(LimitUnit::bytes, number_in(record, {"usage", "memory_peak_bytes"})));
}

std::string runs_table(const std::vector<RecordedRun>& runs) {
  std::size_t width = std::string_view("PROFILE").size();
  for (const RecordedRun& run : runs) width = std::max(width, run.profile.size());
  std::string table = fmt::format("{:>6}  {:<19}  {:<{}}  {:<9} {:<10} {:>9} {:>9} {:>9}\n", "RUN", "STARTED",
                                  "PROFILE", width, "STATUS", "ENDING", "TIME", "CPU", "MEMORY");
  for (const RecordedRun& run : runs) table += run_line(run, width);
  return table;
}

std::string uses_table(const std::vector<RecordedUse>& uses) {
  std::string table = fmt::format("\n{:<12} {:>10} {:>10} {:>6}\n", "LIMIT", "USED", "OF", "");
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const RecordedUse& use = uses[i];
    if (use.cap == 0) continue;  // there was no such limit then
    const LimitRow& row = limit_rows()[i];
    const std::string used = use.used ? show_amount(row.unit, *use.used) : "-";
    const bool is_off = is_unlimited(row, use.cap);
    const std::string share =
        use.used && !is_off
            ? fmt::format("{:.0f} %", 100.0 * static_cast<double>(*use.used) / static_cast<double>(use.cap))
            : "";
    table += fmt::format("{:<12} {:>10} {:>10} {:>6}{}\n", row.name, used, show_limit(row, use.cap), share,
                         use.struck ? "  struck" : "");
  }
  return table + "\n- is not measured\n";
}

// Kept texts are the program's: they are shown harmlessly wherever they go but in JSON.
std::string kept_part(std::string_view title, const std::string& bytes) {
  std::string out = fmt::format("\n--- {}\n", title);
  TerminalNeutraliser neutraliser;
  neutraliser.feed(bytes, out);
  neutraliser.finish(out);
  if (!out.ends_with('\n')) out += '\n';
  return out;
}

std::string run_page(const WholeRun& whole) {
  const Json record = parsed_record(whole.run.record);
  std::string page =
      fmt::format("run {} of {}, started {}\n", whole.run.id, whole.run.profile, local_time(whole.run.started_unix_ms));
  page += fmt::format("{} ({}) after {}\n", one_line(whole.run.status, 40), ending_text(record),
                      show_amount(LimitUnit::milliseconds, number_in(record, {"duration_ms"})));
  if (const std::string reason = text_in(record, {"reason"}); !reason.empty()) page += reason + "\n";
  page += uses_table(whole.uses);
  if (!whole.kept) return page;
  page += kept_part("program", whole.kept->program);
  page += kept_part("stdout", whole.kept->standard_output);
  return page + kept_part("stderr", whole.kept->standard_error);
}

Json whole_to_json(const WholeRun& whole) {
  Json json = run_to_json(whole.run);
  if (!whole.kept) return json;
  json["program"] = whole.kept->program;
  json["stdout"] = whole.kept->standard_output;
  json["stderr"] = whole.kept->standard_error;
  return json;
}

Result<std::string> runs_text(const RunsRequest& request) {
  Store store = TRY(open_own_store());
  RunFilter filter{request.profile, request.status};
  if (request.since_ms) filter.since_unix_ms = unix_ms() - static_cast<std::int64_t>(*request.since_ms);
  if (request.count || !request.json) filter.count_max = request.count.value_or(kCountDefault);
  const std::vector<RecordedRun> runs = TRY(store.runs(filter));
  if (!request.json) return runs_table(runs);
  std::string lines;
  for (const RecordedRun& run : runs) lines += dump_json(run_to_json(run)) + "\n";
  return lines;
}

Result<std::string> show_text(const ShowRequest& request) {
  Store store = TRY(open_own_store());
  const WholeRun whole = TRY(store.run(request.run));
  return request.json ? dump_json(whole_to_json(whole)) + "\n" : run_page(whole);
}

}  // namespace

int execute_runs(const RunsRequest& request) {
  const Result<std::string> text = runs_text(request);
  if (text) return print(*text);
  if (text.error().code == ErrorCode::no_record && request.json) return 0;  // no line: there is no run
  return report_error(text.error(), request.json);
}

int execute_show(const ShowRequest& request) {
  const Result<std::string> text = show_text(request);
  return text ? print(*text) : report_error(text.error(), request.json);
}

}  // namespace belljar
