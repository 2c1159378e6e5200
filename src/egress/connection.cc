#include "egress/connection.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "egress/client_hello.h"
#include "egress/socket_address.h"
#include "egress/socks.h"

namespace belljar::egress {
namespace {

constexpr std::uint64_t kDialMs = 10000;
constexpr std::uint64_t kDialOneOfManyMs = 3000;
constexpr std::uint64_t kLastWordsMs = 5000;
constexpr std::size_t kDroppedBytesMax = std::size_t{256} << 10;
constexpr std::size_t kClientBytesMax = std::size_t{128} << 10;  // room for the longest head
constexpr std::string_view kNotReached = "nothing: a rule allows it, but it was not reached";
constexpr unsigned char kTlsHandshake = 22;
// Alert "access_denied", fatal (RFC 8446, section 6).
constexpr std::string_view kTlsRefusal{"\x15\x03\x01\x00\x02\x02\x31", 7};

}  // namespace

void Connection::close() {
  record_use();
  is_reached_ = false;
  if (client_interest_.is_added) services_.poller.remove(client_.get(), client_interest_.slot);
  if (upstream_interest_.is_added) services_.poller.remove(upstream_.get(), upstream_interest_.slot);
  client_interest_ = upstream_interest_ = {};
  client_.reset();
  upstream_.reset();
  wipe(&to_upstream_);
  from_client_ = to_client_ = {};
}

// So that the program sees at once that this is no end of the data.
void Connection::reset() {
  const linger at_once{1, 0};
  ::setsockopt(client_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

// --- The way there ------------------------------------------------------------------------------------------------

void Connection::dial() {
  is_dialling_ = true;
  dial_deadline_ms_ = now_ms() + kDialMs;
  if (host_.address) {
    use_addresses({*host_.address});
    return;
  }
  is_asking_ = true;
  lookup_ = services_.resolver.look_up(host_.text, [this](const std::vector<IpAddress>& addresses) {
    if (is_asking_) return use_addresses(addresses);
    account([&] {
      use_addresses(addresses);
      if (!is_closed()) move();
    });
  });
  if (lookup_) lookup_->start();
  is_asking_ = false;
}

// What was resolved here is what is dialled: no one looks the name up again.
void Connection::use_addresses(const std::vector<IpAddress>& addresses) {
  if (is_closed() || protocol_ == Protocol::refused) return;
  if (addresses.empty()) return fail_dial("its name does not resolve");
  Decision refusal;
  for (const IpAddress& address : addresses) {
    Decision decision = services_.allowlist.decide_address(host_, port_, address);
    if (decision.is_allowed) {
      addresses_.push_back(address);
    } else {
      refusal = std::move(decision);
    }
  }
  if (addresses_.empty()) return refuse(refusal);
  connect_to_next();
}

void Connection::connect_to_next() {
  while (next_address_ < addresses_.size()) {
    if (upstream_interest_.is_added) services_.poller.remove(upstream_.get(), upstream_interest_.slot);
    upstream_interest_ = {};
    const SocketAddress address(addresses_[next_address_++], port_);
    upstream_ = Fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!upstream_.is_open()) continue;
    prepare_for_flow(upstream_.get());
    const bool is_last = next_address_ == addresses_.size();
    dial_deadline_ms_ = now_ms() + (is_last ? kDialMs : kDialOneOfManyMs);
    if (::connect(upstream_.get(), address.get(), address.size) == 0) return finish_connect();
    if (errno == EINPROGRESS) return;
  }
  upstream_.reset();
  fail_dial("it can't be connected to");
}

void Connection::finish_connect() {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(upstream_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return connect_to_next();
  is_connected_ = true;
  dial_deadline_ms_ = 0;
  lookup_.reset();
  is_reached_ = true;
  if (rule_ == kNoRule) rule_ = services_.allowlist.decide(host_, port_).rule;  // no request was seen yet
  if (entry_ == Entry::connect) to_client_ += "HTTP/1.1 200 Connection established\r\n\r\n";
  if (entry_ == Entry::socks) to_client_ += make_socks_reply(socks_version_, SocksReply::granted);
  const bool is_proxied = entry_ == Entry::connect || entry_ == Entry::socks;
  if (!is_proxied) return;
  protocol_ = Protocol::unknown;
  const bool is_web = port_ == kHttpPort || port_ == kHttpsPort;
  deadline_ms_ = is_web ? now_ms() + kFirstBytesMs : 0;  // elsewhere the server may speak first
  look_at_first_bytes();
}

void Connection::fail_dial(std::string_view why) {
  services_.audit.refuse(target_text(), {.reason = std::string(why), .hint = std::string(kNotReached)});
  switch (entry_) {
    case Entry::redirected:
      return reset();
    case Entry::connect:
    case Entry::absolute:
      return answer_refusal(502, fmt::format("{}: {}", target_text(), why));
    case Entry::socks:
      return say_last_words(make_socks_reply(socks_version_, SocksReply::unreachable));
  }
}

// --- What is spoken -----------------------------------------------------------------------------------------------

// Where the host fixes what is spoken by its port, or the program speaks first, its first bytes tell.
void Connection::look_at_first_bytes() {
  if (from_client_.empty()) return;
  const auto first = static_cast<unsigned char>(from_client_[0]);
  const bool may_be_tls = first == kTlsHandshake && (from_client_.size() < 2 || from_client_[1] == 3);
  if (may_be_tls && port_ != kHttpPort) return check_hello();
  if (port_ == kHttpsPort) return refuse_malformed("port 443 takes nothing but TLS");
  switch (guess_http(from_client_)) {
    case HttpGuess::maybe:
      if (client_ended_) break;
      return wait_for_first_bytes();
    case HttpGuess::yes:
      return start_http();
    case HttpGuess::disguised:
      return refuse_malformed("it begins like HTTP, but not as every server reads it");
    case HttpGuess::version_2:
      return refuse_malformed("HTTP/2 without TLS hides its requests");
    case HttpGuess::no:
      break;
  }
  if (port_ == kHttpPort) return refuse_malformed("port 80 takes nothing but HTTP/1");
  if (services_.allowlist.must_see_requests(host_, port_)) {
    return refuse_malformed("only rules with methods or paths allow it, and this is not HTTP");
  }
  if (must_inspect(Transport::plain)) return refuse_malformed("a secret goes there over HTTP, and this is not HTTP");
  start_opaque();
}

// Last words that nobody takes are no refusal of their own.
void Connection::end_waiting() {
  if (protocol_ != Protocol::refused) {
    services_.audit.refuse(target_text(), {.reason = "nothing came in time that could be decided on",
                                           .hint = "nothing: have the program say whole what it asks for"});
  }
  reset();
}

void Connection::wait_for_first_bytes() {
  if (deadline_ms_ == 0) deadline_ms_ = now_ms() + kFirstBytesMs;
}

void Connection::check_hello() {
  const ClientHello hello = read_client_hello(from_client_);
  if (hello.state == ClientHello::State::unfinished && !client_ended_) return wait_for_first_bytes();
  if (hello.state != ClientHello::State::whole) return refuse_malformed("its TLS greeting is malformed");
  const bool is_inspected = must_inspect(Transport::tls);
  // An address has no name that could be checked (RFC 6066, section 3).
  if (host_.is_literal()) return is_inspected ? start_tls(hello) : start_opaque();
  if (hello.server_name.empty()) return refuse_malformed("its TLS greeting has no server name");
  if (parse_host(hello.server_name) != host_) return refuse_malformed("its TLS greeting names another server");
  return is_inspected ? start_tls(hello) : start_opaque();
}

void Connection::start_opaque() {
  protocol_ = Protocol::opaque;
  deadline_ms_ = 0;
  to_upstream_ += from_client_;
  from_client_ = {};
  if (!is_dialling_) dial();
}

void Connection::start_http() {
  protocol_ = Protocol::http;
  if (must_inspect(Transport::plain)) start_reading_answers();
  read_requests();
  if (protocol_ != Protocol::refused && !is_closed() && !is_dialling_ && requests_taken_ > 0) dial();
  if (is_connected_ && protocol_ == Protocol::http) read_requests();
}

// --- Refusals -----------------------------------------------------------------------------------------------------

void Connection::refuse(const Decision& decision) {
  services_.audit.refuse(target_text(), decision);
  answer_refusal(403, fmt::format("{}: {}; to allow it: {}", target_text(), decision.reason, decision.hint));
}

void Connection::refuse_malformed(std::string_view reason) {
  services_.audit.refuse(target_text(),
                         {.reason = std::string(reason), .hint = "nothing: it is not what the rule is for"});
  answer_refusal(400, fmt::format("{}: {}", target_text(), reason));
}

void Connection::answer_refusal(unsigned http_status, std::string_view reason) {
  if (entry_ == Entry::socks && !is_connected_) {
    return say_last_words(make_socks_reply(socks_version_, SocksReply::not_allowed));
  }
  const bool is_proxy_answer = (entry_ == Entry::connect || entry_ == Entry::absolute) && !is_connected_;
  const bool is_web_answer =
      protocol_ == Protocol::http || port_ == kHttpPort || guess_http(from_client_) == HttpGuess::yes;
  if (is_proxy_answer || is_web_answer) {
    const std::string_view phrase = http_status == 400   ? "Bad Request"
                                    : http_status == 403 ? "Forbidden"
                                                         : "Bad Gateway";
    const std::string body = fmt::format("belljar: {}\n", reason);
    return say_last_words(
        fmt::format("HTTP/1.1 {} {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n"
                    "Connection: close\r\n\r\n{}",
                    http_status, phrase, body.size(), body));
  }
  const bool is_tls = !from_client_.empty() && static_cast<unsigned char>(from_client_[0]) == kTlsHandshake;
  if (is_tls) return say_last_words(std::string(kTlsRefusal));
  reset();
}

// The client may still be sending, and a connection that is closed with bytes unread takes the answer with it: so they
// are read for a moment. Where answers of the server are still on their way, they come first.
void Connection::say_last_words(std::string text) {
  if (is_closed()) return;
  protocol_ = Protocol::refused;
  deadline_ms_ = now_ms() + kLastWordsMs;
  dial_deadline_ms_ = 0;
  const bool is_hello_unanswered = inspection_ && inspection_->is_tls && !inspection_->is_open_to_program();
  if (is_hello_unanswered) inspection_.reset();  // what is said is no TLS then
  from_client_ = {};
  const bool is_all_said = inspection_ ? inspection_->is_all_said() : down_.is_ended();
  if (is_connected_ && requests_taken_ > 0 && !is_all_said) {
    last_words_ = std::move(text);
    return;
  }
  if (upstream_interest_.is_added) services_.poller.remove(upstream_.get(), upstream_interest_.slot);
  upstream_interest_ = {};
  upstream_.reset();
  is_connected_ = false;
  wipe(&to_upstream_);
  to_client_ += text;
}

// --- Bytes --------------------------------------------------------------------------------------------------------

void Connection::wake(std::uint32_t events, unsigned tag) {
  account([&] { act_on(events, tag); });
}

void Connection::end_at_memory() {
  inspection_.reset();
  reset();
  lookup_.reset();
  held_bytes_ = 0;
  services_.audit.refuse(
      target_text(),
      {.reason = "the memory of all connections together is used up",
       .hint = "send whole requests, read what comes, or have fewer connections at once: --net-connections"});
}

void Connection::act_on(std::uint32_t events, unsigned tag) {
  Interest& interest = tag == kClient ? client_interest_ : upstream_interest_;
  interest.may_have_bytes = interest.may_have_bytes || (events & ~EPOLLOUT) != 0;
  if (tag == kUpstream && !is_connected_) {
    finish_connect();
  } else if (tag == kClient && (events & EPOLLERR) != 0) {
    return close();
  } else if ((events & EPOLLHUP) != 0) {
    if ((interest.events & EPOLLIN) == 0) return close();  // both directions are over, and nothing can be written
  }
  if (is_closed()) return;
  move();
}

bool Connection::may_read_client() const {
  return !client_ended_ && from_client_.size() < kClientBytesMax && to_upstream_.size() < services_.buffer_bytes_max;
}

// Reads what is there up to the bound; false when the connection was closed by it.
bool Connection::read_client() {
  std::array<char, std::size_t{16} << 10> bytes;
  std::size_t read = 0;
  while (client_interest_.may_have_bytes && may_read_client() && read < services_.buffer_bytes_max) {
    const ssize_t count = ::recv(client_.get(), bytes.data(), bytes.size(), 0);
    client_interest_.may_have_bytes = count == static_cast<ssize_t>(bytes.size());
    if (count > 0) {
      read += static_cast<std::size_t>(count);
      active_ms_ = now_ms();
      if (protocol_ == Protocol::refused) {
        dropped_bytes_ += static_cast<std::size_t>(count);
        if (dropped_bytes_ <= kDroppedBytesMax) return true;
        reset();
        return false;
      }
      from_client_.append(bytes.data(), static_cast<std::size_t>(count));
      continue;
    }
    if (count == 0) client_ended_ = true;
    if (count < 0 && errno != EAGAIN && errno != EINTR) {
      close();
      return false;
    }
    return true;
  }
  return true;
}

void Connection::move() {
  if (is_inspecting()) return move_inspected();
  if (protocol_ != Protocol::opaque && !client_ended_ && !read_client()) return;
  use_client_bytes();
  if (is_closed()) return;
  if (is_inspecting()) return move_inspected();
  move_up();
  while (!is_closed() && is_held_back_ && to_upstream_.empty() && protocol_ == Protocol::http) {
    read_requests();
    if (!is_closed()) move_up();
  }
  if (!is_closed()) move_down();
  if (!is_closed()) update_interest();
}

void Connection::use_client_bytes() {
  switch (protocol_) {
    case Protocol::proxy:
      read_proxy();
      break;
    case Protocol::unknown:
      look_at_first_bytes();
      break;
    case Protocol::http:
      read_requests();
      break;
    case Protocol::opaque:
    case Protocol::greeting:
    case Protocol::http2:
    case Protocol::switching:
    case Protocol::refused:
      break;
  }
}

bool Connection::write_pending(int fd, std::string* pending, bool is_sent) {
  while (!pending->empty()) {
    const std::uint64_t most = is_sent ? bytes_left() : pending->size();
    if (most == 0) {
      end_at_size_limit();
      return true;
    }
    const ssize_t written = ::send(fd, pending->data(), std::min<std::uint64_t>(pending->size(), most), MSG_NOSIGNAL);
    if (written < 0) return errno == EAGAIN || errno == EINTR;
    active_ms_ = now_ms();
    pending->erase(0, static_cast<std::size_t>(written));
    if (is_sent) count(static_cast<std::uint64_t>(written), 0);
  }
  return true;
}

void Connection::move_up() {
  if (!is_connected_ || upstream_told_end_) {
    if (client_ended_ && !is_connected_ && (!is_dialling_ || protocol_ == Protocol::refused) && to_client_.empty())
      close();
    return;
  }
  if (!write_pending(upstream_.get(), &to_upstream_, true)) return reset();
  if (is_closed() || !to_upstream_.empty()) return;
  if (protocol_ == Protocol::opaque) {
    count(up_.pump(client_.get(), upstream_.get(), services_.flow_buffer, bytes_left()), 0);
    if (up_.state() == Flow::State::at_limit) return end_at_size_limit();
    if (up_.state() == Flow::State::failed) return reset();
    client_ended_ = client_ended_ || up_.is_ended();
  }
  const bool is_refused = protocol_ == Protocol::refused;
  const bool is_over = client_ended_ && from_client_.empty() && (protocol_ != Protocol::opaque || up_.is_ended());
  if (!is_over && !is_refused) return;
  ::shutdown(upstream_.get(), SHUT_WR);
  upstream_told_end_ = true;
}

void Connection::move_down() {
  if (is_connected_ && protocol_ == Protocol::switching) look_at_switch();
  if (is_closed()) return;
  if (!write_pending(client_.get(), &to_client_, false)) return close();
  if (!to_client_.empty()) return;
  if (is_connected_ && protocol_ != Protocol::switching && !down_.is_ended()) {
    count(0, down_.pump(upstream_.get(), client_.get(), services_.flow_buffer, bytes_left()));
    if (down_.state() == Flow::State::at_limit) return end_at_size_limit();
    if (down_.state() == Flow::State::failed) return reset();
    if (!down_.is_ended()) return;
    to_client_ = std::exchange(last_words_, {});
    if (!write_pending(client_.get(), &to_client_, false)) return close();
    if (!to_client_.empty()) return;
  }
  const bool is_over = is_connected_ ? down_.is_ended() : protocol_ == Protocol::refused;
  if (!is_over) return;
  if (!client_told_end_) ::shutdown(client_.get(), SHUT_WR);
  client_told_end_ = true;
  if (client_ended_ || is_one_request_) close();
}

void Connection::count(std::uint64_t sent, std::uint64_t received) {
  if (sent + received == 0 || !is_reached_) return;
  active_ms_ = now_ms();
  sent_bytes_ += sent;
  received_bytes_ += received;
  services_.audit.add_bytes(sent, received);
}

std::uint64_t Connection::bytes_left() const {
  const std::uint64_t used = services_.audit.bytes_total();
  return used < services_.limits.bytes ? services_.limits.bytes - used : 0;
}

void Connection::end_at_size_limit() {
  end_at_limit(fmt::format("{} bytes in all", services_.limits.bytes), "--net-size");
}

// The first request takes what went before it, the greetings, under its rule.
void Connection::begin_request(std::size_t rule) {
  if (requests_taken_++ > 0 && rule != rule_) record_use();
  rule_ = rule;
}

// A connection counts once for each rule.
void Connection::record_use() {
  if (!is_reached_) return;
  const bool is_first = std::ranges::find(rules_before_, rule_) == rules_before_.end();
  services_.audit.add_use(target_text(), describe_rule(services_.allowlist.rules()[rule_], rule_), is_first ? 1 : 0,
                          std::exchange(sent_bytes_, 0), std::exchange(received_bytes_, 0));
  if (is_first) rules_before_.push_back(rule_);
}

void Connection::end_at_limit(std::string_view limit, std::string_view flag) {
  services_.audit.refuse(target_text(), {.reason = fmt::format("the limit of {}", limit), .hint = std::string(flag)});
  reset();
}

std::uint32_t Connection::wanted_of_client() const {
  if (is_inspecting()) return wanted_of_program();
  std::uint32_t events = 0;
  const bool may_write = !to_client_.empty() || down_.state() == Flow::State::waits_for_target;
  if (may_write) events |= EPOLLOUT;
  if (client_ended_) return events;
  if (protocol_ == Protocol::opaque) {
    const bool may_read = is_connected_ && to_upstream_.empty() && up_.state() == Flow::State::waits_for_source;
    return may_read ? events | EPOLLIN : events;
  }
  return may_read_client() ? events | EPOLLIN : events;
}

std::uint32_t Connection::wanted_of_upstream() const {
  if (!is_connected_) return EPOLLOUT;
  if (inspection_) return wanted_of_server();
  std::uint32_t events = 0;
  if (!to_upstream_.empty() || up_.state() == Flow::State::waits_for_target) events |= EPOLLOUT;
  const bool may_read = to_client_.empty() && down_.state() == Flow::State::waits_for_source;
  return may_read ? events | EPOLLIN : events;
}

void Connection::apply(Interest& interest, int fd, std::uint32_t events, unsigned tag) {
  if (!interest.is_added) {
    interest.is_added = services_.poller.add(fd, events, this, tag, &interest.slot);
    if (!interest.is_added) return reset();
  } else if (interest.events != events) {
    services_.poller.change(fd, events, interest.slot);
  }
  interest.events = events;
}

void Connection::update_interest() {
  if (is_closed()) return;
  apply(client_interest_, client_.get(), wanted_of_client(), kClient);
  if (!is_closed() && upstream_.is_open()) apply(upstream_interest_, upstream_.get(), wanted_of_upstream(), kUpstream);
}

void Connection::check_time(std::uint64_t now) {
  if (is_closed()) return;
  if (lookup_ && !is_connected_) lookup_->check_time(now);
  if (is_closed()) return;
  if (dial_deadline_ms_ != 0 && now >= dial_deadline_ms_ && !is_connected_) {
    return account([&] {
      if (upstream_.is_open()) {
        connect_to_next();
      } else {
        lookup_.reset();
        fail_dial("its name does not resolve in time");
      }
      if (!is_closed()) move();
    });
  }
  if (deadline_ms_ != 0 && now >= deadline_ms_) return end_waiting();
  if (!is_connected_) return;
  if (now - active_ms_ >= services_.limits.idle_ms) {
    return end_at_limit(fmt::format("{} ms without a byte", services_.limits.idle_ms), "--net-idle");
  }
  if (now - begun_ms_ >= services_.limits.time_ms) {
    end_at_limit(fmt::format("{} ms in all", services_.limits.time_ms), "--net-time");
  }
}

}  // namespace belljar::egress
