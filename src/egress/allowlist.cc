#include "egress/allowlist.h"

#include <fmt/format.h>

#include <algorithm>

namespace belljar::egress {
namespace {

bool names_host(const EgressRule& rule, const Host& host) {
  if (!rule.is_wildcard) return rule.host == host;
  return !host.is_literal() && is_below(host.text, rule.host.text);
}

bool has_port(const EgressRule& rule, unsigned port) {
  return std::ranges::binary_search(rule.ports, port);
}

bool matches_path(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('*')) return pattern == path;
  pattern.remove_suffix(1);
  return path.starts_with(pattern);
}

// As narrow as can be. Where no rule can allow it, the parser of rules says why.
std::string rule_hint(const EgressRule& wanted) {
  const std::string text = format_egress_rule(wanted);
  const auto rule = parse_egress_rule(text, "nothing");
  return rule ? "--allow " + text : rule.error().message;
}

// Whether allow_private lifts the refusal.
bool is_liftable(IpKind kind) {
  return kind == IpKind::private_network || kind == IpKind::loopback || kind == IpKind::link_local;
}

}  // namespace

bool is_for(const EgressRule& rule, const Host& host, unsigned port) {
  return names_host(rule, host) && has_port(rule, port);
}

bool allows_request(const EgressRule& rule, const RequestLine& request) {
  if (!rule.methods.empty() && std::ranges::find(rule.methods, request.method) == rule.methods.end()) return false;
  if (rule.paths.empty()) return true;
  if (is_ambiguous_path(request.path)) return false;
  return std::ranges::any_of(rule.paths,
                             [&](const std::string& pattern) { return matches_path(pattern, request.path); });
}

bool is_ambiguous_path(std::string_view path) {
  std::string lower(path);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  constexpr std::string_view kSigns[] = {"//", "/./", "/../", "%2e", "%2f", "%5c", "%00", "\\", ";"};
  return lower.ends_with("/.") || lower.ends_with("/..") ||
         std::ranges::any_of(kSigns, [&](std::string_view sign) { return lower.find(sign) != std::string::npos; });
}

std::string describe_rule(const EgressRule& rule, std::size_t index) {
  return fmt::format("rule {} ({})", index + 1, format_egress_rule(rule));
}

bool Allowlist::names(const Host& host) const {
  return std::ranges::any_of(rules_, [&](const EgressRule& rule) { return names_host(rule, host); });
}

Decision refuse_name(const Host& host) {
  return {.reason = "default deny", .hint = rule_hint({.host = host})};
}

// "rule 1 (example.org) or rule 3 (example.org:81)", shortened.
std::string Allowlist::describe(std::span<const std::size_t> rules) const {
  constexpr std::size_t kShownMax = 4;
  std::string text;
  const std::size_t shown = std::min(rules.size(), kShownMax);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == rules.size() ? " or " : ", ";
    text += describe_rule(rules_[rules[i]], rules[i]);
  }
  if (rules.size() > shown) text += fmt::format(" or {} more", rules.size() - shown);
  return text;
}

Decision Allowlist::decide(const Host& host, unsigned port) const {
  std::vector<std::size_t> others;
  std::size_t restricting = kNoRule;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (!names_host(rules_[i], host)) continue;
    if (!has_port(rules_[i], port)) {
      others.push_back(i);
    } else if (!rules_[i].restricts_requests()) {
      return {.is_allowed = true, .rule = i};
    } else if (restricting == kNoRule) {
      restricting = i;
    }
  }
  if (restricting != kNoRule) return {.is_allowed = true, .rule = restricting};
  Decision decision{.reason = "default deny"};
  if (!others.empty()) {
    decision.rule = others.front();
    decision.reason = fmt::format("port {} is not in {}", port, describe(others));
  }
  decision.hint = rule_hint({.host = host, .ports = {static_cast<std::uint16_t>(port)}});
  return decision;
}

bool Allowlist::must_see_requests(const Host& host, unsigned port) const {
  return std::ranges::none_of(
      rules_, [&](const EgressRule& rule) { return is_for(rule, host, port) && !rule.restricts_requests(); });
}

Decision Allowlist::decide_request(const Host& host, unsigned port, const RequestLine& request) const {
  Decision decision = decide(host, port);
  if (!decision.is_allowed) return decision;
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (!is_for(rules_[i], host, port)) continue;
    if (allows_request(rules_[i], request)) return {.is_allowed = true, .rule = i};
    others.push_back(i);
  }
  return {.rule = others.front(),
          .reason = fmt::format("the method or the path is not in {}", describe(others)),
          .hint = "methods and paths of such a rule in the policy file"};
}

Decision Allowlist::decide_address(const Host& host, unsigned port, const IpAddress& address) const {
  const Decision connection = decide(host, port);
  if (!connection.is_allowed || host.address == address) return connection;
  const IpKind kind = kind_of(address);
  if (kind == IpKind::global) return connection;
  // A rule for some requests lifts it for those alone, and others could come on the same connection.
  const auto is_here = [&](const EgressRule& rule) { return is_for(rule, host, port); };
  const auto lifts = [&](const EgressRule& rule) { return rule.allow_private && is_here(rule); };
  const auto lifts_all = [&](const EgressRule& rule) { return lifts(rule) && !rule.restricts_requests(); };
  const bool is_lifted =
      std::ranges::any_of(rules_, lifts_all) ||
      std::ranges::all_of(rules_, [&](const EgressRule& rule) { return !is_here(rule) || lifts(rule); });
  if (is_lifted && is_liftable(kind)) {
    const auto lifting = std::ranges::find_if(rules_, lifts);
    return {.is_allowed = true, .rule = static_cast<std::size_t>(lifting - rules_.begin())};
  }
  return {.rule = connection.rule,
          .reason = fmt::format("{} leads to {}, {}", host.text, format_ip(address), kind_text(kind)),
          .hint = is_liftable(kind) ? "allow_private = true in each rule for it in the policy file"
                                    : "nothing: no name may lead there"};
}

}  // namespace belljar::egress
