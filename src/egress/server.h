// All of one sandbox's way out: accepts, decides, dials and relays, until it is told to end.
#pragma once

#include <list>
#include <memory>

#include "egress/connection.h"
#include "egress/dns_server.h"
#include "egress/refused_packets.h"
#include "egress/resolver.h"
#include "host/redirect.h"

namespace belljar::egress {

class Server final : public Waiter {
 public:
  // `tls` is null where nothing is to be inspected.
  Server(EgressConfig config, ResolverFiles files, Poller poller, Secrets secrets, std::unique_ptr<Tls> tls);
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves until `control_fd` has something to read or is closed. `link_fd` brings the sockets inside, once. False
  // where they were not what they had to be: then nothing was served.
  bool run(int link_fd, int control_fd);

  const EgressReport& report() const { return audit_.report(); }

  void wake(std::uint32_t events, unsigned tag) override;

 private:
  // Tags: first the listeners, in the order of host::RedirectSockets.
  static constexpr unsigned kRelayV4 = 0;
  static constexpr unsigned kRelayV6 = 1;
  static constexpr unsigned kProxy = 2;
  static constexpr unsigned kListeners = 3;
  static constexpr unsigned kLink = 3;
  static constexpr unsigned kControl = 4;
  struct Listener {
    Fd socket;
    Poller::Slot slot = 0;
    bool is_paused = false;
  };

  void receive_sockets(int link_fd);
  void accept_from(unsigned tag);
  bool has_token(std::uint64_t now);
  void pause_listeners();
  void resume_listeners();
  std::string shown_target(const IpAddress& address, unsigned port) const;
  void start_connection(unsigned tag, Fd client);
  void check_times(std::uint64_t now);
  void drop_closed();
  void share_memory();
  bool has_spent_memory() const;
  void make_room();

  EgressConfig config_;
  Poller poller_;
  Allowlist allowlist_;
  Audit audit_;
  Resolver resolver_;
  SyntheticNames names_;
  Secrets secrets_;
  std::unique_ptr<Tls> tls_;
  Services services_;
  std::unique_ptr<DnsServer> dns_;
  std::unique_ptr<RefusedPackets> refused_;
  Listener listeners_[kListeners];
  int link_fd_ = -1;
  Poller::Slot link_slot_ = 0;
  Poller::Slot control_slot_ = 0;
  std::list<std::unique_ptr<Connection>> connections_;
  double tokens_ = 0;
  std::uint64_t tokens_ms_ = 0;
  std::uint64_t checked_ms_ = 0;
  std::ptrdiff_t memory_bytes_max_ = 0;
  std::ptrdiff_t memory_bytes_before_ = 0;  // of the heap, when no connection was there
  bool is_told_to_end_ = false;
  bool is_broken_ = false;
};

}  // namespace belljar::egress
