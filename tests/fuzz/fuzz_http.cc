// Fuzzes HTTP requests: however the bytes come in pieces, the same requests begin and end at the same
// places, and the same are refused.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "egress/http_request.h"

namespace {

using namespace belljar::egress;

struct Seen {
  std::vector<std::size_t> ends;
  bool is_broken = false;
  bool operator==(const Seen&) const = default;
};

Seen read(std::string_view bytes, std::size_t step) {
  RequestReader reader;
  Seen seen;
  std::size_t taken = 0;
  for (std::size_t available = 0; available < bytes.size();) {
    available = std::min(bytes.size(), available + step);
    while (true) {
      const RequestReader::Event event = reader.next(bytes.substr(taken, available - taken));
      seen.is_broken = event.kind == RequestReader::Kind::broken;
      if (seen.is_broken) return seen;
      if (event.kind == RequestReader::Kind::more) break;
      if (event.size == 0 || event.size > available - taken) std::abort();
      taken += event.size;
      if (event.ends_request) seen.ends.push_back(taken);
    }
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)guess_http(bytes);
  const Seen whole = read(bytes, size + 1);
  for (const std::size_t step : {1, 2, 7, 64}) {
    if (read(bytes, step) != whole) std::abort();
  }
  return 0;
}
