// Connections whose requests and answers are read: TLS ends here, once with the program and once with the server, and
// what goes between is plain in this process only.
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "egress/client_hello.h"
#include "egress/connection.h"
#include "egress/url.h"

namespace belljar::egress {
namespace {

constexpr std::uint64_t kGreetingMs = 30000;
constexpr std::size_t kClientBytesMax = std::size_t{128} << 10;  // room for the longest head
constexpr std::size_t kDroppedBytesMax = std::size_t{256} << 10;
constexpr std::size_t kReadBytesMin = std::size_t{16} << 10;
constexpr std::size_t kReadBytesMax = std::size_t{64} << 10;
constexpr unsigned kReadsMax = 4;  // so that other connections have their turn
constexpr unsigned kTurnsMax = 256;
constexpr std::string_view kUnusable = "nothing: the server's side must be mended";

bool has_room(const TlsEnd* end, std::size_t bytes_max) {
  return end == nullptr || end->wire().size() < bytes_max;
}

bool is_plain_path(std::string_view path) {
  return (path.starts_with('/') || path == "*") &&
         std::ranges::all_of(path, [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
}

}  // namespace

bool Connection::must_inspect(Transport transport) const {
  if (services_.secrets.are_for(host_, port_, transport)) return true;
  return transport == Transport::tls && services_.allowlist.must_see_requests(host_, port_);
}

bool Connection::is_inspecting() const {
  return inspection_ && (is_connected_ || inspection_->is_open_to_program());
}

void Connection::start_reading_answers() {
  inspection_ = std::make_unique<Inspection>(services_.secrets.values());
}

// The program's greeting stays unanswered until the server has chosen a protocol, so that both sides speak the same.
void Connection::start_tls(const ClientHello& hello) {
  std::vector<std::string_view> protocols;
  for (const std::string_view protocol : {kHttp2Protocol, kHttp1Protocol}) {
    if (std::ranges::find(hello.protocols, protocol) != hello.protocols.end()) protocols.push_back(protocol);
  }
  if (hello.protocols.empty()) protocols.push_back(kHttp1Protocol);
  if (protocols.empty()) return refuse_malformed("its TLS greeting offers neither HTTP/1.1 nor HTTP/2");
  inspection_ = std::make_unique<Inspection>(services_.secrets.values());
  inspection_->is_tls = true;
  inspection_->protocols = std::move(protocols);
  protocol_ = Protocol::greeting;
  deadline_ms_ = now_ms() + kGreetingMs;
  if (!is_dialling_) dial();
}

void Connection::move_inspected() {
  if (!take_from_program() || !take_from_server()) return;
  for (unsigned turn = 0; turn < kTurnsMax; ++turn) {
    use_plain_bytes();
    if (is_closed()) return;
    if (!is_inspecting()) return move();  // refused before TLS was there
    const bool has_bytes = has_bytes_to_give();
    if (!give_all()) return;
    if (!has_bytes || has_bytes_to_give() || !has_bytes_to_use()) break;
  }
  end_inspected();
  if (!is_closed()) update_interest();
}

// --- Greetings
// --------------------------------------------------------------------------------------------------------

void Connection::greet() {
  if (!inspection_->program && !greet_server()) return;
  greet_program();
}

// True once the program can be answered.
bool Connection::greet_server() {
  Inspection& inspected = *inspection_;
  if (!inspected.server) inspected.server = services_.tls->to_server(host_, inspected.protocols);
  const TlsEnd::State state = inspected.server ? inspected.server->greet() : TlsEnd::State::failed;
  if (state == TlsEnd::State::greeting && !inspected.is_server_ended) return false;
  if (state != TlsEnd::State::open) {
    inspected.failure =
        fmt::format("the server can't be trusted: {}", inspected.server ? inspected.server->fault() : "no memory");
  }
  const bool is_http2 = state == TlsEnd::State::open && inspected.server->protocol() == kHttp2Protocol;
  const std::string_view protocol = is_http2 ? kHttp2Protocol : kHttp1Protocol;
  if (std::ranges::find(inspected.protocols, protocol) == inspected.protocols.end()) {
    refuse({.reason = inspected.failure.empty() ? "the server does not speak HTTP/2, and the program nothing else"
                                                : inspected.failure,
            .hint = std::string(kUnusable)});
    return false;
  }
  inspected.program = services_.tls->to_program(host_, protocol);
  if (!inspected.program) {
    reset();
    return false;
  }
  inspected.program->wire() = std::exchange(to_client_, {});  // the answer of the proxy
  inspected.program->feed(from_client_);
  from_client_.clear();
  return true;
}

void Connection::greet_program() {
  Inspection& inspected = *inspection_;
  const TlsEnd::State state = inspected.program->greet();
  if (state == TlsEnd::State::greeting) return client_ended_ ? close() : void();
  if (state == TlsEnd::State::failed) {
    services_.audit.refuse(target_text(), {.reason = "the program broke the TLS handshake off",
                                           .hint = "have it trust the certificates that SSL_CERT_FILE names inside"});
    (void)write_pending(client_.get(), &inspected.program->wire(), false);  // the alert
    return close();
  }
  deadline_ms_ = now_ms() + kFirstBytesMs;
  protocol_ = Protocol::http;
  if (!inspected.failure.empty()) {
    services_.audit.refuse(target_text(), {.reason = inspected.failure, .hint = std::string(kUnusable)});
    return answer_refusal(502, fmt::format("{}: {}", target_text(), inspected.failure));
  }
  if (!inspected.program->read(&from_client_) || !inspected.server->read(&inspected.from_server)) return reset();
  if (inspected.server->protocol() != kHttp2Protocol) return;
  inspected.http2 = Http2Relay::create(services_.secrets.values(),
                                       [this](const Http2Request& request) { return judge_http2(request); });
  if (!inspected.http2) return reset();
  deadline_ms_ = 0;
  protocol_ = Protocol::http2;
}

// --- Bytes in
// ---------------------------------------------------------------------------------------------------------

// False when the connection was closed by it, as below.
bool Connection::take_from_program() {
  Inspection& inspected = *inspection_;
  if (!inspected.is_tls) return client_ended_ || read_client();
  if (!inspected.program) return true;
  std::array<char, kReadBytesMax> memory;
  const auto bytes = std::span(memory).first(std::clamp(services_.buffer_bytes_max, kReadBytesMin, kReadBytesMax));
  for (unsigned reads = 0; reads < kReadsMax && client_interest_.may_have_bytes && may_take_from_program(); ++reads) {
    const ssize_t count = ::recv(client_.get(), bytes.data(), bytes.size(), 0);
    client_interest_.may_have_bytes = count == static_cast<ssize_t>(bytes.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (count < 0) {
      close();
      return false;
    }
    client_ended_ = count == 0;
    active_ms_ = now_ms();
    inspected.program->feed({bytes.data(), static_cast<std::size_t>(count)});
    if (inspected.is_open_to_program() && !inspected.program->read(&from_client_)) {
      reset();
      return false;
    }
    client_ended_ = client_ended_ || inspected.program->is_ended();
  }
  return true;
}

bool Connection::take_from_server() {
  Inspection& inspected = *inspection_;
  std::array<char, kReadBytesMax> memory;
  const auto bytes = std::span(memory).first(std::clamp(services_.buffer_bytes_max, kReadBytesMin, kReadBytesMax));
  for (unsigned reads = 0; reads < kReadsMax && upstream_interest_.may_have_bytes && may_take_from_server(); ++reads) {
    const std::size_t room = std::clamp<std::uint64_t>(bytes_left(), 1, bytes.size());
    const ssize_t size = ::recv(upstream_.get(), bytes.data(), room, 0);
    upstream_interest_.may_have_bytes = size == static_cast<ssize_t>(room);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (size <= 0) {
      inspected.is_server_ended = true;
      break;
    }
    const std::string_view come(bytes.data(), static_cast<std::size_t>(size));
    if (bytes_left() == 0) {
      end_at_size_limit();
      return false;
    }
    count(0, come.size());
    if (!inspected.server) {
      if (!inspected.is_tls) inspected.from_server.append(come);
      continue;
    }
    inspected.server->feed(come);
    if (inspected.server->state() == TlsEnd::State::open && !inspected.server->read(&inspected.from_server)) {
      reset();
      return false;
    }
    inspected.is_server_ended = inspected.server->is_ended();
  }
  return true;
}

bool Connection::may_take_from_program() const {
  const bool is_readable = !inspection_->is_tls || inspection_->program;
  const std::size_t bytes_max = services_.buffer_bytes_max;
  return is_readable && !client_ended_ && from_client_.size() < kClientBytesMax && to_upstream_.size() < bytes_max &&
         has_room(inspection_->server.get(), bytes_max);
}

bool Connection::may_take_from_server() const {
  const std::size_t bytes_max = services_.buffer_bytes_max;
  return is_connected_ && !inspection_->is_server_ended && to_client_.size() < bytes_max &&
         inspection_->from_server.size() < bytes_max && has_room(inspection_->program.get(), bytes_max);
}

// --- Plain bytes
// ------------------------------------------------------------------------------------------------------

void Connection::use_plain_bytes() {
  if (protocol_ == Protocol::greeting) greet();
  if (is_closed() || !inspection_) return;
  switch (protocol_) {
    case Protocol::http:
      read_requests();
      break;
    case Protocol::http2:
      return relay_http2();
    case Protocol::opaque:
      to_upstream_ += std::exchange(from_client_, {});
      break;
    case Protocol::refused:
      dropped_bytes_ += from_client_.size();
      from_client_.clear();
      if (dropped_bytes_ > kDroppedBytesMax) return reset();
      break;
    case Protocol::greeting:
      return;
    case Protocol::proxy:
    case Protocol::unknown:
    case Protocol::switching:
      break;
  }
  if (!is_closed() && is_connected_) read_answers();
}

void Connection::read_answers() {
  Inspection& inspected = *inspection_;
  if (!inspected.answers.feed(inspected.from_server, &to_client_)) {
    services_.audit.refuse(target_text(),
                           {.reason = fmt::format("an answer that can't be read: {}", inspected.answers.fault()),
                            .hint = std::string(kUnusable)});
    return reset();
  }
  inspected.from_server.clear();
  if (inspected.is_server_ended) inspected.is_cut_short = !inspected.answers.finish(&to_client_);
  if (protocol_ != Protocol::switching) return;
  if (inspected.answers.is_switched()) {
    protocol_ = Protocol::opaque;
  } else if (inspected.answers.is_idle()) {
    protocol_ = Protocol::http;
  }
}

void Connection::relay_http2() {
  Inspection& inspected = *inspection_;
  Http2Relay& relay = *inspected.http2;
  const bool was_good = relay.fault().empty();
  bool is_good = relay.from_program(from_client_) && relay.from_server(inspected.from_server);
  from_client_.clear();
  inspected.from_server.clear();
  is_good = relay.to_program(&to_client_, services_.buffer_bytes_max) &&
            relay.to_server(&to_upstream_, services_.buffer_bytes_max) && is_good;
  note_resets(relay.take_resets());
  const std::string_view unknown = is_good ? "" : "HTTP/2 that can't be passed on";
  const std::string_view fault = relay.fault().empty() ? unknown : relay.fault();
  if (was_good && !fault.empty()) {
    services_.audit.refuse(
        target_text(), {.reason = std::string(fault), .hint = "nothing: who speaks HTTP/2 like that must be mended"});
  }
  if (!is_good && give_all()) reset();
}

void Connection::note_resets(const Http2Relay::Resets& resets) {
  const auto note = [&](std::size_t count, std::string_view reason) {
    const Decision decision{.reason = std::string(reason), .hint = "nothing: it is not what the rule is for"};
    for (std::size_t i = 0; i < count; ++i) services_.audit.refuse(target_text(), decision);
  };
  note(resets.malformed, "the head of the request is malformed");
  note(resets.too_long, "the head is too long");
}

RequestVerdict Connection::judge_http2(const Http2Request& request) {
  const auto refused = [&](unsigned status, const Decision& decision) {
    services_.audit.refuse(target_text(), decision);
    return RequestVerdict{.refused_status = status, .reason = fmt::format("{}: {}", target_text(), decision.reason)};
  };
  const auto malformed = [&](std::string_view reason) {
    return refused(400, {.reason = std::string(reason), .hint = "nothing: it is not what the rule is for"});
  };
  if (request.method == "CONNECT") return malformed("CONNECT is for proxies");
  if (request.scheme != "https" || !is_plain_path(request.path))
    return malformed("the target of the request is malformed");
  for (const std::string_view named : {request.authority, request.host}) {
    if (named.empty()) continue;
    const auto authority = parse_authority(named);
    const bool is_same = authority && authority->host == host_ && authority->port.value_or(port_) == port_;
    if (!is_same) return malformed("its authority names another host");
  }
  if (request.authority.empty() && request.host.empty()) return malformed("it names no host");
  const RequestLine line{request.method, path_of_target(request.path)};
  const Decision decision = services_.allowlist.decide_request(host_, port_, line);
  if (!decision.is_allowed) return refused(403, decision);
  begin_request(decision.rule);
  return {.headers = services_.secrets.headers_of(host_, port_, Transport::tls, line)};
}

// Whether there may be more to do once what was to be given is away. HTTP/2 keeps bytes of its own.
bool Connection::has_bytes_to_use() const {
  return inspection_->http2 || inspection_->is_server_ended || !from_client_.empty() ||
         !inspection_->from_server.empty();
}

// --- Bytes out
// --------------------------------------------------------------------------------------------------------

bool Connection::has_bytes_to_give() const {
  const auto has = [](const std::unique_ptr<TlsEnd>& end, const std::string& plain) {
    return !plain.empty() || (end && !end->wire().empty());
  };
  return has(inspection_->program, to_client_) || (is_connected_ && has(inspection_->server, to_upstream_));
}

// False where the socket or TLS fails.
bool Connection::give(int fd, TlsEnd* end, std::string* plain, bool is_sent) {
  if (end == nullptr) return inspection_->is_tls || write_pending(fd, plain, is_sent);
  const bool may_encrypt = end->state() == TlsEnd::State::open && has_room(end, services_.buffer_bytes_max);
  if (may_encrypt && !end->write(plain)) return false;
  return write_pending(fd, &end->wire(), is_sent);
}

// False when the connection was closed by it.
bool Connection::give_all() {
  if (is_connected_ && !inspection_->is_server_ended &&
      !give(upstream_.get(), inspection_->server.get(), &to_upstream_, true)) {
    inspection_->is_server_ended = true;  // what it said before is still read
  }
  if (is_closed()) return false;
  if (!give(client_.get(), inspection_->program.get(), &to_client_, false)) close();
  return !is_closed();
}

void Connection::end_inspected() {
  if (protocol_ == Protocol::greeting) return;  // what the server's end means for the program is still to be said
  Inspection& inspected = *inspection_;
  const bool is_given_up = to_upstream_.empty() && (!inspected.server || inspected.server->wire().empty());
  const bool is_client_over = client_ended_ && from_client_.empty();
  if (inspected.http2 && is_client_over) return close();
  if (is_connected_ && !upstream_told_end_ && is_given_up && (is_client_over || protocol_ == Protocol::refused)) {
    if (inspected.server) inspected.server->say_end();
    (void)give(upstream_.get(), inspected.server.get(), &to_upstream_, true);
    if (is_closed()) return;
    ::shutdown(upstream_.get(), SHUT_WR);
    upstream_told_end_ = true;
  }
  if (!last_words_.empty() && inspected.is_all_said()) {
    to_client_ += std::exchange(last_words_, {});
    if (!give_all()) return;
  }
  const bool is_refused = protocol_ == Protocol::refused && last_words_.empty();
  const bool is_over = is_connected_ ? inspected.is_server_ended || is_refused : is_refused;
  const bool is_http2_over = inspected.http2 && inspected.http2->is_over();
  if ((!is_over && !is_http2_over) || !to_client_.empty() || (inspected.program && !inspected.program->wire().empty()))
    return;
  if (inspected.is_cut_short) return reset();
  if (!client_told_end_) {
    if (inspected.program) inspected.program->say_end();
    if (!give_all()) return;
    ::shutdown(client_.get(), SHUT_WR);
    client_told_end_ = true;
  }
  if (client_ended_ || is_one_request_ || inspected.http2) close();
}

std::uint32_t Connection::wanted_of_program() const {
  const bool has_pending =
      inspection_->program ? !inspection_->program->wire().empty() : !inspection_->is_tls && !to_client_.empty();
  const std::uint32_t events = has_pending ? EPOLLOUT : 0U;
  return may_take_from_program() ? events | EPOLLIN : events;
}

std::uint32_t Connection::wanted_of_server() const {
  const bool has_pending =
      inspection_->server ? !inspection_->server->wire().empty() : !inspection_->is_tls && !to_upstream_.empty();
  const std::uint32_t events = has_pending && !inspection_->is_server_ended ? EPOLLOUT : 0U;
  return may_take_from_server() ? events | EPOLLIN : events;
}

}  // namespace belljar::egress
