// The decision: may this sandbox reach this host? One class decides for DNS, the relay, both proxies, and
// `belljar policy check`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spec/egress_rule.h"

namespace belljar::egress {

inline constexpr std::size_t kNoRule = static_cast<std::size_t>(-1);

struct Decision {
  bool is_allowed = false;
  std::size_t rule = kNoRule;  // the one that allows, or the first that might have
  std::string reason;          // of a refusal: "default deny", "port 22 is not in rule 1 (example.org)"
  std::string hint;            // of a refusal: what would allow it
};

// An HTTP request, as far as rules look at it.
struct RequestLine {
  std::string_view method;
  std::string_view path;  // without the query
};

class Allowlist {
 public:
  explicit Allowlist(std::vector<EgressRule> rules) : rules_(std::move(rules)) {}

  std::span<const EgressRule> rules() const { return rules_; }

  // Whether a rule names the host, whatever the port: such names resolve.
  bool names(const Host& host) const;

  // May a connection to it be opened? Where only rules with methods or paths allow it, the requests on it are still to
  // be decided: see must_see_requests(). Others go before these.
  Decision decide(const Host& host, unsigned port) const;

  bool must_see_requests(const Host& host, unsigned port) const;

  // May this request be made on such a connection?
  Decision decide_request(const Host& host, unsigned port, const RequestLine& request) const;

  // May this address be dialled for the host? `host` is allowed at `port`; a literal's own address always may.
  Decision decide_address(const Host& host, unsigned port, const IpAddress& address) const;

 private:
  std::string describe(std::span<const std::size_t> rules) const;

  std::vector<EgressRule> rules_;
};

// The refusal of a name that no rule has, whatever the port.
Decision refuse_name(const Host& host);

// Whether the rule names the host at this port.
bool is_for(const EgressRule& rule, const Host& host, unsigned port);

// Whether the rule's methods and paths have the request.
bool allows_request(const EgressRule& rule, const RequestLine& request);

// "rule 2 (*.example.org)", for messages.
std::string describe_rule(const EgressRule& rule, std::size_t index);

// Whether different servers may take the path for different ones: it has dotted or empty parts, or such parts and
// slashes in percent-encoding. Rules with paths refuse it.
bool is_ambiguous_path(std::string_view path);

}  // namespace belljar::egress
