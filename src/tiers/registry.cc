// The tiers, one row each.
#include <fmt/format.h>

#include <array>

#include "spec/errors.h"
#include "tiers/container/container.h"
#include "tiers/kernel/kernel.h"
#include "tiers/tier.h"
#include "tiers/wasm/wasm.h"

namespace belljar {

std::span<const Tier* const> tiers() {
  static const std::array kTiers = {
      &container_tier(),
      &kernel_tier(),
      &wasm_tier(),
  };
  return kTiers;
}

Result<const Tier*> find_tier(std::string_view name) {
  std::string known;
  for (const Tier* tier : tiers()) {
    if (tier->name() == name) return tier;
    known += known.empty() ? "" : ", ";
    known += tier->name();
  }
  return fail(ErrorCode::bad_value, fmt::format("unknown isolation tier '{}'; this build has: {}", name, known));
}

}  // namespace belljar
