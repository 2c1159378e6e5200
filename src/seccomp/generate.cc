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
};

// The rows by name, then in the policy's order; the fallbacks last.
std::vector<TableRow> table_rows(const Policy& policy) {
  std::vector<TableRow> result;
  for (const PolicyRow& row : policy.rows)
    result.push_back({std::string(row.syscall->name), rule_text(row), row.reason});
  std::ranges::stable_sort(result, {}, &TableRow::syscall);
  result.push_back({"(any other known syscall)", policy.other_known.action.text(), policy.other_known.reason});
  result.push_back({"(any unknown number)", policy.other_number.action.text(), policy.other_number.reason});
  result.push_back({"(any 32-bit entry)", policy.other_entry.action.text(), policy.other_entry.reason});
  return result;
}

std::string generate_source(const Policy& policy, std::span<const sock_filter> program) {
  std::string out = fmt::format("// Generated from profiles/{}.policy by belljar_seccomp_generate.\n", policy.name);
  out += "#include \"seccomp/filter.h\"\n\nnamespace belljar {\nnamespace {\n\nconstexpr sock_filter kProgram[] = {\n";
  for (const sock_filter& i : program)
    out += fmt::format("    {{{:#06x}, {}, {}, {:#010x}}},\n", i.code, i.jt, i.jf, i.k);
  out += "};\n\nconstexpr SyscallRule kRules[] = {\n";
  for (const TableRow& row : table_rows(policy)) {
    out += fmt::format("    {{{}, {}, {}}},\n", quoted(row.syscall), quoted(row.action), quoted(row.reason));
  }
  out += fmt::format("}};\n\nconstexpr CompiledProfile kProfile{{{}, kProgram, kRules}};\n\n}}  // namespace\n\n",
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
  const auto policy = parse_policy(*text, policy_path);
  if (!policy) return complain(policy.error().message);
  const auto program = compile_policy(*policy);
  if (!program) return complain(program.error().message);
  if (mode == "cc") return write_output(output_path, generate_source(*policy, *program));
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
