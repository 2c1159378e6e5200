#include "tiers/wasm/interpreters.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/fd.h"
#include "spec/interpreter.h"

namespace belljar::wasm {
namespace {

// Of its linear memory. What the engine keeps of a frame on its own stack may be ten times as large.
constexpr const char* kStackOption = "--stack-size=1024k";

constexpr Interpreter kInterpreters[] = {
    {".js", "quickjs", "qjs", kStackOption, ""},
    {".mjs", "quickjs", "qjs", kStackOption, ""},
    {".py", "python", "python3", "", "python311.zip"},
};

}  // namespace

std::span<const Interpreter> interpreters() {
  return kInterpreters;
}

const Interpreter* find_interpreter(std::string_view script) {
  const auto* const found =
      std::ranges::find_if(kInterpreters, [&](const Interpreter& row) { return script.ends_with(row.extension); });
  return found == std::end(kInterpreters) ? nullptr : found;
}

bool is_module(const std::string& path) {
  constexpr std::string_view kMagic("\0asm", 4);
  std::array<char, kMagic.size()> head{};
  const auto file = open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file || ::pread(file->get(), head.data(), head.size(), 0) != static_cast<ssize_t>(head.size())) return false;
  return std::string_view(head.data(), head.size()) == kMagic;
}

const Interpreter* interpreter_of(const std::string& script) {
  return is_module(script) ? nullptr : find_interpreter(script_name(script));
}

std::string known_extensions() {
  std::string list;
  for (const Interpreter& row : kInterpreters) {
    if (!list.empty()) list += ", ";
    list += row.extension;
  }
  return list;
}

}  // namespace belljar::wasm
