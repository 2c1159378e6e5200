#include "spec/interpreter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

#include "base/utf8.h"
#include "spec/errors.h"

namespace belljar {
namespace {

struct Interpreter {
  std::string_view extension;
  std::string_view program;
};

constexpr Interpreter kInterpreters[] = {
    {".py", "python3"}, {".sh", "bash"},  {".bash", "bash"}, {".js", "node"},
    {".mjs", "node"},   {".cjs", "node"}, {".pl", "perl"},
};

std::string known_extensions() {
  std::string list;
  for (const Interpreter& row : kInterpreters) list += fmt::format("{}{}", list.empty() ? "" : " ", row.extension);
  return list;
}

std::unexpected<Error> bad_script(std::string_view name, std::string_view what) {
  return fail(ErrorCode::bad_script, fmt::format("{}: {}", one_line(name), what));
}

std::string carriage_return_advice(std::string_view name) {
  return fmt::format("convert it: sed -i 's/\\r$//' {}", one_line(name));
}

Result<std::vector<std::string>> interpreter_of_hash_bang(std::string_view name, std::string_view head) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t end = head.find('\n');
  if (end == std::string_view::npos && head.size() >= kScriptHeadBytes) {
    return bad_script(name, fmt::format("its #! line is longer than {} bytes", kScriptHeadBytes - 1));
  }
  std::string_view line = head.substr(2, end == std::string_view::npos ? end : end - 2);
  if (line.ends_with('\r')) {
    return bad_script(name,
                      "its #! line ends with a carriage return (Windows line ends); " + carriage_return_advice(name));
  }
  if (line.find('\0') != std::string_view::npos) return bad_script(name, "its #! line holds a NUL byte");
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
  const std::string_view program = line.substr(0, line.find_first_of(kBlanks));
  if (program.empty()) return bad_script(name, "its #! line names no interpreter");
  if (program[0] != '/') {
    return bad_script(name,
                      fmt::format("its #! line must name an absolute path, such as /usr/bin/env {}", one_line(line)));
  }
  // As the kernel does it, everything after the program is one argument.
  std::string_view argument = line.substr(program.size());
  argument.remove_prefix(std::min(argument.find_first_not_of(kBlanks), argument.size()));
  std::vector<std::string> prefix{std::string(program)};
  if (!argument.empty()) prefix.emplace_back(argument);
  return prefix;
}

}  // namespace

std::string script_name(const std::string& path) {
  constexpr std::string_view kUnnamed = "/memfd:";
  constexpr std::string_view kDeleted = " (deleted)";  // after the name of every memfd
  if (!path.starts_with("/proc/self/fd/") && !path.starts_with("/dev/fd/")) return path;
  std::array<char, PATH_MAX> text{};
  const ssize_t length = ::readlink(path.c_str(), text.data(), text.size());
  if (length <= 0) return path;
  std::string_view name(text.data(), static_cast<std::size_t>(length));
  if (name.starts_with(kUnnamed) && name.ends_with(kDeleted)) {
    name.remove_prefix(kUnnamed.size());
    name.remove_suffix(kDeleted.size());
  }
  return name.empty() || name.ends_with('/') ? path : std::string(name);
}

Result<std::vector<std::string>> choose_interpreter(std::string_view script_name, std::string_view head,
                                                    ScriptRule rule) {
  const std::string_view base_name = script_name.substr(script_name.rfind('/') + 1);
  if (head.starts_with("\x7F"
                       "ELF")) {
    return bad_script(
        script_name,
        fmt::format(
            "this is a compiled program, not a script; run it with: belljar run --mount {0}:/data/{1} -- /data/{1}",
            one_line(script_name), one_line(base_name)));
  }
  if (rule == ScriptRule::hash_bang_first && head.starts_with("#!")) {
    return interpreter_of_hash_bang(script_name, head);
  }
  for (const Interpreter& row : kInterpreters) {
    if (!base_name.ends_with(row.extension)) continue;
    // Shells take the carriage return for a part of the last word, and fail in ways that are hard to read.
    const std::string_view first_line = head.substr(0, head.find('\n'));
    if (row.program == "bash" && first_line.size() < head.size() && first_line.ends_with('\r')) {
      return bad_script(script_name,
                        "it has Windows line ends, which a shell can't read; " + carriage_return_advice(script_name));
    }
    return std::vector<std::string>{std::string(row.program)};
  }
  if (head.starts_with("#!")) return interpreter_of_hash_bang(script_name, head);
  if (head.starts_with("\xEF\xBB\xBF#!")) {
    return bad_script(script_name, "a byte order mark stands before its #! line; save it as UTF-8 without one");
  }
  return bad_script(
      script_name,
      fmt::format("it {} and has none of the extensions {}; to choose a program yourself: belljar run -- PROGRAM ...",
                  head.empty() ? "is empty" : "has no #! line", known_extensions()));
}

}  // namespace belljar
