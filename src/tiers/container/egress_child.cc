#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "egress/link.h"
#include "host/descriptors.h"
#include "host/redirect.h"
#include "tiers/container/init_steps_child.h"

namespace belljar::container {

void make_egress(const InitPlan& plan) {
  constexpr SetupStep kStep = SetupStep::network;
  host::RedirectSockets made;
  const host::RedirectPlan redirect{{plan.egress_ports.data(), plan.egress_port_count},
                                    {plan.egress_addresses.data(), plan.egress_address_count},
                                    plan.egress_rate};
  check(plan, kStep, host::make_redirect(redirect, &made));
  const int sockets[egress::kLinkSockets] = {made.relay_v4, made.relay_v6, made.proxy,
                                             made.dns_udp,  made.dns_tcp,  made.refusals};
  egress::LinkMessage message{0};
  int present[egress::kLinkSockets];
  unsigned count = 0;
  for (unsigned i = 0; i < egress::kLinkSockets; ++i) {
    if (sockets[i] < 0) continue;
    message.present |= 1U << i;
    present[count++] = sockets[i];
  }
  const std::span<const std::byte> bytes = std::as_bytes(std::span(&message, 1));
  check(plan, kStep, static_cast<int>(host::send_with_descriptors(plan.egress_link, bytes, {present, count})));
  for (unsigned i = 0; i < count; ++i) ::close(present[i]);
  ::close(plan.egress_link);
}

}  // namespace belljar::container
