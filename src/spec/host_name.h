// Host: what a program wants to reach, in one form. Every host string goes through the one parser here: of rules, DNS
// questions, CONNECT, SOCKS, TLS server names and HTTP Host. What comes out is what is matched, resolved and dialled.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/ip_address.h"

namespace belljar {

inline constexpr std::size_t kHostBytesMax = 253;  // RFC 1035, without the dot at the end

struct Host {
  std::string text;                  // a name in lower case, or an address as format_ip() writes it
  std::optional<IpAddress> address;  // of a literal

  bool is_literal() const { return address.has_value(); }
  bool operator==(const Host&) const = default;
};

// Takes a host name (letters, digits, - and _ in labels of 1 to 63; upper case is made lower) or an address in
// canonical form. Nothing for all else: NUL, spaces, %, @, a dot at the end, bytes beyond ASCII, numbers that other
// parsers take for addresses (127.1, 0x7f.1, 2130706433).
std::optional<Host> parse_host(std::string_view text);

// The same of "HOST", "HOST:PORT" and "[IPV6]:PORT" as an authority has them (RFC 3986, without user information).
struct Authority {
  Host host;
  std::optional<unsigned> port;  // 1..65535

  bool operator==(const Authority&) const = default;
};
std::optional<Authority> parse_authority(std::string_view text);

// "[2001:db8::1]:443", "example.org:443".
std::string format_authority(const Host& host, unsigned port);

// An international name as it stands in DNS: "bücher.example" becomes "xn--bcher-kva.example" (IDNA 2008). Names that
// are ASCII come back as they are. Nothing where there is no such name.
std::optional<std::string> to_ascii_name(std::string_view name);

// Whether `name` lies below `base` by whole labels: "a.b.example.org" below "example.org", which itself does not.
bool is_below(std::string_view name, std::string_view base);

// Whether anyone can have names registered below `name`, such as "com", "co.uk" and "github.io" (publicsuffix.org).
bool is_public_suffix(std::string_view name);

}  // namespace belljar
