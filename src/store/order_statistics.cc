#include "store/order_statistics.h"

#include <cmath>

namespace belljar {
namespace {

constexpr unsigned kWhole = 10'000;

double share_of(PercentileHundredths percentile) {
  return static_cast<double>(percentile) / kWhole;
}

// The binomial probability of exactly k of n, each with probability p.
double binomial_probability(std::size_t k, std::size_t n, double p) {
  const auto log_factorial = [](std::size_t m) { return std::lgamma(static_cast<double>(m) + 1); };
  return std::exp(log_factorial(n) - log_factorial(k) - log_factorial(n - k) + static_cast<double>(k) * std::log(p) +
                  static_cast<double>(n - k) * std::log1p(-p));
}

}  // namespace

std::size_t percentile_rank(std::size_t count, PercentileHundredths percentile) {
  return (count * percentile + kWhole - 1) / kWhole;
}

RankBounds percentile_bounds(std::size_t count, PercentileHundredths percentile, double certainty) {
  RankBounds bounds;
  double at_most = 0;  // the probability that at most `below` observations lie below the true percentile
  for (std::size_t below = 0; below < count && !bounds.upper; ++below) {
    at_most += binomial_probability(below, count, share_of(percentile));
    if (at_most <= 1 - certainty) bounds.lower = below + 1;
    if (at_most >= certainty) bounds.upper = below + 1;
  }
  return bounds;
}

std::size_t observations_needed(PercentileHundredths percentile, double certainty) {
  return static_cast<std::size_t>(std::ceil(std::log(1 - certainty) / std::log(share_of(percentile))));
}

}  // namespace belljar
