// Diffs of two texts: bounded, and every line of both is accounted for.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "files/text_diff.h"

namespace {

std::size_t lines_of(std::string_view text) {
  const auto ends = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  return ends + (!text.empty() && text.back() != '\n' ? 1 : 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t middle = std::min(input.find('|'), size);
  const std::string_view before = input.substr(0, middle);
  const std::string_view after = input.substr(std::min(middle + 1, size));
  const std::string hunks = belljar::unified_hunks(before, after);
  if (hunks.empty() != (before == after)) std::abort();
  std::size_t removed = 0;
  std::size_t added = 0;
  for (std::string_view rest = hunks; !rest.empty();) {
    removed += rest[0] == '-' ? 1 : 0;
    added += rest[0] == '+' ? 1 : 0;
    rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  }
  // What was not removed is what was not added.
  if (lines_of(before) - removed != lines_of(after) - added) std::abort();
  return 0;
}
