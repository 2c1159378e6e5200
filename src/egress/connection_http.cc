// HTTP/1 on a connection whose place is settled: each request is decided anew, and only what was read goes on.
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "egress/connection.h"
#include "egress/url.h"

namespace belljar::egress {
namespace {

bool has_word(std::string_view list, std::string_view lower_word) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view word = list.substr(0, comma);
    while (!word.empty() && (word.front() == ' ' || word.front() == '\t')) word.remove_prefix(1);
    while (!word.empty() && (word.back() == ' ' || word.back() == '\t')) word.remove_suffix(1);
    if (equal_without_case(word, lower_word)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

bool asks_to_close(const HttpHead& head) {
  return std::ranges::any_of(head.headers, [](const HttpHeader& header) {
    return equal_without_case(header.name, "connection") && has_word(header.value, "close");
  });
}

bool is_replaced(const HttpHeader& header, const Secrets::Headers& secrets) {
  return std::ranges::any_of(secrets, [&](const auto& secret) { return is_read_as(header.name, secret.name); });
}

void put_request_line(const HttpHead& head, std::string_view target, std::string* out) {
  out->append(head.method).append(" ").append(target);
  out->append(head.minor_version == 0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
}

void put_header(std::string_view name, std::string_view value, std::string* out) {
  out->append(name).append(": ").append(value).append("\r\n");
}

void end_head(Secrets::Headers* secrets, std::string* out) {
  for (Secrets::Header& secret : *secrets) {
    put_header(secret.name, secret.value, out);
    wipe(&secret.value);
  }
  out->append("\r\n");
}

// Adds to `out` the head as it came, but for secrets.
void put_head(const HttpHead& head, Secrets::Headers* secrets, std::string* out) {
  put_request_line(head, head.target, out);
  for (const HttpHeader& header : head.headers) {
    if (!is_replaced(header, *secrets)) put_header(header.name, header.value, out);
  }
  end_head(secrets, out);
}

// The same without what concerns this hop only (RFC 9110, 7.6.1).
void put_head_of_hop(const HttpHead& head, std::string_view target, bool closes, Secrets::Headers* secrets,
                     std::string* out) {
  constexpr std::string_view kDropped[] = {"connection", "proxy-connection", "keep-alive", "proxy-authorization",
                                           "upgrade",    "http2-settings",   "te"};
  put_request_line(head, target, out);
  for (const HttpHeader& header : head.headers) {
    const bool is_dropped =
        std::ranges::any_of(kDropped, [&](std::string_view name) { return equal_without_case(header.name, name); });
    if (!is_dropped && !is_replaced(header, *secrets)) put_header(header.name, header.value, out);
  }
  if (closes) put_header("Connection", "close", out);
  end_head(secrets, out);
}

}  // namespace

void Connection::read_requests() {
  is_held_back_ = false;
  while (protocol_ == Protocol::http) {
    is_held_back_ = to_upstream_.size() >= services_.buffer_bytes_max;
    if (is_held_back_) return;
    // So that a later request that is refused does not take the answer to the first one with it.
    if (is_whole_ && requests_taken_ > 0 && !is_connected_) return;
    if (is_request_over_) from_client_ = {};  // nobody will answer what comes after the one request
    RequestReader::Event event = requests_.next(from_client_);
    switch (event.kind) {
      case RequestReader::Kind::more:
        if (client_ended_) from_client_ = {};  // half a head is nothing
        return;
      case RequestReader::Kind::broken:
        return refuse_malformed(event.reason);
      case RequestReader::Kind::head:
        if (!take_request(event.head, event.ends_request)) return;
        break;
      case RequestReader::Kind::body:
        if (!is_of_secret(event.trailer)) to_upstream_.append(from_client_, 0, event.size);
        break;
    }
    from_client_.erase(0, event.size);
    deadline_ms_ = 0;
    is_whole_ = event.ends_request;
    is_request_over_ = is_one_request_ && is_whole_;
  }
}

bool Connection::is_of_secret(std::string_view trailer) const {
  return std::ranges::any_of(secret_names_, [&](const std::string& name) { return is_read_as(trailer, name); });
}

// Adds the head to what goes on. False when the request was refused, or more may not be read now.
bool Connection::take_request(const HttpHead& head, bool ends_request) {
  const auto refuse_it = [&](std::string_view reason) {
    refuse_malformed(reason);
    return false;
  };
  std::string_view target = head.target;
  if (!target.starts_with('/') && target != "*") {
    const auto url = parse_url(target);
    if (!url || url->is_tls) return refuse_it("the target of the request is malformed");
    Host named = url->host;
    if (!map_synthetic(&named, url->port)) return false;
    if (named != host_ || url->port != port_) return refuse_it("the URL of the request names another host");
    target = url->target;
  }
  if (head.method == "CONNECT") return refuse_it("CONNECT is for proxies");
  const auto written = head.header("host");
  const auto authority = written ? parse_authority(*written) : std::nullopt;
  if (!authority) return refuse_it(written ? "its Host header is malformed" : "it has no Host header");
  if (authority->host != host_ || authority->port.value_or(port_) != port_)
    return refuse_it("its Host header names another host");
  const RequestLine line{head.method, path_of_target(target)};
  const Decision decision = decide_request(line, head.headers);
  if (!decision.is_allowed) {
    refuse(decision);
    return false;
  }
  begin_request(decision.rule);
  Secrets::Headers secrets = services_.secrets.headers_of(host_, port_, transport(), line);
  secret_names_.clear();
  for (const Secrets::Header& secret : secrets) secret_names_.push_back(secret.name);
  if (const auto upgrade = head.header("upgrade"); upgrade && !is_one_request_)
    return take_upgrade(head, *upgrade, ends_request, &secrets);
  if (inspection_) inspection_->answers.expect(head.method, false);
  if (is_one_request_ || target.data() != head.target.data()) {
    put_head_of_hop(head, target, is_one_request_ || asks_to_close(head), &secrets, &to_upstream_);
  } else if (!secrets.empty()) {
    put_head(head, &secrets, &to_upstream_);
  } else {
    to_upstream_.append(from_client_, 0, head.size);
  }
  return true;
}

Decision Connection::decide_request(const RequestLine& line, std::span<const HttpHeader> headers) const {
  Decision decision = services_.allowlist.decide_request(host_, port_, line);
  if (!decision.is_allowed || transport() == Transport::tls) return decision;
  const SecretRule* const secret = services_.secrets.only_by_tls(host_, headers);
  if (secret == nullptr) return decision;
  return {.rule = decision.rule,
          .reason = fmt::format("the secret {} goes out by TLS only", secret->name),
          .hint = "https, or plain_http = true for that secret"};
}

// After an answer of 101 the connection has no requests any more. Only WebSocket is let through, as the first request:
// of later ones it would not be known whose answer comes. The wish for any other protocol is left out, as a proxy may.
bool Connection::take_upgrade(const HttpHead& head, std::string_view upgrade, bool ends_request,
                              Secrets::Headers* secrets) {
  const bool is_first = requests_taken_ == 1 && ends_request && !services_.allowlist.must_see_requests(host_, port_);
  const bool may_switch = equal_without_case(upgrade, "websocket") && is_first;
  if (inspection_) inspection_->answers.expect(head.method, may_switch);
  if (!may_switch) {
    put_head_of_hop(head, head.target, asks_to_close(head), secrets, &to_upstream_);
    return true;
  }
  put_head(head, secrets, &to_upstream_);
  from_client_.erase(0, head.size);
  protocol_ = Protocol::switching;
  if (!is_dialling_) dial();
  return false;
}

void Connection::look_at_switch() {
  constexpr std::string_view kSwitched = "HTTP/1.1 101";
  std::array<char, kSwitched.size()> head;
  const ssize_t count = ::recv(upstream_.get(), head.data(), head.size(), MSG_PEEK);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const std::string_view seen(head.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  if (seen == kSwitched) return start_opaque();
  if (count > 0 && kSwitched.starts_with(seen)) return;
  protocol_ = Protocol::http;
  read_requests();
}

}  // namespace belljar::egress
