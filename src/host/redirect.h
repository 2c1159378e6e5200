// The only way out of a network namespace that has nothing but its loopback: connections to some addresses and ports
// end at a listening socket inside it, whose owner may be outside. All else is refused at once, and reported.
// rtnetlink(7); nf_tables by netlink. Async-signal-safe; needs CAP_NET_ADMIN and CAP_NET_BIND_SERVICE there.
#pragma once

#include <cstdint>
#include <span>

#include "base/fd.h"

namespace belljar::host {

// Addresses of the ranges below stand for names. RFC 2544 and RFC 5180 keep them for benchmarks within one network, so
// nothing outside has them. The first byte after the prefix and the following are free.
inline constexpr std::uint8_t kNamesV4[] = {198, 18};                       // 198.18.0.0/16
inline constexpr std::uint8_t kNamesV6[] = {0x20, 0x01, 0x00, 0x02, 0, 0};  // 2001:2::/48

// Privileged ports, which a program in the sandbox can't have: all others are its own to use.
inline constexpr std::uint16_t kRelayPort = 887;
inline constexpr std::uint16_t kProxyPort = 888;

struct RedirectAddress {
  bool is_v6;
  std::uint8_t bytes[16];  // network order
};

struct RedirectPlan {
  std::span<const std::uint16_t> ports;        // of TCP, to the ranges and addresses; all others are refused
  std::span<const RedirectAddress> addresses;  // beyond the ranges
  std::uint32_t connections_per_second = 0;    // begun ones that the kernel remembers; 0: no bound
};

struct RedirectSockets {
  int relay_v4 = -1;  // listening: redirected connections; getsockopt(2) SO_ORIGINAL_DST tells where to
  int relay_v6 = -1;  // -1 where the host has no IPv6
  int proxy = -1;     // listening on 127.0.0.1
  int dns_udp = -1;   // bound to port 53 of 127.0.0.1
  int dns_tcp = -1;   // listening there
  int refusals = -1;  // netlink: the heads of refused packets (NFLOG); -1 where the kernel has no nfnetlink_log
};

// Sets all up in the calling thread's network namespace, whose loopback is up. 0, or -errno; the sockets are the
// caller's to close.
int make_redirect(const RedirectPlan& plan, RedirectSockets* sockets);

}  // namespace belljar::host
