// Fuzzes HTTP requests: however the bytes come in pieces, the same requests begin and end at the same places.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "egress/http_request.h"

namespace {

using namespace belljar::egress;

std::vector<std::size_t> ends_of(std::string_view bytes, std::size_t step) {
  RequestReader reader;
  std::vector<std::size_t> ends;
  std::size_t taken = 0;
  for (std::size_t available = 0; available < bytes.size();) {
    available = std::min(bytes.size(), available + step);
    while (true) {
      const RequestReader::Event event = reader.next(bytes.substr(taken, available - taken));
      if (event.kind == RequestReader::Kind::broken) return ends;
      if (event.kind == RequestReader::Kind::more) break;
      if (event.size == 0 || event.size > available - taken) std::abort();
      taken += event.size;
      if (event.ends_request) ends.push_back(taken);
    }
  }
  return ends;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)guess_http(bytes);
  if (ends_of(bytes, size + 1) != ends_of(bytes, 7)) std::abort();
  return 0;
}
