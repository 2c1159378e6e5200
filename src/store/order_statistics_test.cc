#include "store/order_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace belljar {
namespace {

TEST(OrderStatistics, RankIsTheFirstThatCoversTheShare) {
  EXPECT_EQ(percentile_rank(1, 9900), 1u);
  EXPECT_EQ(percentile_rank(10, 5000), 5u);
  EXPECT_EQ(percentile_rank(11, 5000), 6u);
  EXPECT_EQ(percentile_rank(100, 9900), 99u);
  EXPECT_EQ(percentile_rank(300, 9900), 297u);  // 0.99 x 300 is above 297 in floating point
  EXPECT_EQ(percentile_rank(301, 9900), 298u);
  EXPECT_EQ(percentile_rank(10'000, 9999), 9999u);
}

// Values from tables of nonparametric tolerance limits: 59 for 95 % / 95 %, 299 for 99 % / 95 %, 459 for 99 % / 99 %.
TEST(OrderStatistics, ObservationsNeeded) {
  EXPECT_EQ(observations_needed(5000, 0.95), 5u);
  EXPECT_EQ(observations_needed(9000, 0.95), 29u);
  EXPECT_EQ(observations_needed(9500, 0.95), 59u);
  EXPECT_EQ(observations_needed(9900, 0.95), 299u);
  EXPECT_EQ(observations_needed(9900, 0.99), 459u);
}

TEST(OrderStatistics, AnUpperBoundNeedsThatMany) {
  for (const PercentileHundredths percentile : {5000U, 9000U, 9900U, 9950U}) {
    const std::size_t needed = observations_needed(percentile, 0.95);
    EXPECT_EQ(percentile_bounds(needed, percentile, 0.95).upper, needed);
    EXPECT_FALSE(percentile_bounds(needed - 1, percentile, 0.95).upper);
  }
}

// For the median of 10, ranks 2 and 9 hold with 1 - 11/1024 each; 3 and 8 with 1 - 56/1024, which is too little.
TEST(OrderStatistics, BoundsOfAMedian) {
  const RankBounds bounds = percentile_bounds(10, 5000, 0.95);
  EXPECT_EQ(bounds.lower, 2u);
  EXPECT_EQ(bounds.upper, 9u);
  EXPECT_FALSE(percentile_bounds(1, 5000, 0.95).lower);
  EXPECT_FALSE(percentile_bounds(0, 5000, 0.95).upper);
}

TEST(OrderStatistics, LargeSamples) {
  const RankBounds bounds = percentile_bounds(100'000, 9900, 0.95);
  // The normal approximation: 99000 -+ 1.645 x sqrt(990).
  EXPECT_NEAR(static_cast<double>(*bounds.lower), 99'000 - 51.8, 3);
  EXPECT_NEAR(static_cast<double>(*bounds.upper), 99'000 + 51.8, 3);
}

// The promise itself, on three very different distributions whose percentiles are known in closed form.
TEST(OrderStatistics, BoundsHoldAsOftenAsTheySay) {
  constexpr std::size_t kCount = 400;
  constexpr int kRepeats = 2000;
  constexpr PercentileHundredths kPercentile = 9900;
  const struct {
    const char* name;
    double (*quantile)(double share);
  } distributions[] = {
      {"exponential", [](double u) { return -std::log1p(-u); }},
      {"Pareto with infinite variance", [](double u) { return std::pow(1 - u, -1 / 1.2); }},
      {"two separate lumps", [](double u) { return u < 0.985 ? u : 100 + u; }},
  };
  for (const auto& distribution : distributions) {
    std::mt19937_64 random(20'240'501);
    const double truth = distribution.quantile(0.99);
    int lower_held = 0;
    int upper_held = 0;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      std::vector<double> sample(kCount);
      for (double& value : sample) value = distribution.quantile(static_cast<double>(random() >> 11) * 0x1p-53);
      std::ranges::sort(sample);
      const RankBounds bounds = percentile_bounds(kCount, kPercentile, 0.95);
      lower_held += sample[*bounds.lower - 1] <= truth ? 1 : 0;
      upper_held += sample[*bounds.upper - 1] >= truth ? 1 : 0;
    }
    // Three standard deviations of the count of repeats below 95 %.
    EXPECT_GE(lower_held, kRepeats * 0.95 - 30) << distribution.name;
    EXPECT_GE(upper_held, kRepeats * 0.95 - 30) << distribution.name;
  }
}

}  // namespace
}  // namespace belljar
