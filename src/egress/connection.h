// One connection of a program in the sandbox, from its acceptance to its end: where to, may it, dial, watch, relay.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "egress/allowlist.h"
#include "egress/audit.h"
#include "egress/client_hello.h"
#include "egress/flow.h"
#include "egress/heap.h"
#include "egress/http_request.h"
#include "egress/inspection.h"
#include "egress/poller.h"
#include "egress/resolver.h"
#include "egress/secrets.h"
#include "egress/synthetic_names.h"

namespace belljar::egress {

inline constexpr std::uint64_t kFirstBytesMs = 30000;  // in which what is asked for must be told

// What all connections share. It outlives them.
struct Services {
  Poller& poller;
  const Allowlist& allowlist;
  Audit& audit;
  Resolver& resolver;
  const SyntheticNames& names;
  const Secrets& secrets;
  Tls* tls;  // null: there is nothing to inspect
  EgressLimits limits;
  FlowBuffer flow_buffer;
  std::size_t buffer_bytes_max = 0;  // of each buffer of what is only passed on; less the more connections there are
};

class Connection final : public Waiter {
 public:
  Connection(Services& services, Fd client) : services_(services), client_(std::move(client)) {}
  ~Connection() override { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // A connection that was redirected on its way to `address` and `port`.
  void start_redirected(const IpAddress& address, unsigned port);
  // A connection to the proxy, which is still to say where to.
  void start_proxied();

  void wake(std::uint32_t events, unsigned tag) override;

  // Ends what has waited too long.
  void check_time(std::uint64_t now);

  // What it keeps in memory, with its part of the libraries'; no less than 0.
  std::ptrdiff_t held_bytes() const { return held_bytes_; }
  // Ends it and frees that, where the memory of all is used up. Not from within its own functions.
  void end_at_memory();

  bool is_closed() const { return !client_.is_open(); }
  void close();

 private:
  // Does what may allocate, and adds up what it left allocated.
  template <typename Act>
  void account(Act act);
  void act_on(std::uint32_t events, unsigned tag);
  static constexpr unsigned kClient = 0;  // tags
  static constexpr unsigned kUpstream = 1;
  enum class Entry { redirected, connect, socks, absolute };  // by which the program came
  enum class Protocol {
    proxy,      // the client speaks to the proxy
    unknown,    // its first bytes are awaited
    opaque,     // relayed as they are
    greeting,   // TLS handshakes with both sides
    http,       // requests are read
    http2,      // these too
    switching,  // a request to go on with another protocol; its answer is awaited
    refused,    // the last words are being written; what the client sends is dropped
  };
  struct Interest {
    std::uint32_t events = 0;
    Poller::Slot slot = 0;
    bool is_added = false;
    bool may_have_bytes = true;  // false: all that had come was read, and the poller has not spoken since
  };

  // --- Where to (connection_target.cc)
  void read_proxy();
  void read_proxy_socks();
  void read_proxy_http();
  void accept_connect(const HttpHead& head);
  void accept_absolute(const HttpHead& head);
  void go_to(Host host, unsigned port);
  bool map_synthetic(Host* host, unsigned port);
  std::string target_text() const { return host_.text.empty() ? "the proxy" : format_authority(host_, port_); }

  // --- The way there
  void dial();
  void use_addresses(const std::vector<IpAddress>& addresses);
  void connect_to_next();
  void finish_connect();
  void fail_dial(std::string_view why);

  // --- TLS that ends here, and answers that are read (connection_inspect.cc)
  bool must_inspect(Transport transport) const;
  bool is_inspecting() const;
  Transport transport() const { return inspection_ && inspection_->is_tls ? Transport::tls : Transport::plain; }
  void start_tls(const ClientHello& hello);
  void start_reading_answers();
  void move_inspected();
  void greet();
  bool greet_server();
  void greet_program();
  bool take_from_program();
  bool take_from_server();
  bool may_take_from_program() const;
  bool may_take_from_server() const;
  void use_plain_bytes();
  void read_answers();
  void relay_http2();
  void note_resets(const Http2Relay::Resets& resets);
  RequestVerdict judge_http2(const Http2Request& request);
  bool give(int fd, TlsEnd* end, std::string* plain, bool is_sent);
  bool give_all();
  bool has_bytes_to_give() const;
  bool has_bytes_to_use() const;
  void end_inspected();
  std::uint32_t wanted_of_program() const;
  std::uint32_t wanted_of_server() const;

  // --- What is spoken
  void look_at_first_bytes();
  void wait_for_first_bytes();
  void check_hello();
  void start_http();
  void start_opaque();
  void read_requests();
  bool is_of_secret(std::string_view trailer) const;
  bool take_request(const HttpHead& head, bool ends_request);
  Decision decide_request(const RequestLine& line, std::span<const HttpHeader> headers) const;
  bool take_upgrade(const HttpHead& head, std::string_view upgrade, bool ends_request, Secrets::Headers* secrets);
  void look_at_switch();

  // --- Refusals: each is recorded, and said in the words of the protocol.
  void refuse(const Decision& decision);
  void refuse_malformed(std::string_view reason);
  void answer_refusal(unsigned http_status, std::string_view reason);
  void say_last_words(std::string text);
  void reset();

  // --- Bytes
  bool may_read_client() const;
  bool read_client();
  void move();
  void use_client_bytes();
  void move_up();
  void move_down();
  bool write_pending(int fd, std::string* pending, bool is_sent);
  void count(std::uint64_t sent, std::uint64_t received);
  std::uint64_t bytes_left() const;  // of the limit
  void begin_request(std::size_t rule);
  void record_use();
  void end_at_limit(std::string_view limit, std::string_view flag);
  void end_at_size_limit();
  void end_waiting();
  void update_interest();
  std::uint32_t wanted_of_client() const;
  std::uint32_t wanted_of_upstream() const;
  void apply(Interest& interest, int fd, std::uint32_t events, unsigned tag);

  Services& services_;
  Fd client_;
  Fd upstream_;
  Interest client_interest_;
  Interest upstream_interest_;
  Entry entry_ = Entry::redirected;
  Protocol protocol_ = Protocol::unknown;
  Host host_;
  unsigned port_ = 0;
  unsigned socks_version_ = 5;
  bool is_socks_greeted_ = false;
  bool is_asking_ = false;  // within dial(): what comes of the answer is done there
  bool is_dialling_ = false;
  bool is_connected_ = false;
  bool client_ended_ = false;
  bool upstream_told_end_ = false;
  bool client_told_end_ = false;
  bool is_one_request_ = false;            // absolute-form: the connection ends with its answer
  bool is_whole_ = false;                  // the request that began last was read to its end
  bool is_request_over_ = false;           // of is_one_request_
  bool is_reached_ = false;                // was connected, and is not recorded whole yet
  std::size_t rule_ = kNoRule;             // that allows what is done now
  std::vector<std::size_t> rules_before_;  // under which something was recorded
  std::uint64_t sent_bytes_ = 0;           // under rule_
  std::uint64_t received_bytes_ = 0;
  std::unique_ptr<Lookup> lookup_;
  std::vector<IpAddress> addresses_;
  std::size_t next_address_ = 0;
  std::string from_client_;  // read, and not used yet
  std::string to_upstream_;  // to be written before anything else
  std::string to_client_;
  std::size_t dropped_bytes_ = 0;
  std::string last_words_;  // for the client, once upstream has said all
  RequestReader requests_;
  std::vector<std::string> secret_names_;  // of the headers that the relay gave the present request
  bool is_held_back_ = false;              // requests wait until upstream has taken what was read
  std::uint64_t requests_taken_ = 0;
  std::unique_ptr<Inspection> inspection_;
  Flow up_;
  Flow down_;
  std::uint64_t deadline_ms_ = 0;  // of the present step; 0: none
  std::uint64_t dial_deadline_ms_ = 0;
  std::uint64_t active_ms_ = 0;  // when bytes last moved
  std::uint64_t begun_ms_ = now_ms();
  std::ptrdiff_t held_bytes_ = 0;
};

template <typename Act>
void Connection::account(Act act) {
  const std::ptrdiff_t before = heap_bytes;
  try {
    act();
  } catch (const std::bad_alloc&) {
    end_at_memory();
  }
  held_bytes_ += heap_bytes - before;
}

}  // namespace belljar::egress
