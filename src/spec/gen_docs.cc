// Writes the reference pages that come from the tables of spec/, or says which of them are stale:
//   belljar_spec_docs write|check docs/generated
#include <fcntl.h>
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "base/fd.h"
#include "spec/errors.h"
#include "spec/limits.h"
#include "spec/names.h"
#include "spec/outcome.h"
#include "spec/policy.h"

namespace belljar {
namespace {

std::string page_start(std::string_view title, std::string_view tables) {
  return fmt::format("# {}\n\nGenerated from {}; don't edit (`ninja spec_docs` writes it anew).\n\n", title, tables);
}

std::string_view unit_text(LimitUnit unit) {
  switch (unit) {
    case LimitUnit::bytes:
      return "bytes";
    case LimitUnit::milliseconds:
      return "time";
    case LimitUnit::millicpus:
      return "cores";
    case LimitUnit::count:
      break;
  }
  return "number";
}

// Of a limit that is off there is no value to show.
std::string sentence_text(const LimitRow& row) {
  if (!can_be_off(row)) return limit_sentence(row, row.preset);
  std::string sentence(row.sentence);
  return sentence.replace(sentence.find("{}"), 2, "...");
}

std::string limits_page() {
  std::string page = page_start("Limits", "`src/spec/limits.def`");
  page +=
      "Each limit is a flag of `belljar run` and a key in `[limits]` of a policy file. Bytes are written plain or with "
      "K, M, G\n"
      "or T (powers of 1024), times in seconds or with ms, s, m, h or d after the number, cores as a number such as "
      "0.5. A\n"
      "limit that is named must hold in full; a default may be held more weakly where the host can't do better, and "
      "the\n"
      "result says so. A limit whose default is off is none until it is set; `off` takes it away again.\n\n"
      "| flag | key | unit | default | from | to | what it bounds | what Belljar says | held in the container tier by "
      "| in the kernel tier by | in the wasm tier by |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const LimitRow& row : limit_rows()) {
    page += fmt::format("| `--{}` | `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", row.flag, row.name,
                        unit_text(row.unit), format_limit(row, row.preset), format_limit(row.unit, row.least),
                        format_limit(row.unit, row.most), row.what, sentence_text(row), row.held_in_container,
                        row.held_in_kernel, row.held_in_wasm);
  }
  return page;
}

std::string errors_page() {
  std::string page = page_start("Errors", "`src/spec/errors.def` and `src/spec/outcome.h`");
  page +=
      "What stands in the result record as `error.code` when Belljar refused to run a program or failed, and the exit "
      "status\n"
      "of `belljar run` then. [Exit statuses](../exit-statuses.md) tells of the others.\n\n"
      "| code | exit status | meaning |\n| --- | --- | --- |\n";
#define ERROR(name, exit_status, text) page += fmt::format("| `{}` | {} | {} |\n", #name, exit_status, text);
#include "spec/errors.def"
#undef ERROR
  page += "\n## How a run ends\n\n`status` in the result record.\n\n| status | meaning |\n| --- | --- |\n";
#define STATUS(name, meaning) page += fmt::format("| `{}` | {} |\n", #name, meaning);
  BELLJAR_STATUSES(STATUS)
#undef STATUS
  return page;
}

std::string walls_page() {
  std::string page = page_start("Walls", "`src/spec/walls.def` and `src/spec/tiers.def`");
  page +=
      "The names that `--require` takes and that stand in the result record under `isolation`; the names of\n"
      "[limits](limits.md) are taken too. `--require all` is every one of them.\n\n"
      "| wall | what it keeps out |\n| --- | --- |\n";
  for (const NamedRow& row : wall_rows()) page += fmt::format("| `{}` | {} |\n", row.name, row.what);
  page += "\n## Tiers\n\n| tier | what stands between the code and the host |\n| --- | --- |\n";
  for (const TierRow& row : tier_rows()) page += fmt::format("| `{}` | {} |\n", row.name, row.what);
  return page;
}

std::string_view form_text(PolicyForm form) {
  switch (form) {
    case PolicyForm::text:
      return "string";
    case PolicyForm::list:
      return "array of strings";
    case PolicyForm::table:
      break;
  }
  return "see below";
}

std::string flags_of_key(std::string_view key) {
  if (key == "limits") return "`--memory` and so on";
  std::string flags;
  for (const PolicyFlag& flag : policy_flags()) {
    if (flag.key != key) continue;
    flags += fmt::format("`{}{}{}{}`", flag.name.size() == 1 ? "-" : "--", flag.name, flag.argument.empty() ? "" : " ",
                         flag.argument);
  }
  std::string cell;  // in a table, a bar would end it
  for (const char c : flags) {
    if (c == '|') cell.push_back('\\');
    cell.push_back(c);
  }
  return cell;
}

// Made with the setters, so that the example on the page is one that is taken.
Result<std::string> example_policy() {
  RunPolicy policy;
  TRY_VOID(policy.set_workdir("/data", "example"));
  TRY_VOID(policy.add_require("memory", "example"));
  TRY_VOID(policy.add_pass_environment("TZ", "example"));
  TRY_VOID(policy.add_environment_text("MODE=quick", "example"));
  TRY_VOID(policy.add_mount_text("./data:/data", "example"));
  TRY_VOID(policy.add_mount_text("./out:/out:rw", "example"));
  for (const LimitRow& row : limit_rows()) {
    if (row.name == "memory") TRY_VOID(policy.set_limit(row, "1G", "example"));
    if (row.name == "timeout") TRY_VOID(policy.set_limit(row, "5m", "example"));
  }
  return policy_to_toml(policy);
}

Result<std::string> policy_page() {
  std::string page = page_start("Policy files", "`src/spec/policy.cc`");
  page +=
      "`belljar run --policy FILE` takes everything that a run is allowed from a file in TOML. Flags win over the "
      "file, a\n"
      "later `--policy` over an earlier one; mounts, hidden paths, required names and variables add up. `belljar "
      "policy show`\n"
      "prints the policy that a run would have. Unknown keys, wrong types and doubled keys are errors. The keys above "
      "all\n"
      "tables come first, as TOML wants it. Relative paths are relative to the folder where `belljar` is started.\n\n"
      "| key | form | flag | what |\n| --- | --- | --- | --- |\n";
  for (const PolicyKey& key : policy_keys()) {
    page += fmt::format("| `{}` | {} | {} | {} |\n", key.name, form_text(key.form), flags_of_key(key.name), key.what);
  }
  page +=
      "\n`[limits]` holds the keys of [limits.md](limits.md), each a string as the flag takes it, or a plain number "
      "(bytes,\n"
      "seconds, cores). `[environment]` holds NAME = \"value\". Each `[[mounts]]` has `source` (on the host), `target` "
      "(an\n"
      "absolute path inside, not at or below /proc, /dev or /sys) and `access`, which is `\"ro\"` (the default) or "
      "`\"rw\"`.\n"
      "`allow` lists what the program can reach on a network. Each entry is a text as `--allow` takes it, or a table "
      "with\n"
      "`host`, and where wanted `ports` (numbers; without it 80 and 443), `methods` and `paths` of HTTP requests (a "
      "path "
      "may end\n"
      "with `*`), and `allow_private` (true lets a name lead to private, loopback and link-local addresses). An empty "
      "list\n"
      "allows nothing.\n"
      "Each `[[secrets]]` has `name` (of the variable inside), `source` (`file:PATH`, `fd:NUMBER` or `env:NAME`), "
      "`host`, `header`\n"
      "(such as `\"Authorization: Bearer {}\"`), and where wanted `ports`, `methods`, `paths`, and `plain_http` (true "
      "lets it go\n"
      "without TLS too); see [egress.md](../egress.md).\n\n"
      "An example, as `belljar policy show` prints it:\n\n```toml\n";
  page += TRY(example_policy());
  return page + "```\n";
}

struct Page {
  std::string name;
  std::string text;
};

Result<std::vector<Page>> all_pages() {
  return std::vector<Page>{{"limits.md", limits_page()},
                           {"errors.md", errors_page()},
                           {"walls.md", walls_page()},
                           {"policy.md", TRY(policy_page())}};
}

bool write_page(const std::string& folder, const Page& page) {
  const auto file = open_at(AT_FDCWD, (folder + "/" + page.name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  return file && write_all(file->get(), page.text);
}

bool is_current(const std::string& folder, const Page& page) {
  const auto text = read_file_at(AT_FDCWD, (folder + "/" + page.name).c_str(), 1 << 20);
  return text && *text == page.text;
}

int generate(std::string_view verb, const std::string& folder) {
  const Result<std::vector<Page>> pages = all_pages();
  if (!pages) {
    std::fprintf(stderr, "%s\n", pages.error().message.c_str());
    return 1;
  }
  int failed = 0;
  for (const Page& page : *pages) {
    const bool good = verb == "write" ? write_page(folder, page) : is_current(folder, page);
    if (good) continue;
    std::fprintf(stderr, "%s/%s: %s\n", folder.c_str(), page.name.c_str(),
                 verb == "write" ? "can't be written" : "is stale; `ninja spec_docs` writes it anew");
    ++failed;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace belljar

int main(int argc, char** argv) {
  const std::string_view verb = argc == 3 ? argv[1] : "";
  if (verb != "write" && verb != "check") {
    std::fprintf(stderr, "usage: belljar_spec_docs write|check FOLDER\n");
    return 2;
  }
  return belljar::generate(verb, argv[2]);
}
