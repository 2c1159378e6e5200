// What the egress process is told at its start, and what it tells at its end. Both are JSON between two processes of
// Belljar; the report comes from one that reads hostile bytes, and is read as such.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/egress_rule.h"
#include "spec/outcome.h"
#include "spec/secret_rule.h"

namespace belljar::egress {

struct EgressLimits {
  std::uint64_t connections = 0;             // at once
  std::uint64_t connections_per_second = 0;  // more wait
  std::uint64_t bytes = 0;                   // both ways together
  std::uint64_t idle_ms = 0;                 // without a byte either way
  std::uint64_t time_ms = 0;                 // of a connection, in all
};

struct EgressConfig {
  std::vector<EgressRule> rules;
  std::vector<SecretRule> secrets;  // without their values, which come by descriptors
  EgressLimits limits;
  unsigned run_as = 0;  // user and group that the process takes; 0: it stays who it is
};

// What the process tells before it serves, on a line of its own, where needs_inspection().
struct EgressReady {
  std::string authority_pem;              // the certificate that programs inside must trust
  std::vector<std::size_t> secret_bytes;  // the length of each value
};

inline constexpr std::size_t kReportRowsMax = 512;  // of each kind; what is more is counted together
inline constexpr std::size_t kReportBytesMax = std::size_t{1} << 20;

struct EgressReport {
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
  std::vector<Denial> denials;
  std::vector<NetworkUse> uses;
};

std::string config_to_json(const EgressConfig& config);
Result<EgressConfig> config_from_json(std::string_view text);

std::string ready_to_json(const EgressReady& ready);
std::string refusal_to_json(std::string_view why);  // in place of it

// `secrets`: how many there are. The error of a refusal is bad_value and has its text. Errors: internal.
Result<EgressReady> ready_from_json(std::string_view text, std::size_t secrets);

std::string report_to_json(const EgressReport& report);
std::string failure_to_json(std::string_view why);  // in place of a report

// The error of a failure has its text. Errors: internal.
Result<EgressReport> report_from_json(std::string_view text);

}  // namespace belljar::egress
