#include "egress/socket_address.h"

#include <cstring>

namespace belljar::egress {

SocketAddress::SocketAddress(const IpAddress& address, unsigned port) {
  if (address.family == IpFamily::v4) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<std::uint16_t>(port));
    std::memcpy(&v4.sin_addr, address.bytes.data(), sizeof v4.sin_addr);
    std::memcpy(&storage, &v4, sizeof v4);
    size = sizeof v4;
    return;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(static_cast<std::uint16_t>(port));
  std::memcpy(&v6.sin6_addr, address.bytes.data(), sizeof v6.sin6_addr);
  std::memcpy(&storage, &v6, sizeof v6);
  size = sizeof v6;
}

std::optional<IpAddress> SocketAddress::address() const {
  IpAddress address;
  if (storage.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &storage, sizeof v4);
    std::memcpy(address.bytes.data(), &v4.sin_addr, sizeof v4.sin_addr);
    return address;
  }
  if (storage.ss_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6;
  std::memcpy(&v6, &storage, sizeof v6);
  address.family = IpFamily::v6;
  std::memcpy(address.bytes.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
  return address;
}

unsigned SocketAddress::port() const {
  sockaddr_in v4;  // the port stands at the same place in both
  std::memcpy(&v4, &storage, sizeof v4);
  return ntohs(v4.sin_port);
}

}  // namespace belljar::egress
