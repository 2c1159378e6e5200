// What a client asks of a SOCKS proxy: version 4, 4a and 5 (RFC 1928), connections only, without authentication.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "spec/host_name.h"

namespace belljar::egress {

enum class SocksReply : std::uint8_t { granted, failed, not_allowed, unreachable, refused, bad_command };

struct SocksRequest {
  enum class Kind {
    more,      // more bytes are needed
    greeting,  // version 5: choose a method with kSocksNoAuthentication; take `size` bytes
    connect,   // to `host` and `port`; take `size` bytes
    broken,    // answer `reply`, and close
  };
  Kind kind = Kind::more;
  unsigned version = 5;
  std::size_t size = 0;
  Host host;
  unsigned port = 0;
  std::string shown;                // what was asked for, when it is no host
  std::optional<SocksReply> reply;  // of broken; nothing: just close
};

inline constexpr std::string_view kSocksNoAuthentication{"\x05\x00", 2};
inline constexpr std::string_view kSocksNoMethod = "\x05\xff";

bool is_socks(std::string_view bytes);

// `is_greeted`: the greeting of version 5 was taken.
SocksRequest read_socks(std::string_view bytes, bool is_greeted);

std::string make_socks_reply(unsigned version, SocksReply reply);

}  // namespace belljar::egress
