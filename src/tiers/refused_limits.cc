#include "tiers/refused_limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::string_view kRefused = "refused: ";

std::string_view held_in(std::string_view tier, const LimitRow& row) {
  if (tier == "wasm") return row.held_in_wasm;
  return tier == "kernel" ? row.held_in_kernel : row.held_in_container;
}

}  // namespace

bool is_refused_limit(std::string_view tier, std::string_view limit) {
  const auto row = std::ranges::find(limit_rows(), limit, &LimitRow::name);
  return row != limit_rows().end() && held_in(tier, *row).starts_with(kRefused);
}

Result<void> check_refused_limits(std::string_view tier, const Limits& limits) {
  for (const LimitRow& row : limit_rows()) {
    if ((limits.*row.field).source != LimitSource::named || !is_refused_limit(tier, row.name)) continue;
    return fail(ErrorCode::cannot_enforce, fmt::format("--{}: the {} tier does not hold it: {}", row.flag, tier,
                                                       held_in(tier, row).substr(kRefused.size())));
  }
  return {};
}

}  // namespace belljar
