// The build's compiler of profiles: policies become constant arrays, and the tables of docs/generated.
//   belljar_seccomp_generate cc POLICY OUTPUT     a source file that defines NAME_profile() (filter.h)
//   belljar_seccomp_generate docs POLICY OUTPUT   a Markdown table
//   belljar_seccomp_generate check POLICY FILE    fails if FILE is not what `docs` writes now
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/fd.h"
#include "seccomp/compiler.h"
#include "seccomp/evaluator.h"
#include "seccomp/policy.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::size_t kFileBytesMax = 4 * 1024 * 1024;

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string rule_text(const PolicyRow& row) {
  return row.conditions.empty() ? row.action.text() : fmt::format("{} if {}", row.action.text(), row.condition_text);
}

struct TableRow {
  std::string syscall;
  std::string action;
  std::string reason;
  int error;
};

int error_of(const Action& action) {
  return action.kind == ActionKind::error ? action.error : 0;
}

// The rows by name, then in the policy's order; the fallbacks last.
std::vector<TableRow> table_rows(const Policy& policy) {
  std::vector<TableRow> result;
  for (const PolicyRow& row : policy.rows)
    result.push_back({std::string(row.syscall->name), rule_text(row), row.reason, error_of(row.action)});
  const auto add = [&result](const char* what, const Fallback& fallback) {
    result.push_back({what, fallback.action.text(), fallback.reason, error_of(fallback.action)});
  };
  add("(any other known syscall)", policy.other_known);
  add("(any unknown number)", policy.other_number);
  add("(any 32-bit entry)", policy.other_entry);
  return result;
}

// With refusals that surprise a program asked of the listener.
Policy notifying(Policy policy) {
  const auto change = [](Action& action) {
    if (error_of(action) == EPERM || error_of(action) == EAFNOSUPPORT) action = {ActionKind::notify, 0};
  };
  for (PolicyRow& row : policy.rows) change(row.action);
  change(policy.other_known.action);
  return policy;
}

// With the position of the row in table_rows() in the place of each errno.
Policy explaining(Policy policy) {
  std::uint16_t position = 0;
  const auto change = [&position](Action& action) {
    if (action.kind == ActionKind::error) action.error = position;
    ++position;
  };
  for (PolicyRow& row : policy.rows) change(row.action);
  change(policy.other_known.action);
  change(policy.other_number.action);
  change(policy.other_entry.action);
  return policy;
}

std::string generate_array(const char* name, std::span<const sock_filter> program) {
  std::string out = fmt::format("constexpr sock_filter {}[] = {{\n", name);
  for (const sock_filter& i : program)
    out += fmt::format("    {{{:#06x}, {}, {}, {:#010x}}},\n", i.code, i.jt, i.jf, i.k);
  return out + "};\n\n";
}

Result<std::string> generate_source(const Policy& policy, std::span<const sock_filter> program) {
  const std::vector<sock_filter> notifying_program = TRY(compile_policy(notifying(policy)));
  const std::vector<sock_filter> explaining_program = TRY(compile_policy(explaining(policy)));
  std::string out = fmt::format("// Generated from profiles/{}.policy by belljar_seccomp_generate.\n", policy.name);
  out += "#include \"seccomp/filter.h\"\n\nnamespace belljar {\nnamespace {\n\n";
  out += generate_array("kProgram", program);
  out += generate_array("kNotifying", notifying_program);
  out += generate_array("kExplaining", explaining_program);
  out += "constexpr SyscallRule kRules[] = {\n";
  for (const TableRow& row : table_rows(policy)) {
    out += fmt::format("    {{{}, {}, {}, {}}},\n", quoted(row.syscall), quoted(row.action), quoted(row.reason),
                       row.error);
  }
  out += fmt::format(
      "}};\n\nconstexpr CompiledProfile kProfile{{{}, kProgram, kNotifying, kExplaining, kRules}};\n\n}}  // "
      "namespace\n\n",
      quoted(policy.name));
  out += fmt::format("const CompiledProfile& {}_profile() {{ return kProfile; }}\n\n}}  // namespace belljar\n",
                     policy.name);
  return out;
}

std::string markdown_cell(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

std::string generate_docs(const Policy& policy, std::span<const sock_filter> program) {
  std::size_t bitmap_count = 0;
  for (const Syscall& syscall : policy.table->syscalls) {
    bitmap_count += constant_answer(program, policy.table->audit_arch, syscall.number) == SECCOMP_RET_ALLOW;
  }
  std::string out = fmt::format("# Seccomp profile: {}\n\n", policy.name);
  out += fmt::format(
      "Generated from `src/seccomp/profiles/{}.policy`; don't edit (`ninja seccomp_docs` writes it anew).\n",
      policy.name);
  out += "The rows of a syscall are tried from the top; the first whose condition holds decides.\n";
  out += fmt::format(
      "The filter has {} instructions; {} syscalls pass by the kernel's action bitmap without running it.\n\n",
      program.size(), bitmap_count);
  out += "| syscall | action | reason |\n| --- | --- | --- |\n";
  for (const TableRow& row : table_rows(policy)) {
    out += fmt::format("| {} | `{}` | {} |\n", markdown_cell(row.syscall), markdown_cell(row.action),
                       markdown_cell(row.reason));
  }
  return out;
}

int complain(std::string_view message) {
  fmt::print(stderr, "belljar_seccomp_generate: {}\n", message);
  return 1;
}

int write_output(const char* path, std::string_view content) {
  const auto file = open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (!file) return complain(fmt::format("{}: {}", path, errno_text(file.error().value)));
  const auto written = write_all(file->get(), content);
  if (!written) return complain(fmt::format("{}: {}", path, errno_text(written.error().value)));
  return 0;
}

int generate(std::string_view mode, const char* policy_path, const char* output_path) {
  const auto text = read_file_at(AT_FDCWD, policy_path, kFileBytesMax);
  if (!text) return complain(fmt::format("{}: {}", policy_path, errno_text(text.error().value)));
  auto policy = parse_policy(*text, policy_path);
  if (!policy) return complain(policy.error().message);
  // By name; the rows of one syscall stay in their order, which is all that counts.
  std::ranges::stable_sort(policy->rows, {}, [](const PolicyRow& row) { return row.syscall->name; });
  const auto program = compile_policy(*policy);
  if (!program) return complain(program.error().message);
  if (mode == "cc") {
    const auto source = generate_source(*policy, *program);
    return source ? write_output(output_path, *source) : complain(source.error().message);
  }
  const std::string docs = generate_docs(*policy, *program);
  if (mode == "docs") return write_output(output_path, docs);
  const auto committed = read_file_at(AT_FDCWD, output_path, kFileBytesMax);
  if (committed && *committed == docs) return 0;
  return complain(fmt::format("{} is stale; run `ninja seccomp_docs` and commit it", output_path));
}

}  // namespace
}  // namespace belljar

int main(int argc, char** argv) {
  const std::string_view mode = argc == 4 ? argv[1] : "";
  if (mode != "cc" && mode != "docs" && mode != "check") {
    return belljar::complain("usage: belljar_seccomp_generate cc|docs|check POLICY FILE");
  }
  return belljar::generate(mode, argv[2], argv[3]);
}
