// Where a connection is to go: told by its redirected address, or by the client of a proxy.
#include <fmt/format.h>

#include "base/utf8.h"
#include "egress/connection.h"
#include "egress/socks.h"
#include "egress/url.h"

namespace belljar::egress {
namespace {

const Decision kMalformed{.reason = "not a host name or address in its usual form",
                          .hint = "nothing: write the host as a rule has it"};
const Decision kNoPlace{
    .reason = "not a host name or address in its usual form with a port from 1 to 65535, or a body behind CONNECT",
    .hint = "nothing: write HOST:PORT, the host as a rule has it"};
const Decision kNoUrl{.reason = "not an http URL whose host is a name or address in its usual form",
                      .hint = "nothing: what is no http goes by CONNECT"};
const Decision kOtherSocks{.reason = "of SOCKS there is CONNECT alone, without a password",
                           .hint = "nothing: connect by TCP to a host as a rule has it"};

// The Host header, where it must name the same place.
bool is_same_place(const HttpHead& head, const Host& host, unsigned port) {
  const auto written = head.header("host");
  if (!written) return head.minor_version == 0;
  const auto authority = parse_authority(*written);
  return authority && authority->host == host && authority->port.value_or(port) == port;
}

}  // namespace

void Connection::start_redirected(const IpAddress& address, unsigned port) {
  entry_ = Entry::redirected;
  protocol_ = Protocol::unknown;
  active_ms_ = now_ms();
  deadline_ms_ = active_ms_ + kFirstBytesMs;
  account([&] {
    go_to(Host{format_ip(address), address}, port);
    if (!is_closed()) move();
  });
}

void Connection::start_proxied() {
  protocol_ = Protocol::proxy;
  active_ms_ = now_ms();
  deadline_ms_ = active_ms_ + kFirstBytesMs;
  account([&] { move(); });
}

// A program that looked the name up itself names the synthetic address.
bool Connection::map_synthetic(Host* host, unsigned port) {
  if (!host->address || !SyntheticNames::is_synthetic(*host->address)) return true;
  const auto name = services_.names.name_of(*host->address);
  if (name) {
    *host = Host{*name, std::nullopt};
    return true;
  }
  host_ = *host;
  port_ = port;
  refuse(
      {.reason = "no name has this address", .hint = "nothing: addresses of 198.18.0.0/16 are given to listed names"});
  return false;
}

// Servers of other ports than those of the web may speak first, so they are dialled at once.
void Connection::go_to(Host host, unsigned port) {
  if (!map_synthetic(&host, port)) return;
  host_ = std::move(host);
  port_ = port;
  const Decision decision = services_.allowlist.decide(host_, port_);
  if (!decision.is_allowed) return refuse(decision);
  const bool is_web = port_ == kHttpPort || port_ == kHttpsPort;
  if (entry_ == Entry::redirected && is_web) return;
  if (entry_ == Entry::redirected) deadline_ms_ = 0;
  if (entry_ != Entry::absolute) dial();
}

void Connection::read_proxy() {
  if (is_dialling_ || from_client_.empty()) return;
  if (is_socks_greeted_ || is_socks(from_client_)) {
    read_proxy_socks();
  } else {
    read_proxy_http();
  }
}

void Connection::read_proxy_socks() {
  const SocksRequest request = read_socks(from_client_, is_socks_greeted_);
  entry_ = Entry::socks;
  socks_version_ = request.version;
  switch (request.kind) {
    case SocksRequest::Kind::more:
      return;
    case SocksRequest::Kind::greeting:
      is_socks_greeted_ = true;
      from_client_.erase(0, request.size);
      to_client_ += kSocksNoAuthentication;
      return read_proxy();
    case SocksRequest::Kind::broken:
      services_.audit.refuse(request.shown.empty() ? "the proxy" : request.shown,
                             request.reply == SocksReply::not_allowed ? kMalformed : kOtherSocks);
      return say_last_words(request.reply ? make_socks_reply(request.version, *request.reply)
                                          : std::string(kSocksNoMethod));
    case SocksRequest::Kind::connect:
      break;
  }
  from_client_.erase(0, request.size);
  go_to(request.host, request.port);
}

void Connection::read_proxy_http() {
  RequestReader reader;
  const RequestReader::Event event = reader.next(from_client_);
  if (event.kind == RequestReader::Kind::more) return;
  entry_ = Entry::connect;
  if (event.kind != RequestReader::Kind::head) {
    services_.audit.refuse("a proxy request",
                           {.reason = std::string(event.reason), .hint = "nothing: it is malformed"});
    return answer_refusal(400, event.reason);
  }
  if (event.head.method == "CONNECT") {
    accept_connect(event.head);
  } else {
    accept_absolute(event.head);
  }
}

void Connection::accept_connect(const HttpHead& head) {
  const auto authority = parse_authority(head.target);
  if (!authority || !authority->port || head.header("content-length") || head.header("transfer-encoding")) {
    services_.audit.refuse(head.target, kNoPlace);
    return answer_refusal(400, fmt::format("CONNECT {}: {}", one_line(head.target), kNoPlace.reason));
  }
  const bool is_consistent = !head.header("host") || is_same_place(head, authority->host, *authority->port);
  if (!is_consistent) {
    services_.audit.refuse(head.target, {.reason = "CONNECT and Host name different places", .hint = kMalformed.hint});
    return answer_refusal(400, "CONNECT and Host name different places");
  }
  from_client_.erase(0, head.size);
  go_to(authority->host, *authority->port);
}

// The request is checked when it is read again as the first of the connection.
void Connection::accept_absolute(const HttpHead& head) {
  const auto url = parse_url(head.target);
  if (!url || url->is_tls) {
    services_.audit.refuse(head.target, kNoUrl);
    return answer_refusal(400, fmt::format("{}: {}", one_line(head.target), kNoUrl.reason));
  }
  entry_ = Entry::absolute;
  is_one_request_ = true;
  go_to(url->host, url->port);
  if (is_closed() || protocol_ == Protocol::refused) return;
  deadline_ms_ = 0;
  start_http();
}

}  // namespace belljar::egress
