// Fuzzes SOCKS requests: what is taken lies within the bytes, and names a host in its one form; what is cut off from it
// waits for more.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "egress/socks.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belljar;
  using namespace belljar::egress;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const bool is_greeted : {false, true}) {
    const SocksRequest request = read_socks(bytes, is_greeted);
    if (request.size > size) std::abort();
    if (request.kind == SocksRequest::Kind::broken || request.size == 0) continue;
    for (const std::size_t cut : {request.size - 1, request.size / 2, request.size / 3}) {
      if (read_socks(bytes.substr(0, cut), is_greeted).kind != SocksRequest::Kind::more) std::abort();
    }
    if (request.kind != SocksRequest::Kind::connect) continue;
    if (request.port == 0 || request.port > 65535) std::abort();
    if (!request.host.is_literal() && parse_host(request.host.text) != request.host) std::abort();
  }
  return 0;
}
