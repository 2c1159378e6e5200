// Limits from what runs used: a factor times a percentile of the recorded runs, with an account of how sure that is.
// Pure: recorded uses in, proposals out. docs/calibration.md says in words what is done here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/limits.h"
#include "store/order_statistics.h"
#include "store/store.h"

namespace belljar {

// Each bound of a percentile holds with this certainty, and so many runs are asked for that there is an upper one.
inline constexpr double kCalibrationCertainty = 0.95;

// How far back runs are looked at where the caller does not say.
inline constexpr std::int64_t kCalibrationSinceMs = 30LL * 24 * 3600 * 1000;

enum class SmallSample { refuse, accept };

struct CalibrationOptions {
  PercentileHundredths percentile = 9900;
  double factor = 3;
  SmallSample small_sample = SmallSample::refuse;
};

struct HistogramBin {
  std::uint64_t from;
  std::uint64_t to;  // the first value that is not in it
  std::size_t count = 0;
};

enum class BinWidths { equal, rising };  // rising: by a constant factor, where the values lie orders of magnitude apart
struct Histogram {
  BinWidths widths = BinWidths::equal;
  std::vector<HistogramBin> bins;
};

// `ascending` are the values in order. No bins where there is no value; one where all are alike.
Histogram make_histogram(const std::vector<std::uint64_t>& ascending, std::size_t bins_max);

struct LimitCalibration {
  const LimitRow* row = nullptr;
  std::uint64_t current = 0;  // what the latest run had

  // The runs of the profile, by what they tell of this limit.
  std::vector<std::uint64_t> observed;       // uses that no limit cut short, ascending
  std::size_t censored = 0;                  // the limit struck: they would have used more than they had
  std::vector<std::uint64_t> censored_caps;  // the limits that struck them
  std::size_t ended = 0;                     // of all runs: this limit ended them, or made them fail
  std::size_t hindered = 0;                  // this limit struck, and they went on
  std::size_t cut_short = 0;                 // another limit ended them, so their use tells nothing
  std::size_t not_measured = 0;

  // Of the sample, where runs that the limit struck stand above all others. Nothing where it is empty.
  std::optional<std::uint64_t> p50;
  std::optional<std::uint64_t> p90;
  std::optional<std::uint64_t> p99;
  std::optional<std::uint64_t> percentile;  // the one asked for
  std::optional<std::uint64_t>
      at_least;                        // instead of it, where more runs were struck than it leaves out: it is not lower
  std::optional<std::uint64_t> lower;  // the true percentile is at least that, with kCalibrationCertainty
  std::optional<std::uint64_t> upper;  // and at most that

  std::optional<std::uint64_t> proposal;
  std::string why_none;         // where there is no proposal
  std::size_t would_stop = 0;   // of `observed`: more than the proposal
  std::size_t would_go_on = 0;  // of `ended`: the limit was below the proposal
  std::size_t sample_size() const { return observed.size() + censored; }
};

struct Calibration {
  CalibrationOptions options;
  std::size_t runs = 0;      // that ran by themselves or into a limit
  std::size_t left_out = 0;  // cancelled, refused or failed ones: they tell nothing
  std::size_t ended_by_limit = 0;
  std::size_t would_stop = 0;  // runs that ended by themselves and used more than some proposal
  std::size_t runs_needed = 0;
  std::vector<LimitCalibration> limits;  // one for each row of limits.def, in its order
};

Calibration calibrate(const std::vector<RecordedUses>& runs, const CalibrationOptions& options);

// too_few_runs where options.small_sample is `refuse` and the sample is smaller than needed. `profile` is for the
// error, and so is what the caller's user can do about it.
Result<void> check_enough(const Calibration& calibration, const std::string& profile, std::string_view remedy);

// What a user of `belljar calibrate` can.
std::string fewer_runs_remedy(const Calibration& calibration);

// `limits` with the proposals in place of those that nobody named.
Limits with_proposals(Limits limits, const Calibration& calibration);

// All of the calibration but the single values, as one line of JSON.
std::string calibration_to_json(const Calibration& calibration, const std::string& profile);

// A percentile as people write it: "99", "99.5".
std::string percentile_text(PercentileHundredths percentile);

// And in a sentence: "99th", "1st".
std::string percentile_name(PercentileHundredths percentile);

}  // namespace belljar
