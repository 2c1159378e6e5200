// Names to addresses, by the host's /etc/hosts and the servers of its resolv.conf(5). Not getaddrinfo(3): it would
// block, and try names that were not checked ("search" of resolv.conf).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "egress/dns_message.h"
#include "egress/poller.h"
#include "spec/host_name.h"

namespace belljar::egress {

struct NameServer {
  IpAddress address;
  unsigned interface = 0;  // of a link-local address: its zone

  bool operator==(const NameServer&) const = default;
};

struct ResolverFiles {
  std::vector<NameServer> servers;
  std::map<std::string, std::vector<IpAddress>, std::less<>> hosts;
};

// From the texts of the two files, whose addresses may be in any form that inet_pton(3) takes, with a zone for
// link-local servers (fe80::1%eth0). Lines that are not understood are passed over, as resolvers do.
ResolverFiles read_resolver_files(std::string_view resolv_conf, std::string_view hosts);

class Lookup;

class Resolver {
 public:
  Resolver(Poller& poller, ResolverFiles files) : poller_(poller), files_(std::move(files)) {}

  // Calls `done` once, later or at once, with all addresses; empty where there are none, or no server answered.
  // Destroying the lookup ends it without a call.
  using Done = std::function<void(const std::vector<IpAddress>&)>;
  std::unique_ptr<Lookup> look_up(const std::string& name, Done done);

 private:
  friend class Lookup;
  Poller& poller_;
  ResolverFiles files_;
};

// One name: both families are asked for at the same time. IPv4 addresses are dialled first, so where there are some,
// the others are waited for a moment only: name servers that don't answer for them are not rare.
class Lookup final {
 public:
  Lookup(Resolver& resolver, std::string name, Resolver::Done done);
  ~Lookup();
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  void start();
  // To be called now and then: asks the next server where one does not answer.
  void check_time(std::uint64_t now);

 private:
  class Query;
  void finish_if_done();
  bool has_waited_for_v6();

  Resolver& resolver_;
  std::string name_;
  Resolver::Done done_;
  std::vector<std::unique_ptr<Query>> queries_;  // IPv4, IPv6
  std::uint64_t v6_deadline_ms_ = 0;             // once there are IPv4 addresses
};

}  // namespace belljar::egress
