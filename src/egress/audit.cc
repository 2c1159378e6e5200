#include "egress/audit.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace belljar::egress {
namespace {

constexpr std::size_t kTargetBytesMax = 300;
constexpr std::string_view kOthers = "(others)";

// The row for `key`, made by `make`; where there are too many, the one for all others.
template <typename Rows, typename Make>
std::size_t find_row(std::unordered_map<std::string, std::size_t>& index, Rows& rows, std::string key, Make make) {
  const auto found = index.find(key);
  if (found != index.end()) return found->second;
  if (rows.size() < kReportRowsMax) {
    rows.push_back(make());
    index.emplace(std::move(key), rows.size() - 1);
    return rows.size() - 1;
  }
  if (rows.size() == kReportRowsMax) {
    rows.push_back({});
    rows.back().target = kOthers;
    rows.back().count = 0;
  }
  return kReportRowsMax;
}

}  // namespace

void Audit::refuse(std::string_view target, const Decision& decision) {
  const std::string shown = one_line(target, kTargetBytesMax);
  const Row row = find_row(denials_, report_.denials, shown + "\n" + decision.reason, [&] {
    return Denial{.kind = "network", .target = shown, .rule = decision.reason, .hint = decision.hint, .count = 0};
  });
  ++report_.denials[row].count;
}

void Audit::add_bytes(std::uint64_t sent, std::uint64_t received) {
  report_.sent_bytes += sent;
  report_.received_bytes += received;
}

void Audit::add_use(std::string_view target, std::string_view rule, std::uint64_t connections, std::uint64_t sent,
                    std::uint64_t received) {
  const std::string shown = one_line(target, kTargetBytesMax);
  const Row row = find_row(uses_, report_.uses, fmt::format("{}\n{}", shown, rule),
                           [&] { return NetworkUse{.target = shown, .rule = std::string(rule), .count = 0}; });
  report_.uses[row].count += connections;
  report_.uses[row].sent_bytes += sent;
  report_.uses[row].received_bytes += received;
}

}  // namespace belljar::egress
