#include "egress/resolver.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>

#include "egress/socket_address.h"

namespace belljar::egress {
namespace {

constexpr unsigned kDnsPort = 53;
constexpr std::uint64_t kAttemptMs = 2000;
constexpr unsigned kRounds = 2;
constexpr std::uint64_t kResolutionDelayMs = 50;  // RFC 8305, section 3
constexpr std::size_t kServersMax = 3;            // MAXNS of resolv.conf(5)
constexpr std::size_t kAddressesMax = 32;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t start = line.find_first_not_of(" \t\r");
    if (start == std::string_view::npos) return words;
    line.remove_prefix(start);
    words.push_back(line.substr(0, line.find_first_of(" \t\r")));
    line.remove_prefix(words.back().size());
  }
}

template <typename Use>
void for_each_line(std::string_view text, Use use) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    use(words_of(line.substr(0, line.find_first_of("#;"))));
  }
}

// In any form, unlike parse_ip(): the host's administrator wrote it, and nothing is decided by its text.
std::optional<IpAddress> parse_any_ip(const std::string& text) {
  IpAddress address;
  address.family = text.find(':') == std::string::npos ? IpFamily::v4 : IpFamily::v6;
  const int family = address.family == IpFamily::v4 ? AF_INET : AF_INET6;
  if (::inet_pton(family, text.c_str(), address.bytes.data()) != 1) return std::nullopt;
  return address;
}

// The zone is the name or the number of an interface; one that is not there makes the line useless.
std::optional<NameServer> parse_server(std::string_view text) {
  const std::size_t percent = text.find('%');
  const auto address = parse_any_ip(std::string(text.substr(0, percent)));
  if (!address || percent == std::string_view::npos)
    return address ? std::optional(NameServer{*address}) : std::nullopt;
  const std::string zone(text.substr(percent + 1));
  unsigned interface = ::if_nametoindex(zone.c_str());
  if (interface == 0) std::from_chars(zone.data(), zone.data() + zone.size(), interface);
  if (interface == 0 || kind_of(*address) != IpKind::link_local) return std::nullopt;
  return NameServer{*address, interface};
}

std::uint16_t random_id() {
  std::uint16_t id = 0;
  while (::getrandom(&id, sizeof id, 0) != sizeof id) {
  }
  return id;
}

}  // namespace

ResolverFiles read_resolver_files(std::string_view resolv_conf, std::string_view hosts) {
  ResolverFiles files;
  for_each_line(resolv_conf, [&](const std::vector<std::string_view>& words) {
    if (words.size() < 2 || words[0] != "nameserver" || files.servers.size() == kServersMax) return;
    if (const auto server = parse_server(words[1])) files.servers.push_back(*server);
  });
  constexpr IpAddress kLoopback{.family = IpFamily::v4, .bytes = {127, 0, 0, 1}};
  if (files.servers.empty()) files.servers.push_back({kLoopback});  // as resolv.conf(5) says
  for_each_line(hosts, [&](const std::vector<std::string_view>& words) {
    const auto address = words.empty() ? std::nullopt : parse_any_ip(std::string(words[0]));
    if (!address) return;
    for (const std::string_view word : std::span(words).subspan(1)) {
      if (const auto host = parse_host(word); host && !host->is_literal()) files.hosts[host->text].push_back(*address);
    }
  });
  return files;
}

// One question to one server after the other, by UDP, and by TCP where the answer does not fit.
class Lookup::Query final : public Waiter {
 public:
  Query(Lookup& lookup, std::uint16_t type) : lookup_(lookup), type_(type) {}
  ~Query() override { close(); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  void start() { try_next_server(); }
  bool is_done() const { return is_done_; }
  const std::vector<IpAddress>& addresses() const { return addresses_; }

  void check_time(std::uint64_t now) {
    if (!is_done_ && now >= deadline_ms_) try_next_server();
  }

  void wake(std::uint32_t events, unsigned /*tag*/) override {
    if (is_tcp_) {
      move_tcp(events);
    } else {
      read_udp();
    }
    lookup_.finish_if_done();  // may end this object
  }

 private:
  void close() {
    if (socket_.is_open()) lookup_.resolver_.poller_.remove(socket_.get(), slot_);
    socket_.reset();
    pending_.clear();
    received_.clear();
  }

  bool connect_to_server(int kind, std::uint32_t events) {
    const NameServer& server = lookup_.resolver_.files_.servers[attempt_ % lookup_.resolver_.files_.servers.size()];
    SocketAddress address(server.address, kDnsPort);
    if (server.interface != 0) reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_scope_id = server.interface;
    socket_ = Fd(::socket(address.storage.ss_family, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_.is_open()) return false;
    if (!lookup_.resolver_.poller_.add(socket_.get(), events, this, 0, &slot_)) {
      socket_.reset();
      return false;
    }
    if (::connect(socket_.get(), address.get(), address.size) == 0 || errno == EINPROGRESS) return true;
    close();
    return false;
  }

  void try_next_server() {
    const std::size_t attempts = kRounds * lookup_.resolver_.files_.servers.size();
    for (; next_attempt_ < attempts;) {
      close();
      attempt_ = next_attempt_++;
      is_tcp_ = false;
      id_ = random_id();
      deadline_ms_ = now_ms() + kAttemptMs;
      const std::string question = make_dns_question(id_, lookup_.name_, type_);
      if (connect_to_server(SOCK_DGRAM, EPOLLIN) &&
          ::send(socket_.get(), question.data(), question.size(), MSG_NOSIGNAL) > 0) {
        return;
      }
    }
    close();
    is_done_ = true;
  }

  void use_answer(const DnsAnswer& answer) {
    if (answer.is_truncated && !is_tcp_) {
      ask_by_tcp();
      return;
    }
    if (answer.code != DnsCode::no_error && answer.code != DnsCode::no_such_name) {
      try_next_server();
      return;
    }
    addresses_ = answer.addresses;
    close();
    is_done_ = true;
  }

  void read_udp() {
    std::array<char, 4096> bytes;
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count < 0) {
      if (errno != EAGAIN && errno != EINTR) try_next_server();
      return;
    }
    const auto answer = parse_dns_answer({bytes.data(), static_cast<std::size_t>(count)}, id_, lookup_.name_, type_);
    if (answer) use_answer(*answer);  // anything else is not the answer that is waited for
  }

  void ask_by_tcp() {
    close();
    is_tcp_ = true;
    deadline_ms_ = now_ms() + kAttemptMs;
    const std::string question = make_dns_question(id_, lookup_.name_, type_);
    pending_ = {static_cast<char>(question.size() >> 8), static_cast<char>(question.size())};
    pending_ += question;
    if (!connect_to_server(SOCK_STREAM, EPOLLIN | EPOLLOUT)) try_next_server();
  }

  void move_tcp(std::uint32_t events) {
    if (!pending_.empty() && (events & EPOLLOUT) != 0) {
      const ssize_t count = ::send(socket_.get(), pending_.data(), pending_.size(), MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN) return try_next_server();
      if (count > 0) pending_.erase(0, static_cast<std::size_t>(count));
      if (pending_.empty()) lookup_.resolver_.poller_.change(socket_.get(), EPOLLIN, slot_);
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
    std::array<char, 4096> bytes;
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return try_next_server();
    received_.append(bytes.data(), static_cast<std::size_t>(count));
    if (received_.size() < 2) return;
    const std::size_t size = static_cast<std::size_t>(static_cast<unsigned char>(received_[0])) << 8 |
                             static_cast<unsigned char>(received_[1]);
    if (received_.size() < 2 + size) return;
    const auto answer = parse_dns_answer(std::string_view(received_).substr(2, size), id_, lookup_.name_, type_);
    if (answer) {
      use_answer(*answer);
    } else {
      try_next_server();
    }
  }

  Lookup& lookup_;
  std::uint16_t type_;
  std::uint16_t id_ = 0;
  std::size_t attempt_ = 0;
  std::size_t next_attempt_ = 0;
  std::uint64_t deadline_ms_ = 0;
  Fd socket_;
  Poller::Slot slot_ = 0;
  bool is_tcp_ = false;
  std::string pending_;
  std::string received_;
  bool is_done_ = false;
  std::vector<IpAddress> addresses_;
};

Lookup::Lookup(Resolver& resolver, std::string name, Resolver::Done done)
    : resolver_(resolver), name_(std::move(name)), done_(std::move(done)) {}

Lookup::~Lookup() = default;

void Lookup::start() {
  for (const std::uint16_t type : {kDnsTypeA, kDnsTypeAaaa}) queries_.push_back(std::make_unique<Query>(*this, type));
  for (const auto& query : queries_) query->start();
  finish_if_done();
}

void Lookup::check_time(std::uint64_t now) {
  for (const auto& query : queries_) query->check_time(now);
  finish_if_done();
}

bool Lookup::has_waited_for_v6() {
  const Query& v4 = *queries_.front();
  if (!v4.is_done() || v4.addresses().empty()) return false;
  const std::uint64_t now = now_ms();
  if (v6_deadline_ms_ == 0) v6_deadline_ms_ = now + kResolutionDelayMs;
  if (now >= v6_deadline_ms_) return true;
  resolver_.poller_.want_turn_by(v6_deadline_ms_);
  return false;
}

void Lookup::finish_if_done() {
  if (!done_) return;
  const bool is_all = std::ranges::all_of(queries_, [](const auto& query) { return query->is_done(); });
  if (!is_all && !has_waited_for_v6()) return;
  std::vector<IpAddress> addresses;
  for (const auto& query : queries_) {
    addresses.insert(addresses.end(), query->addresses().begin(), query->addresses().end());
  }
  addresses.resize(std::min(addresses.size(), kAddressesMax));
  std::exchange(done_, nullptr)(addresses);  // may end this object
}

std::unique_ptr<Lookup> Resolver::look_up(const std::string& name, Done done) {
  const auto found = files_.hosts.find(name);
  if (found != files_.hosts.end()) {
    done(found->second);
    return nullptr;
  }
  return std::make_unique<Lookup>(*this, name, std::move(done));
}

}  // namespace belljar::egress
