// Fuzzes masking: lengths stay, and pieces make no difference. The values come first, each
// up to a line end.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "egress/mask.h"

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
  for (std::size_t at = 0; at < rest.size(); at += 3) mask.feed(rest.substr(at, 3), &pieces);
  mask.finish(&pieces);
  if (whole.size() != rest.size() || whole != pieces) std::abort();
  return 0;
}
