#include "tiers/wasm/interpreters.h"

#include <algorithm>
#include <iterator>

namespace belljar::wasm {
namespace {

constexpr Interpreter kInterpreters[] = {
    {".js", "quickjs", "qjs", ""},
    {".mjs", "quickjs", "qjs", ""},
    {".py", "python", "python3", "python311.zip"},
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

std::string known_extensions() {
  std::string list;
  for (const Interpreter& row : kInterpreters) {
    if (!list.empty()) list += ", ";
    list += row.extension;
  }
  return list;
}

}  // namespace belljar::wasm
