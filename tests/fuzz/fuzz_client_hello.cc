// Fuzzes the reading of TLS greetings: once one is whole, more bytes change nothing about it, and its
// beginnings are unfinished.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "egress/client_hello.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belljar::egress;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const ClientHello hello = read_client_hello(bytes);
  if (hello.state != ClientHello::State::whole) return 0;
  const ClientHello longer = read_client_hello(bytes + "x");
  if (longer.state != ClientHello::State::whole || longer.server_name != hello.server_name) std::abort();
  for (const std::size_t cut : {size - 1, size / 2, size / 3, std::size_t{5}}) {
    if (read_client_hello(bytes.substr(0, cut)).state == ClientHello::State::no_hello) std::abort();
  }
  return 0;
}
