// Packets that the rules inside refused, as the kernel reports them (host/redirect.h), put into the audit.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "egress/allowlist.h"
#include "egress/audit.h"
#include "egress/poller.h"
#include "egress/synthetic_names.h"

namespace belljar::egress {

struct RefusedPacket {
  IpAddress address;
  unsigned protocol = 0;  // IPPROTO_*
  unsigned port = 0;      // of TCP and UDP
};

// From the head of a packet, beginning with its IPv4 or IPv6 header.
std::optional<RefusedPacket> parse_packet(std::string_view bytes);

class RefusedPackets final : public Waiter {
 public:
  RefusedPackets(const Allowlist& allowlist, const SyntheticNames& names, Audit& audit)
      : allowlist_(allowlist), names_(names), audit_(audit) {}

  bool start(Poller& poller, Fd netlink);
  void wake(std::uint32_t events, unsigned tag) override;

 private:
  void record(const RefusedPacket& packet);

  const Allowlist& allowlist_;
  const SyntheticNames& names_;
  Audit& audit_;
  Fd netlink_;
  Poller::Slot slot_ = 0;
};

}  // namespace belljar::egress
