// An IP address, and what kind of place it names.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace belljar {

enum class IpFamily : std::uint8_t { v4, v6 };

struct IpAddress {
  IpFamily family = IpFamily::v4;
  std::array<std::uint8_t, 16> bytes{};  // network order; v4: the first four

  bool operator==(const IpAddress&) const = default;
  auto operator<=>(const IpAddress&) const = default;
};

// Takes the canonical form only: "192.0.2.1", and for IPv6 what RFC 5952 writes. Not 127.1, 0177.0.0.1, 0x7f.1,
// "::ffff:192.0.2.1", zone ids or brackets.
std::optional<IpAddress> parse_ip(std::string_view text);
std::string format_ip(const IpAddress& address);

// What an address is for, as far as it matters for who may be sent there (RFC 6890 and its registries).
enum class IpKind {
  global,
  private_network,  // RFC 1918, RFC 6598, unique local
  loopback,
  link_local,
  metadata,   // the services of clouds that hand out credentials
  multicast,  // and broadcast
  embedded,   // an IPv4 address inside: mapped, compatible, NAT64, 6to4, Teredo
  reserved,   // unspecified, benchmarking, and what no host has
};

IpKind kind_of(const IpAddress& address);

// "a loopback address", for messages.
std::string_view kind_text(IpKind kind);

}  // namespace belljar
