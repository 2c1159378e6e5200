#include "egress/dns_server.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "egress/socket_address.h"

namespace belljar::egress {
namespace {

constexpr std::size_t kTcpClientsMax = 32;
constexpr std::uint64_t kTcpIdleMs = 10000;
constexpr std::size_t kTcpBytesMax = 2048;
constexpr unsigned kDatagramsPerTurn = 64;

}  // namespace

std::string answer_dns(std::string_view message, const Allowlist& allowlist, SyntheticNames& names, Audit& audit,
                       Ipv6 ipv6) {
  const auto question = parse_dns_question(message);
  if (!question) return {};
  const bool is_ours = question->klass == kDnsClassIn || question->klass == kDnsTypeAny;
  if (!is_ours) return make_dns_answer(*question, DnsCode::refused, {});
  const Host host{question->name, std::nullopt};
  if (question->name.empty() || !allowlist.names(host)) {
    const Decision no_host{.reason = "default deny", .hint = "nothing: write the host as a rule has it"};
    if (question->name.empty()) {
      audit.refuse("a question that is no host name", no_host);
    } else {
      audit.refuse(question->name, refuse_name(host));
    }
    return make_dns_answer(*question, DnsCode::no_such_name, {});
  }
  const bool is_v4 = question->type == kDnsTypeA || question->type == kDnsTypeAny;
  // Nothing else: services (SVCB, HTTPS) would bring addresses and keys that were not decided on.
  if (!is_v4 && (question->type != kDnsTypeAaaa || ipv6 == Ipv6::off))
    return make_dns_answer(*question, DnsCode::no_error, {});
  const auto address = names.address_of(question->name, is_v4 ? IpFamily::v4 : IpFamily::v6);
  if (address) return make_dns_answer(*question, DnsCode::no_error, {&*address, 1});
  audit.refuse(question->name,
               {.reason = "too many different names", .hint = "nothing: names below a wildcard are bounded"});
  return make_dns_answer(*question, DnsCode::refused, {});
}

// One connection: questions with their lengths before them, answered in turn (RFC 7766).
class DnsServer::Client final : public Waiter {
 public:
  Client(DnsServer& server, Fd socket) : server_(server), socket_(std::move(socket)), active_ms_(now_ms()) {
    if (!server_.poller_.add(socket_.get(), EPOLLIN, this, 0, &slot_)) socket_.reset();
  }
  ~Client() override {
    if (socket_.is_open()) server_.poller_.remove(socket_.get(), slot_);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool is_over(std::uint64_t now) const { return is_over_ || !socket_.is_open() || now - active_ms_ > kTcpIdleMs; }

  void wake(std::uint32_t /*events*/, unsigned /*tag*/) override {
    std::array<char, kTcpBytesMax> bytes;
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return end();
    active_ms_ = now_ms();
    received_.append(bytes.data(), static_cast<std::size_t>(count));
    while (received_.size() >= 2) {
      const std::size_t size = static_cast<std::size_t>(static_cast<unsigned char>(received_[0])) << 8 |
                               static_cast<unsigned char>(received_[1]);
      if (size > kTcpBytesMax) return end();
      if (received_.size() < 2 + size) return;
      const std::string answer = server_.answer(std::string_view(received_).substr(2, size));
      received_.erase(0, 2 + size);
      std::string framed = {static_cast<char>(answer.size() >> 8), static_cast<char>(answer.size())};
      framed += answer;
      // One that does not read its answers loses them.
      const bool is_sent = !answer.empty() && ::send(socket_.get(), framed.data(), framed.size(), MSG_NOSIGNAL) ==
                                                  static_cast<ssize_t>(framed.size());
      if (!is_sent) return end();
    }
  }

 private:
  void end() {
    server_.poller_.remove(socket_.get(), slot_);
    socket_.reset();
    is_over_ = true;
  }

  DnsServer& server_;
  Fd socket_;
  Poller::Slot slot_ = 0;
  std::string received_;
  std::uint64_t active_ms_;
  bool is_over_ = false;
};

DnsServer::DnsServer(Poller& poller, const Allowlist& allowlist, SyntheticNames& names, Audit& audit, Ipv6 ipv6)
    : poller_(poller), allowlist_(allowlist), names_(names), audit_(audit), ipv6_(ipv6) {}

DnsServer::~DnsServer() = default;

bool DnsServer::start(Fd udp, Fd tcp) {
  udp_ = std::move(udp);
  tcp_ = std::move(tcp);
  return poller_.add(udp_.get(), EPOLLIN, this, kUdp, &udp_slot_) &&
         poller_.add(tcp_.get(), EPOLLIN, this, kTcp, &tcp_slot_);
}

void DnsServer::wake(std::uint32_t /*events*/, unsigned tag) {
  if (tag == kUdp) {
    read_udp();
  } else {
    accept_tcp();
  }
}

void DnsServer::read_udp() {
  for (unsigned i = 0; i < kDatagramsPerTurn; ++i) {
    std::array<char, kDnsUdpBytesMax> bytes;
    SocketAddress from;
    const ssize_t count = ::recvfrom(udp_.get(), bytes.data(), bytes.size(), 0, from.get(), &from.size);
    if (count < 0) return;
    const std::string reply = answer({bytes.data(), static_cast<std::size_t>(count)});
    if (!reply.empty()) (void)::sendto(udp_.get(), reply.data(), reply.size(), MSG_NOSIGNAL, from.get(), from.size);
  }
}

void DnsServer::accept_tcp() {
  check_time(now_ms());
  Fd client(::accept4(tcp_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (client.is_open() && clients_.size() < kTcpClientsMax) {
    clients_.push_back(std::make_unique<Client>(*this, std::move(client)));
  }
}

void DnsServer::check_time(std::uint64_t now) {
  std::erase_if(clients_, [&](const auto& client) { return client->is_over(now); });
}

}  // namespace belljar::egress
