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

namespace belljar::egress {

struct EgressLimits {
  std::uint64_t connections = 0;             // at once
  std::uint64_t connections_per_second = 0;  // more wait
  std::uint64_t bytes = 0;                   // both ways together
  std::uint64_t idle_ms = 0;                 // without a byte either way
};

struct EgressConfig {
  std::vector<EgressRule> rules;
  EgressLimits limits;
  unsigned run_as = 0;  // user and group that the process takes; 0: it stays who it is
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

std::string report_to_json(const EgressReport& report);
std::string failure_to_json(std::string_view why);  // in place of a report

// The error of a failure has its text. Errors: internal.
Result<EgressReport> report_from_json(std::string_view text);

}  // namespace belljar::egress
