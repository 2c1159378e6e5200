// IpAddress as the socket calls take it: ip(7), ipv6(7).
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>

#include "spec/ip_address.h"

namespace belljar::egress {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;

  SocketAddress() = default;
  SocketAddress(const IpAddress& address, unsigned port);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }

  // Nothing where the family is neither IPv4 nor IPv6.
  std::optional<IpAddress> address() const;
  unsigned port() const;
};

}  // namespace belljar::egress
