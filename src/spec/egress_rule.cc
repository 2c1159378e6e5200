#include "spec/egress_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/utf8.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::size_t kPathBytesMax = 2048;
constexpr std::size_t kMethodBytesMax = 32;

std::unexpected<Error> bad(std::string_view where, std::string_view what) {
  return fail(ErrorCode::bad_value, fmt::format("{}: {}", where, what));
}

const std::vector<std::uint16_t> kDefaultPorts = {kHttpPort, kHttpsPort};

Result<std::vector<std::uint16_t>> parse_ports(std::string_view text, std::string_view where) {
  std::vector<std::uint16_t> ports;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), port);
    if (error != std::errc{} || end != one.data() + one.size() || port == 0 || one.front() == '0') {
      return bad(where,
                 fmt::format("{} is not a port; write a number from 1 to 65535, such as example.org:8443", quote(one)));
    }
    ports.push_back(port);
    if (comma == std::string_view::npos) return ports;
    text.remove_prefix(comma + 1);
  }
}

// What people write in place of a host, with what they should write.
Result<void> refuse_known_mistakes(std::string_view text, std::string_view where) {
  if (text.empty()) return bad(where, "the host is empty; write a name, such as example.org");
  if (text.find("://") != std::string_view::npos) {
    return bad(where, fmt::format("{} is a URL; write its host alone, such as example.org", quote(text)));
  }
  if (text.find('/') != std::string_view::npos) {
    return bad(where, fmt::format("{} is neither a host name nor an address; ranges of addresses and paths of URLs "
                                  "can't be written here",
                                  quote(text)));
  }
  if (text == "*" || text == "*.") {
    return bad(where, "everything can't be allowed; name the hosts, such as example.org or *.example.org");
  }
  return {};
}

Result<EgressRule> make_wildcard(std::string_view text, std::string_view where) {
  EgressRule rule;
  const auto ascii = to_ascii_name(text.substr(2));
  const auto host = ascii ? parse_host(*ascii) : std::nullopt;
  if (!host || host->is_literal()) {
    return bad(where, fmt::format("{} is not a wildcard for names; write it as *.example.org", quote(text)));
  }
  if (is_public_suffix(host->text)) {
    return bad(where, fmt::format("{} is too wide: anyone can have a name below {}; name the hosts, or a domain below "
                                  "it",
                                  quote(text), host->text));
  }
  rule.host = *host;
  rule.is_wildcard = true;
  return rule;
}

Result<void> check_literal(const IpAddress& address, std::string_view where) {
  const IpKind kind = kind_of(address);
  if (kind == IpKind::loopback) {
    return bad(where, fmt::format("{} is the sandbox's own loopback inside; to reach a service on this host's "
                                  "loopback, allow a name for it with allow_private = true",
                                  format_ip(address)));
  }
  if (kind == IpKind::multicast || kind == IpKind::embedded || kind == IpKind::reserved) {
    return bad(where, fmt::format("{} is {}, which can't be allowed", format_ip(address), kind_text(kind)));
  }
  return {};
}

bool is_token_character(char c) {
  return (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

Result<void> check_path_pattern(std::string_view path, std::string_view where) {
  if (!path.starts_with('/') || path.size() > kPathBytesMax) {
    return bad(where, fmt::format("{} is not a path; write it as \"/v1/items\" or \"/v1/*\"", quote(path)));
  }
  const std::size_t star = path.find('*');
  if (star != std::string_view::npos && star + 1 != path.size()) {
    return bad(where, fmt::format("{}: a * can stand at the end of a path only", quote(path)));
  }
  const bool is_plain = std::ranges::all_of(path, [](char c) { return c > 0x20 && c < 0x7f && c != '?' && c != '#'; });
  if (!is_plain || path.find("//") != std::string_view::npos || path.find("/.") != std::string_view::npos) {
    return bad(where, fmt::format("{}: a path has no query, no spaces and no empty or dotted parts", quote(path)));
  }
  return {};
}

}  // namespace

Result<EgressRule> parse_egress_host(std::string_view text, std::string_view where) {
  TRY_VOID(refuse_known_mistakes(text, where));
  if (text.starts_with("*.")) return make_wildcard(text, where);
  if (text.find('*') != std::string_view::npos) {
    return bad(where,
               fmt::format("{}: a * stands for whole labels at the beginning only, as in *.example.org", quote(text)));
  }
  std::string_view plain = text;
  if (plain.starts_with('[') && plain.ends_with(']')) plain = plain.substr(1, plain.size() - 2);
  const auto ascii = to_ascii_name(plain);
  auto host = ascii ? parse_host(*ascii) : std::nullopt;
  const bool has_brackets = plain.size() != text.size();
  if (!host || (has_brackets && !(host->address && host->address->family == IpFamily::v6))) {
    return bad(where, fmt::format("{} is neither a host name nor an address in its usual form; write example.org, "
                                  "*.example.org, 203.0.113.7 or [2001:db8::7]",
                                  quote(text)));
  }
  if (host->address) TRY_VOID(check_literal(*host->address, where));
  if (host->text == "localhost" || is_below(host->text, "localhost")) {
    return bad(where, "localhost is the sandbox itself inside, and needs no rule");
  }
  return EgressRule{.host = std::move(*host)};
}

Result<EgressRule> parse_egress_rule(std::string_view text, std::string_view where) {
  TRY_VOID(refuse_known_mistakes(text, where));
  std::size_t colon = text.rfind(':');
  if (const std::size_t bracket = text.rfind(']'); bracket != std::string_view::npos) {
    colon = text.find(':', bracket);
  } else if (colon != std::string_view::npos && text.find(':') != colon) {
    if (parse_ip(text)) return bad(where, fmt::format("write an IPv6 address in brackets: [{}]", text));
  }
  if (colon == std::string_view::npos) return parse_egress_host(text, where);
  EgressRule rule = TRY(parse_egress_host(text.substr(0, colon), where));
  rule.ports = TRY(parse_ports(text.substr(colon + 1), where));
  TRY_VOID(check_egress_rule(rule, where));
  return rule;
}

Result<void> check_egress_rule(EgressRule& rule, std::string_view where) {
  std::ranges::sort(rule.ports);
  const auto doubled = std::ranges::unique(rule.ports);
  rule.ports.erase(doubled.begin(), doubled.end());
  if (rule.ports.empty()) return bad(where, "the list of ports is empty; leave it out for 80 and 443");
  if (rule.ports.front() == 0) return bad(where, "0 is not a port; ports go from 1 to 65535");
  if (rule.methods.size() > kEgressListMax || rule.paths.size() > kEgressListMax) {
    return bad(where, fmt::format("a rule has at most {} methods and {} paths", kEgressListMax, kEgressListMax));
  }
  for (const std::string& method : rule.methods) {
    TRY_VOID(check_http_method(method, where));
    if (method == "CONNECT") return bad(where, "CONNECT is not a request to a server; leave it out");
  }
  for (const std::string& path : rule.paths) TRY_VOID(check_path_pattern(path, where));
  return {};
}

Result<void> check_egress_rules(const std::vector<EgressRule>& rules, std::string_view where) {
  std::set<std::uint16_t> ports;
  std::set<IpAddress> literals;
  for (const EgressRule& rule : rules) {
    ports.insert(rule.ports.begin(), rule.ports.end());
    if (rule.host.address) literals.insert(*rule.host.address);
  }
  if (rules.size() > kEgressRulesMax) return bad(where, fmt::format("at most {} rules", kEgressRulesMax));
  if (ports.size() > kEgressPortsMax) {
    return bad(where, fmt::format("at most {} different ports in all rules together", kEgressPortsMax));
  }
  if (literals.size() > kEgressLiteralsMax) {
    return bad(where, fmt::format("at most {} different addresses in all rules together", kEgressLiteralsMax));
  }
  return {};
}

Result<void> check_http_method(std::string_view method, std::string_view where) {
  const bool is_method =
      !method.empty() && method.size() <= kMethodBytesMax && std::ranges::all_of(method, is_token_character);
  if (is_method) return {};
  return bad(where, fmt::format("{} is not a method; write it as GET or POST", quote(method)));
}

std::string format_egress_rule(const EgressRule& rule) {
  std::string text = rule.is_wildcard ? "*." : "";
  const bool is_v6 = rule.host.address && rule.host.address->family == IpFamily::v6;
  text += is_v6 ? "[" + rule.host.text + "]" : rule.host.text;
  if (rule.ports != kDefaultPorts) text += fmt::format(":{}", fmt::join(rule.ports, ","));
  return text;
}

}  // namespace belljar
