// EgressRule: one entry of the allowlist. Without any, a sandbox has no network.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/host_name.h"

namespace belljar {

inline constexpr std::size_t kEgressRulesMax = 256;
inline constexpr std::size_t kEgressPortsMax = 64;     // different ports of all rules together
inline constexpr std::size_t kEgressLiteralsMax = 64;  // different addresses of all rules together
inline constexpr std::size_t kEgressListMax = 64;      // methods, and paths, of one rule
inline constexpr std::uint16_t kHttpPort = 80;
inline constexpr std::uint16_t kHttpsPort = 443;

struct EgressRule {
  Host host;                 // of a wildcard: what stands after "*."
  bool is_wildcard = false;  // all names below `host`, at any depth, and not `host` itself
  std::vector<std::uint16_t> ports = {kHttpPort, kHttpsPort};  // rising, never empty
  std::vector<std::string> methods;                            // of HTTP requests; empty: all
  std::vector<std::string> paths;  // of HTTP requests, without the query: equal, or what stands before a * at the end
  bool allow_private = false;      // the name may lead to private, loopback and link-local addresses

  bool restricts_requests() const { return !methods.empty() || !paths.empty(); }
  bool operator==(const EgressRule&) const = default;
};

// Reads what --allow takes: HOST, HOST:PORT or HOST:PORT,PORT, where HOST is a name, *.NAME, an IPv4 address or an
// IPv6 address in brackets. Errors: bad_value; `where` is the flag, or file, line and key.
Result<EgressRule> parse_egress_rule(std::string_view text, std::string_view where);

// The same for HOST alone, in the policy file's tables.
Result<EgressRule> parse_egress_host(std::string_view text, std::string_view where);

// Checks ports, methods and paths; puts ports in order.
Result<void> check_egress_rule(EgressRule& rule, std::string_view where);

// The bounds on all rules together.
Result<void> check_egress_rules(const std::vector<EgressRule>& rules, std::string_view where);

// Whether it is one that a request may have (RFC 9110, 9.1), of at most 32 bytes. Errors: bad_value.
Result<void> check_http_method(std::string_view method, std::string_view where);

// "*.example.org:443,8443": parse_egress_rule() takes it back to the same host and ports. Ports 80 and 443 are left
// out.
std::string format_egress_rule(const EgressRule& rule);

}  // namespace belljar
