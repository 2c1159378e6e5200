// Every decision of one sandbox, added up: what was allowed, by which rule, with how many bytes; what was refused, why,
// and what would allow it. Bounded, however many different things a program asks for.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "egress/allowlist.h"
#include "egress/report.h"

namespace belljar::egress {

class Audit {
 public:
  // `target` as the program named it: "evil.test:443".
  void refuse(std::string_view target, const Decision& decision);

  // Bytes that any connection moved; whose they are is told by add_use().
  void add_bytes(std::uint64_t sent, std::uint64_t received);
  std::uint64_t bytes_total() const { return report_.sent_bytes + report_.received_bytes; }

  // What `connections` connections did under one rule.
  void add_use(std::string_view target, std::string_view rule, std::uint64_t connections, std::uint64_t sent,
               std::uint64_t received);

  const EgressReport& report() const { return report_; }

 private:
  using Row = std::size_t;
  EgressReport report_;
  std::unordered_map<std::string, Row> denials_;
  std::unordered_map<std::string, Row> uses_;
};

}  // namespace belljar::egress
