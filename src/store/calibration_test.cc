#include "store/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <random>

#include "base/json.h"
#include "spec/errors.h"

namespace belljar {
namespace {

using testing::HasSubstr;

std::size_t index_of(std::string_view name) {
  const auto rows = limit_rows();
  return static_cast<std::size_t>(std::ranges::find(rows, name, &LimitRow::name) - rows.begin());
}

const LimitCalibration& limit_of(const Calibration& calibration, std::string_view name) {
  return calibration.limits[index_of(name)];
}

// A run that ended by itself and used `bytes` of memory.
RecordedUses run_with_memory(std::uint64_t bytes, std::string status = "ok") {
  RecordedUses run{1, std::move(status), std::vector<RecordedUse>(limit_rows().size())};
  for (std::size_t i = 0; i < run.uses.size(); ++i) run.uses[i] = {limit_rows()[i].preset, std::nullopt, false, false};
  run.uses[index_of("memory")].used = bytes;
  run.uses[index_of("timeout")].used = 100;
  return run;
}

// A run that the memory limit `cap` ended.
RecordedUses run_killed_at(std::uint64_t cap) {
  RecordedUses run = run_with_memory(cap, "memory");
  run.uses[index_of("memory")] = {cap, cap, true, true};
  return run;
}

std::vector<RecordedUses> sample(std::size_t count, const std::function<double(double)>& quantile) {
  std::mt19937_64 random(7);
  std::vector<RecordedUses> runs;
  for (std::size_t i = 0; i < count; ++i) {
    const double share = static_cast<double>(random() >> 11) * 0x1p-53;
    runs.push_back(run_with_memory(static_cast<std::uint64_t>(quantile(share))));
  }
  return runs;
}

// Quantiles of the normal distribution, by bisection of its distribution function.
double normal_quantile(double share) {
  double low = -10;
  double high = 10;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::numbers::sqrt2) / 2 < share ? low : high) = middle;
  }
  return low;
}

constexpr double kMib = 1 << 20;

// The percentiles must be near the true ones, the truth within the bounds, and the proposal the factor above.
void expect_percentiles(const std::function<double(double)>& quantile, double tolerance) {
  const Calibration calibration = calibrate(sample(5000, quantile), {});
  const LimitCalibration& memory = limit_of(calibration, "memory");
  ASSERT_EQ(memory.sample_size(), 5000u);
  const auto near = [&](std::optional<std::uint64_t> value, double share) {
    ASSERT_TRUE(value);
    EXPECT_NEAR(static_cast<double>(*value) / quantile(share), 1, tolerance) << share;
  };
  near(memory.p50, 0.5);
  near(memory.p90, 0.9);
  near(memory.p99, 0.99);
  EXPECT_EQ(memory.percentile, memory.p99);
  EXPECT_LE(static_cast<double>(memory.lower.value()), quantile(0.99));
  EXPECT_GE(static_cast<double>(memory.upper.value()), quantile(0.99));
  EXPECT_NEAR(static_cast<double>(memory.proposal.value()) / (3 * static_cast<double>(*memory.p99)), 1.02, 0.03);
}

// A temporary file may come and go unseen, and with a lower limit every such run would fail.
TEST(Calibration, TheWritableSpaceIsNeverLowered) {
  std::vector<RecordedUses> runs(300, run_with_memory(5 * kMiB));
  for (RecordedUses& run : runs) run.uses[index_of("tmp_size")].used = 4096;
  const Calibration low = calibrate(runs, CalibrationOptions{});
  EXPECT_EQ(low.limits[index_of("tmp_size")].proposal, 50 * kMiB);
  for (RecordedUses& run : runs) run.uses[index_of("tmp_size")].used = 40 * kMiB;
  const Calibration high = calibrate(runs, CalibrationOptions{});
  EXPECT_GE(high.limits[index_of("tmp_size")].proposal.value_or(0), 120 * kMiB);
}

TEST(Calibration, LogNormal) {
  expect_percentiles([](double share) { return 20 * kMib * std::exp(0.4 * normal_quantile(share)); }, 0.06);
}

TEST(Calibration, HeavyTail) {
  expect_percentiles([](double share) { return 8 * kMib * std::pow(1 - share, -1 / 1.5); }, 0.15);
}

TEST(Calibration, TwoModes) {
  const auto quantile = [](double share) {
    return share < 0.7 ? (10 + share) * kMib : (80 + 20 * (share - 0.7)) * kMib;
  };
  expect_percentiles(quantile, 0.02);
  const Histogram histogram = make_histogram(limit_of(calibrate(sample(5000, quantile), {}), "memory").observed, 10);
  EXPECT_GT(histogram.bins.front().count, 3000u);
  EXPECT_GT(histogram.bins.back().count, 500u);
  for (std::size_t i = 1; i + 2 < histogram.bins.size(); ++i) EXPECT_EQ(histogram.bins[i].count, 0u) << i;
}

TEST(Calibration, Constant) {
  const Calibration calibration = calibrate(std::vector(300, run_with_memory(20 * kMiB)), {});
  const LimitCalibration& memory = limit_of(calibration, "memory");
  EXPECT_EQ(memory.p50, 20 * kMiB);
  EXPECT_EQ(memory.percentile, 20 * kMiB);
  EXPECT_EQ(memory.lower, 20 * kMiB);
  EXPECT_EQ(memory.upper, 20 * kMiB);
  EXPECT_EQ(memory.proposal, 60 * kMiB);
  EXPECT_EQ(memory.would_stop, 0u);
  EXPECT_EQ(calibration.would_stop, 0u);
  const Histogram histogram = make_histogram(memory.observed, 10);
  ASSERT_EQ(histogram.bins.size(), 1u);
  EXPECT_EQ(histogram.bins[0].count, 300u);
}

TEST(Calibration, NoRun) {
  const Calibration calibration = calibrate({}, {.small_sample = SmallSample::accept});
  for (const LimitCalibration& limit : calibration.limits) EXPECT_FALSE(limit.proposal) << limit.row->name;
  const Result<void> enough = check_enough(calibration, "p", "record more");
  ASSERT_FALSE(enough);
  EXPECT_EQ(enough.error().code, ErrorCode::too_few_runs);
}

TEST(Calibration, OneRun) {
  const std::vector<RecordedUses> one = {run_with_memory(20 * kMiB)};
  const Calibration refused = calibrate(one, {});
  EXPECT_FALSE(limit_of(refused, "memory").proposal);
  EXPECT_THAT(limit_of(refused, "memory").why_none, HasSubstr("299"));
  ASSERT_FALSE(check_enough(refused, "p", "record more"));
  EXPECT_THAT(check_enough(refused, "p", "record more").error().message, HasSubstr("299"));

  const Calibration forced = calibrate(one, {.small_sample = SmallSample::accept});
  EXPECT_TRUE(check_enough(forced, "p", "record more"));
  EXPECT_EQ(limit_of(forced, "memory").proposal, 60 * kMiB);
  EXPECT_FALSE(limit_of(forced, "memory").upper);
}

TEST(Calibration, TheStatedNumberIsEnough) {
  std::vector<RecordedUses> runs(298, run_with_memory(kMiB));
  EXPECT_FALSE(check_enough(calibrate(runs, {}), "p", "record more"));
  runs.push_back(run_with_memory(kMiB));
  EXPECT_TRUE(check_enough(calibrate(runs, {}), "p", "record more"));
  runs.resize(29);
  EXPECT_TRUE(check_enough(calibrate(runs, {.percentile = 9000}), "p", "record more"));
  runs.resize(28);
  EXPECT_FALSE(check_enough(calibrate(runs, {.percentile = 9000}), "p", "record more"));
}

// Taken as observations of the cap, the killed runs would give 3 x 64 MiB at most; left out, 3 x 10 MiB.
TEST(Calibration, KilledRunsAreNotObservationsOfTheirLimit) {
  std::vector<RecordedUses> runs(300, run_with_memory(10 * kMiB));
  for (int i = 0; i < 12; ++i) runs.push_back(run_killed_at(64 * kMiB));
  const Calibration calibration = calibrate(runs, {});
  const LimitCalibration& memory = limit_of(calibration, "memory");
  EXPECT_EQ(memory.censored, 12u);
  EXPECT_EQ(memory.ended, 12u);
  EXPECT_FALSE(memory.percentile);
  EXPECT_EQ(memory.at_least, 64 * kMiB);
  EXPECT_FALSE(memory.upper);
  EXPECT_EQ(memory.proposal, 192 * kMiB);
  EXPECT_EQ(memory.would_go_on, 12u);
  EXPECT_EQ(memory.current, 64 * kMiB);
}

// Runs that were struck at a lower limit of old are known to have wanted more than that, and no more is claimed.
TEST(Calibration, RunsStruckAtAnOldLimitCountWithThat) {
  std::vector<RecordedUses> runs(400, run_with_memory(20 * kMiB));
  for (int i = 0; i < 20; ++i) runs.push_back(run_killed_at(5 * kMiB));
  runs.push_back(run_with_memory(90 * kMiB));
  const LimitCalibration memory = limit_of(calibrate(runs, {}), "memory");
  EXPECT_FALSE(memory.percentile);
  EXPECT_EQ(memory.at_least, 20 * kMiB);
  EXPECT_EQ(memory.proposal, 60 * kMiB);
  runs.push_back(run_killed_at(64 * kMiB));
  EXPECT_EQ(limit_of(calibrate(runs, {}), "memory").at_least, 20 * kMiB);
  EXPECT_EQ(limit_of(calibrate(runs, {}), "memory").proposal, 192 * kMiB);
}

// Fewer than the percentile leaves out: they move it up, and no more.
TEST(Calibration, AFewKilledRunsMoveThePercentileUp) {
  std::vector<RecordedUses> runs;
  for (std::uint64_t i = 1; i <= 1000; ++i) runs.push_back(run_with_memory(i * kMiB));
  const std::uint64_t before = *limit_of(calibrate(runs, {}), "memory").percentile;
  for (int i = 0; i < 5; ++i) runs.push_back(run_killed_at(4 * kMiB));
  const Calibration calibration = calibrate(runs, {});
  const LimitCalibration& memory = limit_of(calibration, "memory");
  EXPECT_GT(memory.percentile.value(), before);
  EXPECT_GT(memory.proposal.value(), 3 * before);
}

TEST(Calibration, OtherUsesOfAKilledRunAreCutShort) {
  std::vector<RecordedUses> runs(300, run_with_memory(10 * kMiB));
  runs.push_back(run_killed_at(64 * kMiB));
  const Calibration calibration = calibrate(runs, {});
  const LimitCalibration& timeout = limit_of(calibration, "timeout");
  EXPECT_EQ(timeout.cut_short, 1u);
  EXPECT_EQ(timeout.observed.size(), 300u);
}

TEST(Calibration, WhatWasCancelledOrRefusedIsLeftOut) {
  std::vector<RecordedUses> runs(300, run_with_memory(10 * kMiB));
  for (const char* status : {"cancelled", "denied", "internal", "a word of the future"}) {
    runs.push_back(run_with_memory(kGiB, status));
  }
  const Calibration calibration = calibrate(runs, {});
  EXPECT_EQ(calibration.runs, 300u);
  EXPECT_EQ(calibration.left_out, 4u);
  EXPECT_EQ(limit_of(calibration, "memory").observed.back(), 10 * kMiB);
}

TEST(Calibration, SaysWhatItWouldHaveDone) {
  std::vector<RecordedUses> runs(1000, run_with_memory(10 * kMiB));
  for (int i = 0; i < 4; ++i) runs.push_back(run_with_memory(200 * kMiB));
  const Calibration calibration = calibrate(runs, {});
  EXPECT_EQ(limit_of(calibration, "memory").proposal, 30 * kMiB);
  EXPECT_EQ(limit_of(calibration, "memory").would_stop, 4u);
  EXPECT_EQ(calibration.would_stop, 4u);
}

TEST(Calibration, SmallUsesGetAFloor) {
  std::vector<RecordedUses> runs(300, run_with_memory(1000));
  for (RecordedUses& run : runs) run.uses[index_of("tasks")].used = 1;
  const Calibration calibration = calibrate(runs, {});
  EXPECT_EQ(limit_of(calibration, "memory").proposal, kMiB);
  EXPECT_EQ(limit_of(calibration, "timeout").proposal, 1000u);
  EXPECT_EQ(limit_of(calibration, "tasks").proposal, 16u);
  EXPECT_FALSE(limit_of(calibration, "open_files").proposal);
  EXPECT_FALSE(limit_of(calibration, "cpus").proposal);
}

TEST(Calibration, ProposalsStayInTheRange) {
  const Calibration calibration = calibrate(std::vector(300, run_with_memory(60 * kTiB)), {});
  EXPECT_EQ(limit_of(calibration, "memory").proposal, 64 * kTiB);
}

TEST(Calibration, ProposalsReplaceWhatNobodyNamed) {
  const Calibration calibration = calibrate(std::vector(300, run_with_memory(10 * kMiB)), {});
  Limits limits;
  limits.timeout = {5000, LimitSource::named};
  const Limits proposed = with_proposals(limits, calibration);
  EXPECT_EQ(proposed.memory.value, 30 * kMiB);
  EXPECT_EQ(proposed.timeout.value, 5000u);
  EXPECT_EQ(proposed.open_files.value, limits.open_files.value);
}

TEST(Calibration, Json) {
  std::vector<RecordedUses> runs(300, run_with_memory(10 * kMiB));
  const auto json = parse_json(calibration_to_json(
      calibrate(runs, {.percentile = 9950, .factor = 1.5, .small_sample = SmallSample::accept}), "p"));
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["profile"], "p");
  EXPECT_EQ((*json)["percentile"], 99.5);
  const Json& memory = (*json)["limits"][index_of("memory")];
  EXPECT_EQ(memory["limit"], "memory");
  EXPECT_EQ(memory["proposal"], 15 * kMiB);
  EXPECT_TRUE((*json)["limits"][index_of("open_files")]["proposal"].is_null());
}

TEST(Histogram, CountsEachValueOnce) {
  std::vector<std::uint64_t> values;
  for (std::uint64_t i = 0; i < 1000; ++i) values.push_back(i * i);
  for (const std::size_t bins : {1UL, 7UL, 20UL}) {
    const Histogram histogram = make_histogram(values, bins);
    std::size_t sum = 0;
    for (std::size_t i = 0; i < histogram.bins.size(); ++i) {
      sum += histogram.bins[i].count;
      EXPECT_LT(histogram.bins[i].from, histogram.bins[i].to);
      EXPECT_EQ(histogram.bins[i].from, i > 0 ? histogram.bins[i - 1].to : values.front());
    }
    EXPECT_EQ(sum, values.size());
  }
}

TEST(Histogram, WideRangesGetRisingWidths) {
  const Histogram histogram = make_histogram({1, 2, 4, 1'000'000}, 12);
  EXPECT_EQ(histogram.widths, BinWidths::rising);
  EXPECT_EQ(histogram.bins.front().from, 1u);
  EXPECT_EQ(histogram.bins.back().to, 1'000'001u);
  EXPECT_EQ(histogram.bins.back().count, 1u);
  EXPECT_EQ(make_histogram({10, 11, 12}, 12).widths, BinWidths::equal);
  EXPECT_TRUE(make_histogram({}, 12).bins.empty());
}

TEST(Histogram, SmallNumbersHaveABinEach) {
  const Histogram histogram = make_histogram({1, 1, 2, 4}, 12);
  ASSERT_EQ(histogram.bins.size(), 4u);
  const std::size_t counts[] = {2, 1, 0, 1};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(histogram.bins[i].count, counts[i]) << i;
}

TEST(Percentiles, AsPeopleWriteThem) {
  EXPECT_EQ(percentile_text(9900), "99");
  EXPECT_EQ(percentile_text(9950), "99.5");
  EXPECT_EQ(percentile_text(9999), "99.99");
  EXPECT_EQ(percentile_text(5000), "50");
  EXPECT_EQ(percentile_name(100), "1st");
  EXPECT_EQ(percentile_name(2200), "22nd");
  EXPECT_EQ(percentile_name(9300), "93rd");
  EXPECT_EQ(percentile_name(1100), "11th");
  EXPECT_EQ(percentile_name(1200), "12th");
  EXPECT_EQ(percentile_name(9150), "91.5th");
  EXPECT_EQ(percentile_name(9900), "99th");
}

}  // namespace
}  // namespace belljar
