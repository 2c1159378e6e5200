#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "egress/link.h"
#include "host/redirect.h"
#include "tiers/container/init_steps_child.h"

namespace belljar::container {

void make_egress(const InitPlan& plan) {
  constexpr SetupStep kStep = SetupStep::network;
  host::RedirectSockets made;
  const host::RedirectPlan redirect{{plan.egress_ports.data(), plan.egress_port_count},
                                    {plan.egress_addresses.data(), plan.egress_address_count}};
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
  iovec data{&message, sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof present)] = {};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = CMSG_SPACE(sizeof(int) * count);
  cmsghdr* const part = CMSG_FIRSTHDR(&header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int) * count);
  std::memcpy(CMSG_DATA(part), present, sizeof(int) * count);
  check(plan, kStep, errno_result(::sendmsg(plan.egress_link, &header, MSG_NOSIGNAL)));
  for (unsigned i = 0; i < count; ++i) ::close(present[i]);
  ::close(plan.egress_link);
}

}  // namespace belljar::container
