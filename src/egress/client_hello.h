// The first message of a TLS client (RFC 8446, 4.1.2), read for the server name in it (RFC 6066) and for the protocols
// that it would speak (RFC 7301).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::egress {

inline constexpr std::size_t kClientHelloBytesMax = std::size_t{32} << 10;

struct ClientHello {
  enum class State {
    unfinished,  // more bytes are needed
    no_hello,    // not a ClientHello, damaged, or too long
    whole,
  };
  State state = State::unfinished;
  std::string server_name;             // as it came; empty: there is none
  std::vector<std::string> protocols;  // "h2", "http/1.1"; empty: it says nothing of them
};

// `bytes` are those from the beginning of the connection; records may split the message anywhere.
ClientHello read_client_hello(std::string_view bytes);

}  // namespace belljar::egress
