// DNS messages (RFC 1035): questions of the sandbox and answers to them; questions to the host's servers and theirs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spec/ip_address.h"

namespace belljar::egress {

inline constexpr std::uint16_t kDnsTypeA = 1;
inline constexpr std::uint16_t kDnsTypeAaaa = 28;
inline constexpr std::uint16_t kDnsTypeAny = 255;
inline constexpr std::uint16_t kDnsClassIn = 1;
inline constexpr std::size_t kDnsUdpBytesMax = 1232;

enum class DnsCode : std::uint8_t {
  no_error = 0,
  format_error = 1,
  server_failure = 2,
  no_such_name = 3,
  not_implemented = 4,
  refused = 5
};

struct DnsQuestion {
  std::uint16_t id = 0;
  bool wants_recursion = false;
  std::string name;  // as parse_host() makes it; empty where the name is none that a host can have
  std::uint16_t type = 0;
  std::uint16_t klass = 0;
  std::string wire;  // the question as it came, to be repeated in the answer
};

// Nothing where the bytes are no question: then no answer is due.
std::optional<DnsQuestion> parse_dns_question(std::string_view message);

// The answer with `addresses`, all of the family that was asked for, or none.
std::string make_dns_answer(const DnsQuestion& question, DnsCode code, std::span<const IpAddress> addresses);

// A question to a server. `name` is a host name.
std::string make_dns_question(std::uint16_t id, std::string_view name, std::uint16_t type);

struct DnsAnswer {
  DnsCode code = DnsCode::server_failure;
  bool is_truncated = false;
  std::vector<IpAddress> addresses;  // of the name asked for, or of what its aliases lead to
};

// Nothing where the bytes don't answer the question with this id, name and type.
std::optional<DnsAnswer> parse_dns_answer(std::string_view message, std::uint16_t id, std::string_view name,
                                          std::uint16_t type);

}  // namespace belljar::egress
