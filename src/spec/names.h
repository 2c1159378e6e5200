// The names that people write: walls, tiers, limits; and what to say when a name is not known.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace belljar {

// A row of walls.def.
struct NamedRow {
  std::string_view name;
  std::string_view what;
};

enum class TierNetwork { none, by_name };

// A row of tiers.def.
struct TierRow {
  std::string_view name;
  TierNetwork network;
  std::string_view what;
};

std::span<const NamedRow> wall_rows();
std::span<const TierRow> tier_rows();

// What --require takes: the walls, then the limits.
const std::vector<std::string_view>& requirable_names();

// The known name that `written` was probably meant to be: a few typing mistakes away, or one begins with the other.
// Empty when none is near.
std::string_view nearest_name(std::string_view written, std::span<const std::string_view> known);

// "did you mean X?" where a name is near, else "known: a, b and c".
std::string name_hint(std::string_view written, std::span<const std::string_view> known);

}  // namespace belljar
