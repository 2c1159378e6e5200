#include "cli/changes_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/fd.h"
#include "base/utf8.h"
#include "cli/execute.h"
#include "cli/options.h"
#include "cli/run_command.h"
#include "spec/checks.h"
#include "spec/errors.h"
#include "spec/names.h"

namespace belljar {
namespace {

constexpr std::size_t kJson = 0;
constexpr std::size_t kHelp = 1;
constexpr Option kOptions[] = {{"json", "", "list, apply: print JSON"}, {"help", "", "show this help"}};

struct VerbRow {
  std::string_view name;
  ChangesVerb verb;
  bool takes_id;
  bool takes_paths;
  std::string_view usage;
};
constexpr VerbRow kVerbs[] = {
    {"list", ChangesVerb::list, false, false, "belljar changes list"},
    {"diff", ChangesVerb::diff, true, true, "belljar changes diff ID [PATH...]"},
    {"apply", ChangesVerb::apply, true, true, "belljar changes apply ID [PATH...]"},
    {"discard", ChangesVerb::discard, true, false, "belljar changes discard ID"},
};

Result<VerbRow> find_verb(std::string_view word) {
  std::vector<std::string_view> known;
  for (const VerbRow& row : kVerbs) {
    if (row.name == word) return row;
    known.push_back(row.name);
  }
  if (word.empty()) return fail(ErrorCode::usage, "changes needs a word after it: list, diff, apply or discard");
  return fail(ErrorCode::usage, fmt::format("unknown command changes {}; {}", one_line(word), name_hint(word, known)));
}

// As the changes name it: without "./" before it and "/" after it.
Result<std::string> read_path(std::string_view text) {
  TRY_VOID(check_path(text, "changes"));
  if (text[0] == '/') {
    return fail(ErrorCode::bad_value,
                fmt::format("changes: {} must begin below the workspace, such as src/main.py", quote(text)));
  }
  std::string normal = TRY(normal_inside_path(fmt::format("/{}", text), "changes"));
  normal.erase(0, 1);
  if (!normal.empty()) return normal;
  return fail(ErrorCode::bad_value, "changes: leave the path out to mean all");
}

Result<ChangesRequest> make_request(std::string_view word, const ParsedOptions& parsed) {
  const VerbRow row = TRY(find_verb(word));
  if (parsed.error) return std::unexpected(*parsed.error);
  ChangesRequest request{.verb = row.verb, .json = is_given(parsed, kJson)};
  if (request.json && row.verb != ChangesVerb::list && row.verb != ChangesVerb::apply) {
    return fail(ErrorCode::usage, "--json is for changes list and changes apply only");
  }
  const std::size_t count = parsed.operands.size();
  if (count < (row.takes_id ? 1U : 0U) || (!row.takes_paths && count > (row.takes_id ? 1U : 0U))) {
    return fail(ErrorCode::usage,
                fmt::format("changes {} takes {}, not {} arguments: {}", row.name,
                            row.takes_id ? "the id of one set of changes" : "no arguments", count, row.usage));
  }
  if (row.takes_id) request.id = parsed.operands[0];
  for (std::size_t i = 1; i < count; ++i) request.paths.push_back(TRY(read_path(parsed.operands[i])));
  return request;
}

}  // namespace

std::string changes_help() {
  return "usage: belljar changes list\n"
         "       belljar changes diff ID [PATH...]\n"
         "       belljar changes apply ID [PATH...]\n"
         "       belljar changes discard ID\n\n"
         "belljar run --workspace DIR lets a program change a view of DIR, and keeps what it changed.\n"
         "diff shows that, apply writes it to DIR, discard forgets it. PATH lies below DIR and stands\n"
         "for all below it. apply writes nothing when DIR has changed meanwhile where a change would\n"
         "go. It leaves out symbolic links, and hooks and configuration that tools act on by\n"
         "themselves (.git/hooks, .envrc, .vscode ...), unless PATH names them.\n\n" +
         options_help(kOptions);
}

int changes_command(std::span<char* const> arguments) {
  const auto [word, ordered, parsed] = parse_word(kOptions, arguments);
  if (is_given(parsed, kHelp)) {
    return print(changes_help());
  }
  const Result<ChangesRequest> request = make_request(word, parsed);
  if (!request) return report_error(request.error(), is_given(parsed, kJson));
  return execute_changes(*request);
}

}  // namespace belljar
