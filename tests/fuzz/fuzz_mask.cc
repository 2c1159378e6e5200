// Fuzzes masking: lengths stay, pieces make no difference, and only what may become a value waits. The values come
// first, each up to a line end.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "egress/mask.h"

namespace {

// Whether a value may begin at or before the last `waiting` bytes and go on beyond them.
bool may_become_value(const std::vector<std::string>& values, std::string_view seen, std::size_t waiting) {
  return std::ranges::any_of(values, [&](const std::string& value) {
    for (std::size_t size = waiting; size < value.size(); ++size) {
      if (seen.ends_with(std::string_view(value).substr(0, size))) return true;
    }
    return false;
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belljar::egress;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> values;
  while (values.size() < 2) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos || end < 2) return 0;
    values.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  const std::string whole = masked(values, rest);
  std::string pieces;
  Mask mask(values);
  for (std::size_t at = 0; at < rest.size(); at += 3) {
    mask.feed(rest.substr(at, 3), &pieces);
    const std::string_view seen = rest.substr(0, at + 3);
    const std::string_view waits = seen.substr(pieces.size());
    if (!waits.empty() && !may_become_value(values, seen, waits.size())) std::abort();
  }
  mask.finish(&pieces);
  if (whole.size() != rest.size() || whole != pieces) std::abort();
  return 0;
}
