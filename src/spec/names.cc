#include "spec/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "spec/limits.h"

namespace belljar {
namespace {

constexpr NamedRow kWalls[] = {
#define WALL(name, what) {#name, what},
#include "spec/walls.def"
#undef WALL
};

constexpr TierRow kTiers[] = {
#define TIER(name, network, what) {#name, TierNetwork::network, what},
#include "spec/tiers.def"
#undef TIER
};

// How many characters must be added, removed, replaced or swapped with their neighbour to make one name of the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = std::exchange(last, std::move(row));
  }
  return last[b.size()];
}

// Without leading dashes, and with - for _: so that memory_max, --memory-max and memory-max are compared alike.
std::string comparable(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  std::string result(name);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

}  // namespace

std::span<const NamedRow> wall_rows() {
  return kWalls;
}
std::span<const TierRow> tier_rows() {
  return kTiers;
}

const std::vector<std::string_view>& requirable_names() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> all;
    for (const NamedRow& wall : kWalls) all.push_back(wall.name);
    for (const LimitRow& limit : limit_rows()) all.push_back(limit.name);
    return all;
  }();
  return kNames;
}

std::string_view nearest_name(std::string_view written, std::span<const std::string_view> known) {
  constexpr std::size_t kLongestName = 64;
  const std::string wanted = comparable(written);
  if (wanted.size() < 2 || wanted.size() > kLongestName) return {};
  std::string_view best;
  std::size_t best_distance = 1 + std::max<std::size_t>(1, wanted.size() / 3);
  for (const std::string_view name : known) {
    const std::string candidate = comparable(name);
    const bool one_begins_the_other =
        wanted.size() >= 3 && candidate.size() >= 3 && (candidate.starts_with(wanted) || wanted.starts_with(candidate));
    const std::size_t distance = one_begins_the_other ? 1 : edit_distance(wanted, candidate);
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string name_hint(std::string_view written, std::span<const std::string_view> known) {
  const std::string_view near = nearest_name(written, known);
  if (!near.empty()) return fmt::format("did you mean {}?", near);
  std::string list = "known: ";
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (i > 0) list += i + 1 == known.size() ? " and " : ", ";
    list += known[i];
  }
  return list;
}

}  // namespace belljar
