// Percentiles of a sample, and how sure one can be of them, without assuming any form of the distribution: the number
// of observations below the true percentile is binomial, so two of the ordered observations bound it. (H. A. David and
// H. N. Nagaraja, Order Statistics, section 7.1.)
#pragma once

#include <cstddef>
#include <optional>

namespace belljar {

// A percentile in hundredths of a percent: 9900 is the 99th, 9950 the 99.5th. From 1 to 9999.
using PercentileHundredths = unsigned;

// The rank, from 1, of the ordered observation that is the sample's percentile: the first with at least that share of
// the sample at or below it. `count` must not be 0.
std::size_t percentile_rank(std::size_t count, PercentileHundredths percentile);

// Ranks, from 1, of ordered observations between which the true percentile lies, each bound by itself with `certainty`
// (0.95: nineteen times in twenty). Nothing where the sample is too small for such a bound.
struct RankBounds {
  std::optional<std::size_t> lower;
  std::optional<std::size_t> upper;
};
RankBounds percentile_bounds(std::size_t count, PercentileHundredths percentile, double certainty);

// The smallest sample that bounds the percentile from above: 299 for the 99th with a certainty of 0.95.
std::size_t observations_needed(PercentileHundredths percentile, double certainty);

}  // namespace belljar
