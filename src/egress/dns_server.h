// The sandbox's DNS server: listed names have synthetic addresses, all others don't exist. It asks nobody.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "egress/allowlist.h"
#include "egress/audit.h"
#include "egress/dns_message.h"
#include "egress/poller.h"
#include "egress/synthetic_names.h"

namespace belljar::egress {

enum class Ipv6 : bool { off, on };

// The answer to one question; empty where none is due.
std::string answer_dns(std::string_view message, const Allowlist& allowlist, SyntheticNames& names, Audit& audit,
                       Ipv6 ipv6);

class DnsServer final : public Waiter {
 public:
  // `udp` is bound, `tcp` listens; both don't block.
  DnsServer(Poller& poller, const Allowlist& allowlist, SyntheticNames& names, Audit& audit, Ipv6 ipv6);
  ~DnsServer() override;
  DnsServer(const DnsServer&) = delete;
  DnsServer& operator=(const DnsServer&) = delete;
  bool start(Fd udp, Fd tcp);

  void wake(std::uint32_t events, unsigned tag) override;
  void check_time(std::uint64_t now);

 private:
  static constexpr unsigned kUdp = 0;  // tags
  static constexpr unsigned kTcp = 1;
  class Client;

  std::string answer(std::string_view message) { return answer_dns(message, allowlist_, names_, audit_, ipv6_); }
  void read_udp();
  void accept_tcp();

  Poller& poller_;
  const Allowlist& allowlist_;
  SyntheticNames& names_;
  Audit& audit_;
  Ipv6 ipv6_;
  Fd udp_;
  Fd tcp_;
  Poller::Slot udp_slot_ = 0;
  Poller::Slot tcp_slot_ = 0;
  std::list<std::unique_ptr<Client>> clients_;
};

}  // namespace belljar::egress
