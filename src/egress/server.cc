#include "egress/server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "egress/flow.h"
#include "egress/heap.h"
#include "egress/link.h"
#include "egress/socket_address.h"

namespace belljar::egress {
namespace {

constexpr std::uint64_t kCheckEveryMs = 500;
constexpr std::uint64_t kPauseMs = 20;
constexpr unsigned kAcceptsPerTurn = 16;
constexpr double kBurstSeconds = 2;
// Of the heap, for what all connections together collect, and for each that may have two ends of TLS.
constexpr std::ptrdiff_t kMemoryBytes = std::ptrdiff_t{16} << 20;
constexpr std::ptrdiff_t kTlsBytesPerConnection = std::ptrdiff_t{80} << 10;
// A connection that is read has some buffers; those of all take a part of the memory.
constexpr std::size_t kBuffersOfAllBytes = std::size_t{2} << 20;
constexpr std::size_t kBufferBytesMin = std::size_t{8} << 10;
constexpr std::size_t kBufferBytesMax = std::size_t{128} << 10;
// SO_ORIGINAL_DST of <linux/netfilter_ipv4.h>, a header that does not go with <netinet/in.h>.
constexpr int kOriginalTarget = 80;

// Where the connection was going before it was redirected.
std::optional<SocketAddress> original_target(int fd, bool is_v6) {
  SocketAddress address;
  const int level = is_v6 ? SOL_IPV6 : SOL_IP;
  if (::getsockopt(fd, level, kOriginalTarget, &address.storage, &address.size) != 0) return std::nullopt;
  return address;
}

}  // namespace

Server::Server(EgressConfig config, ResolverFiles files, Poller poller, Secrets secrets, std::unique_ptr<Tls> tls)
    : config_(std::move(config)),
      poller_(std::move(poller)),
      allowlist_(config_.rules),
      resolver_(poller_, std::move(files)),
      secrets_(std::move(secrets)),
      tls_(std::move(tls)),
      services_{poller_, allowlist_, audit_, resolver_, names_, secrets_, tls_.get(), config_.limits, {}},
      tokens_(kBurstSeconds * static_cast<double>(config_.limits.connections_per_second)),
      memory_bytes_max_(kMemoryBytes) {
  if (tls_) memory_bytes_max_ += kTlsBytesPerConnection * static_cast<std::ptrdiff_t>(config_.limits.connections);
}

Server::~Server() = default;

bool Server::run(int link_fd, int control_fd) {
  link_fd_ = link_fd;
  const bool is_added = poller_.add(link_fd, EPOLLIN, this, kLink, &link_slot_) &&
                        poller_.add(control_fd, EPOLLIN, this, kControl, &control_slot_);
  if (!is_added) return false;
  tokens_ms_ = checked_ms_ = now_ms();
  memory_bytes_before_ = heap_bytes;
  while (!is_told_to_end_ && !is_broken_) {
    const bool is_paused = std::ranges::any_of(listeners_, [](const Listener& each) { return each.is_paused; });
    const int timeout_ms = is_paused              ? static_cast<int>(kPauseMs)
                           : connections_.empty() ? -1
                                                  : static_cast<int>(kCheckEveryMs);
    poller_.run_once(timeout_ms);
    const std::uint64_t now = now_ms();
    const bool is_turn = poller_.take_turn(now);
    if (is_turn || now - checked_ms_ >= kCheckEveryMs) check_times(now);
    drop_closed();
    if (has_spent_memory()) make_room();
    resume_listeners();
  }
  connections_.clear();  // each adds what it did
  // What was refused last may not have been read yet.
  if (refused_) refused_->wake(EPOLLIN, 0);
  return !is_broken_;
}

void Server::drop_closed() {
  std::erase_if(connections_, [](const auto& connection) { return connection->is_closed(); });
  share_memory();
}

void Server::share_memory() {
  const std::size_t count = std::max<std::size_t>(connections_.size(), 1);
  services_.buffer_bytes_max = std::clamp(kBuffersOfAllBytes / count, kBufferBytesMin, kBufferBytesMax);
}

bool Server::has_spent_memory() const {
  const std::ptrdiff_t shared = memory_bytes_before_ + (tls_ ? tls_->trust_bytes() : 0);
  return heap_bytes - shared > memory_bytes_max_;
}

// Those that hold most go: none waits for memory that another one may never give back.
void Server::make_room() {
  while (has_spent_memory() && !connections_.empty()) {
    (*std::ranges::max_element(connections_, {}, [](const auto& each) { return each->held_bytes(); }))->end_at_memory();
    drop_closed();
  }
}

void Server::check_times(std::uint64_t now) {
  checked_ms_ = now;
  for (const auto& connection : connections_) connection->check_time(now);
  if (dns_) dns_->check_time(now);
}

void Server::wake(std::uint32_t /*events*/, unsigned tag) {
  switch (tag) {
    case kControl:
      is_told_to_end_ = true;
      return;
    case kLink:
      receive_sockets(link_fd_);
      return;
    default:
      try {
        accept_from(tag);
      } catch (const std::bad_alloc&) {  // the connection was closed by it, and others may leave room for the next
      }
  }
}

void Server::receive_sockets(int link_fd) {
  LinkMessage message{};
  iovec data{&message, sizeof message};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kLinkSockets)> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t count = ::recvmsg(link_fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  poller_.remove(link_fd, link_slot_);
  if (count == 0) return;  // the sandbox ended before it had a network
  const cmsghdr* part = CMSG_FIRSTHDR(&header);
  std::array<Fd, kLinkSockets> sockets;
  const auto wanted = static_cast<std::size_t>(__builtin_popcount(message.present));
  if (count != sizeof message || part == nullptr || part->cmsg_type != SCM_RIGHTS ||
      part->cmsg_len != CMSG_LEN(sizeof(int) * wanted) || message.present >> kLinkSockets != 0) {
    is_broken_ = true;
    return;
  }
  const unsigned char* next = CMSG_DATA(part);
  for (unsigned i = 0; i < kLinkSockets; ++i) {
    if ((message.present >> i & 1U) == 0) continue;
    int fd = -1;
    std::memcpy(&fd, next, sizeof fd);
    next += sizeof fd;
    sockets[i] = Fd(fd);
  }
  for (unsigned tag = kRelayV4; tag < kListeners; ++tag) {
    Listener& listener = listeners_[tag];
    listener.socket = std::move(sockets[tag]);
    if (listener.socket.is_open() && !poller_.add(listener.socket.get(), EPOLLIN, this, tag, &listener.slot))
      is_broken_ = true;
  }
  const Ipv6 ipv6 = listeners_[kRelayV6].socket.is_open() ? Ipv6::on : Ipv6::off;
  dns_ = std::make_unique<DnsServer>(poller_, allowlist_, names_, audit_, ipv6);
  constexpr unsigned kDnsUdp = 3;
  constexpr unsigned kDnsTcp = 4;
  constexpr unsigned kRefusals = 5;
  if (!dns_->start(std::move(sockets[kDnsUdp]), std::move(sockets[kDnsTcp]))) is_broken_ = true;
  if (!sockets[kRefusals].is_open()) return;
  refused_ = std::make_unique<RefusedPackets>(allowlist_, names_, audit_);
  if (!refused_->start(poller_, std::move(sockets[kRefusals]))) is_broken_ = true;
}

// New connections come out of a bucket that fills by the second; beyond it they wait in the kernel's queue.
bool Server::has_token(std::uint64_t now) {
  const auto rate = static_cast<double>(config_.limits.connections_per_second);
  tokens_ = std::min(kBurstSeconds * rate, tokens_ + rate * static_cast<double>(now - tokens_ms_) / 1000);
  tokens_ms_ = now;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

void Server::pause_listeners() {
  for (Listener& listener : listeners_) {
    if (!listener.socket.is_open() || listener.is_paused) continue;
    poller_.change(listener.socket.get(), 0, listener.slot);
    listener.is_paused = true;
  }
}

void Server::resume_listeners() {
  for (Listener& listener : listeners_) {
    if (!listener.is_paused) continue;
    poller_.change(listener.socket.get(), EPOLLIN, listener.slot);
    listener.is_paused = false;
  }
}

void Server::accept_from(unsigned tag) {
  for (unsigned i = 0; i < kAcceptsPerTurn; ++i) {
    if (!has_token(now_ms())) return pause_listeners();
    Fd client(::accept4(listeners_[tag].socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client.is_open()) {
      tokens_ += 1;
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) pause_listeners();
      return;
    }
    start_connection(tag, std::move(client));
  }
}

// By the name, where the address stands for one.
std::string Server::shown_target(const IpAddress& address, unsigned port) const {
  const auto name = names_.name_of(address);
  return format_authority(name ? Host{*name, std::nullopt} : Host{format_ip(address), address}, port);
}

void Server::start_connection(unsigned tag, Fd client) {
  prepare_for_flow(client.get());
  std::optional<SocketAddress> target;
  if (tag != kProxy) target = original_target(client.get(), tag == kRelayV6);
  const auto address = target ? target->address() : std::nullopt;
  if (tag != kProxy && !address) return;
  bool is_full = connections_.size() >= config_.limits.connections;
  if (is_full) {
    drop_closed();
    is_full = connections_.size() >= config_.limits.connections;
  }
  const bool is_spent = audit_.bytes_total() > config_.limits.bytes;
  if (is_full || is_spent) {
    const std::string shown = address ? shown_target(*address, target->port()) : "the proxy";
    audit_.refuse(shown, is_full ? Decision{.reason = fmt::format("{} connections at once", config_.limits.connections),
                                            .hint = "--net-connections"}
                                 : Decision{.reason = fmt::format("the limit of {} bytes in all", config_.limits.bytes),
                                            .hint = "--net-size"});
    const linger at_once{1, 0};
    ::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return;
  }
  connections_.push_back(std::make_unique<Connection>(services_, std::move(client)));
  share_memory();
  if (address) {
    connections_.back()->start_redirected(*address, target->port());
  } else {
    connections_.back()->start_proxied();
  }
}

}  // namespace belljar::egress
