#include "store/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr PercentileHundredths kP50 = 5000;
constexpr PercentileHundredths kP90 = 9000;
constexpr PercentileHundredths kP99 = 9900;

// No proposal is lower: so much differs from run to run on any host.
std::uint64_t floor_of(LimitUnit unit) {
  switch (unit) {
    case LimitUnit::bytes:
      return kMiB;
    case LimitUnit::milliseconds:
      return 1000;
    case LimitUnit::count:
      return 16;
    case LimitUnit::millicpus:
      break;
  }
  return 0;
}

// To round upwards to, so that proposals are easy to read.
std::uint64_t step_of(LimitUnit unit, std::uint64_t value) {
  constexpr std::uint64_t kParts = 32;
  if (unit == LimitUnit::milliseconds) {
    for (const std::uint64_t step : {60'000U, 10'000U, 1000U}) {
      if (value >= kParts * step) return step;
    }
    return 100;
  }
  std::uint64_t step = unit != LimitUnit::bytes ? 1 : value < 4 * kMiB ? 256 * kKiB : kMiB;
  while (step * kParts * 2 <= value) step *= 2;
  return step;
}

std::uint64_t make_proposal(const LimitRow& row, std::uint64_t use, double factor) {
  const double wanted = std::ceil(static_cast<double>(use) * factor);
  if (wanted >= static_cast<double>(row.most)) return row.most;
  const std::uint64_t value = std::max(static_cast<std::uint64_t>(wanted), floor_of(row.unit));
  const std::uint64_t step = step_of(row.unit, value);
  return std::clamp((value + step - 1) / step * step, row.least, row.most);
}

// Sorts one run's use of one limit into where it belongs.
void add_use(LimitCalibration& limit, const RecordedUse& use, bool was_ended_by_limit) {
  if (use.cap > 0) limit.current = use.cap;
  if (use.struck) ++(was_ended_by_limit ? limit.ended : limit.hindered);
  if (use.is_censored) {
    ++limit.censored;
    limit.censored_caps.push_back(use.cap);
  } else if (!use.used) {
    ++limit.not_measured;
  } else if (was_ended_by_limit) {
    ++limit.cut_short;
  } else {
    limit.observed.push_back(*use.used);
  }
}

// The sample's observation of this rank; nothing where a struck run has that rank, or there is none.
std::optional<std::uint64_t> observation(const LimitCalibration& limit, std::optional<std::size_t> rank) {
  if (!rank || *rank == 0 || *rank > limit.observed.size()) return std::nullopt;
  return limit.observed[*rank - 1];
}

// With struck runs at the limit that each had: they would have used more.
std::uint64_t least_percentile(const LimitCalibration& limit, PercentileHundredths percentile) {
  std::vector<std::uint64_t> uses = limit.observed;
  uses.insert(uses.end(), limit.censored_caps.begin(), limit.censored_caps.end());
  std::ranges::sort(uses);
  return uses[percentile_rank(uses.size(), percentile) - 1];
}

void find_percentiles(LimitCalibration& limit, PercentileHundredths percentile) {
  const std::size_t count = limit.sample_size();
  if (count == 0) return;
  const auto at = [&](PercentileHundredths wanted) { return observation(limit, percentile_rank(count, wanted)); };
  limit.p50 = at(kP50);
  limit.p90 = at(kP90);
  limit.p99 = at(kP99);
  limit.percentile = at(percentile);
  if (!limit.percentile) limit.at_least = least_percentile(limit, percentile);
  const RankBounds bounds = percentile_bounds(count, percentile, kCalibrationCertainty);
  limit.lower = observation(limit, bounds.lower);
  limit.upper = observation(limit, bounds.upper);
}

std::string why_no_proposal(const LimitCalibration& limit, const Calibration& calibration) {
  if (limit.row->unit == LimitUnit::millicpus) return "a rate slows runs and ends none; it is left as it is";
  if (limit.sample_size() == 0) return limit.not_measured > 0 ? "its use is not measured" : "no run tells of it";
  if (calibration.options.small_sample == SmallSample::refuse && limit.sample_size() < calibration.runs_needed) {
    return fmt::format("only {} runs tell of it, and {} are needed", limit.sample_size(), calibration.runs_needed);
  }
  return "";
}

// Looked at, not counted: what came and went between two looks was not seen. So these are only ever raised.
bool is_only_looked_at(const LimitRow& row) {
  return row.name == "tmp_size" || row.name == "tmp_inodes";
}

// Where the percentile is not known, also more than any limit that struck.
std::uint64_t use_to_allow(const LimitCalibration& limit) {
  if (limit.percentile) return *limit.percentile;
  return std::max(limit.at_least.value_or(0), std::ranges::max(limit.censored_caps));
}

void propose(LimitCalibration& limit, const Calibration& calibration) {
  limit.why_none = why_no_proposal(limit, calibration);
  if (!limit.why_none.empty()) return;
  limit.proposal = make_proposal(*limit.row, use_to_allow(limit), calibration.options.factor);
  if (is_only_looked_at(*limit.row)) limit.proposal = std::max(*limit.proposal, limit.current);
  limit.would_stop = static_cast<std::size_t>(
      limit.observed.end() - std::upper_bound(limit.observed.begin(), limit.observed.end(), *limit.proposal));
}

struct CountedRun {
  const RecordedUses* uses;
  bool was_ended_by_limit;
};

std::vector<CountedRun> counted_runs(const std::vector<RecordedUses>& runs) {
  std::vector<CountedRun> counted;
  for (const RecordedUses& run : runs) {
    const std::optional<RunStatus> status = find_status(run.status);
    if (status && tells_of_use(*status)) counted.push_back({&run, is_limit_status(*status)});
  }
  return counted;
}

bool exceeds_a_proposal(const RecordedUses& run, const Calibration& calibration) {
  for (std::size_t i = 0; i < calibration.limits.size(); ++i) {
    const RecordedUse& use = run.uses[i];
    const std::optional<std::uint64_t> proposal = calibration.limits[i].proposal;
    if (proposal && use.used && !use.is_censored && *use.used > *proposal) return true;
  }
  return false;
}

void replay(const std::vector<CountedRun>& runs, Calibration& calibration) {
  for (const CountedRun& run : runs) {
    if (!run.was_ended_by_limit && exceeds_a_proposal(*run.uses, calibration)) ++calibration.would_stop;
    if (!run.was_ended_by_limit) continue;
    for (std::size_t i = 0; i < calibration.limits.size(); ++i) {
      LimitCalibration& limit = calibration.limits[i];
      const RecordedUse& use = run.uses->uses[i];
      if (use.struck && limit.proposal && use.cap < *limit.proposal) ++limit.would_go_on;
    }
  }
}

Json optional_value(const std::optional<std::uint64_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string_view unit_name(LimitUnit unit) {
  switch (unit) {
    case LimitUnit::bytes:
      return "bytes";
    case LimitUnit::milliseconds:
      return "milliseconds";
    case LimitUnit::millicpus:
      return "millicpus";
    case LimitUnit::count:
      break;
  }
  return "count";
}

Json limit_record(const LimitCalibration& limit) {
  constexpr std::size_t kBins = 20;
  Json bins = Json::array();
  for (const HistogramBin& bin : make_histogram(limit.observed, kBins).bins) {
    bins.push_back({{"from", bin.from}, {"to", bin.to}, {"count", bin.count}});
  }
  return {{"limit", limit.row->name},
          {"unit", unit_name(limit.row->unit)},
          {"current", limit.current},
          {"proposal", optional_value(limit.proposal)},
          {"why_no_proposal", limit.why_none},
          {"observed", limit.observed.size()},
          {"censored", limit.censored},
          {"cut_short", limit.cut_short},
          {"not_measured", limit.not_measured},
          {"ended", limit.ended},
          {"hindered", limit.hindered},
          {"p50", optional_value(limit.p50)},
          {"p90", optional_value(limit.p90)},
          {"p99", optional_value(limit.p99)},
          {"max", limit.observed.empty() ? Json(nullptr) : Json(limit.observed.back())},
          {"percentile", optional_value(limit.percentile)},
          {"percentile_at_least", optional_value(limit.at_least)},
          {"percentile_lower", optional_value(limit.lower)},
          {"percentile_upper", optional_value(limit.upper)},
          {"would_stop", limit.would_stop},
          {"would_go_on", limit.would_go_on},
          {"histogram", bins}};
}

}  // namespace

Histogram make_histogram(const std::vector<std::uint64_t>& ascending, std::size_t bins_max) {
  Histogram histogram;
  if (ascending.empty() || bins_max == 0) return histogram;
  const std::uint64_t least = ascending.front();
  const std::uint64_t end = ascending.back() + 1;
  constexpr std::uint64_t kWideRatio = 20;
  const bool rising = least > 0 && ascending.back() / least >= kWideRatio;
  histogram.widths = rising ? BinWidths::rising : BinWidths::equal;
  const auto bins = static_cast<std::size_t>(std::min<std::uint64_t>(bins_max, end - least));
  const auto edge = [&](std::size_t i) {
    if (i == bins) return end;
    const double part = static_cast<double>(i) / static_cast<double>(bins);
    const auto low = static_cast<double>(least);
    const auto high = static_cast<double>(end);
    return static_cast<std::uint64_t>(rising ? low * std::pow(high / low, part) : low + (high - low) * part);
  };
  for (std::size_t i = 0; i < bins; ++i) {
    const std::uint64_t from = histogram.bins.empty() ? least : histogram.bins.back().to;
    if (edge(i + 1) > from) histogram.bins.push_back({from, edge(i + 1)});  // rising widths begin below one unit
  }
  std::size_t bin = 0;
  for (const std::uint64_t value : ascending) {
    while (bin + 1 < histogram.bins.size() && value >= histogram.bins[bin].to) ++bin;
    ++histogram.bins[bin].count;
  }
  return histogram;
}

Calibration calibrate(const std::vector<RecordedUses>& runs, const CalibrationOptions& options) {
  Calibration calibration;
  calibration.options = options;
  calibration.runs_needed = observations_needed(options.percentile, kCalibrationCertainty);
  const std::vector<CountedRun> counted = counted_runs(runs);
  calibration.runs = counted.size();
  calibration.left_out = runs.size() - counted.size();
  calibration.ended_by_limit =
      static_cast<std::size_t>(std::ranges::count_if(counted, &CountedRun::was_ended_by_limit));
  for (std::size_t i = 0; i < limit_rows().size(); ++i) {
    LimitCalibration limit;
    limit.row = &limit_rows()[i];
    limit.current = limit.row->preset;
    for (const CountedRun& run : counted) add_use(limit, run.uses->uses[i], run.was_ended_by_limit);
    std::ranges::sort(limit.observed);
    find_percentiles(limit, options.percentile);
    propose(limit, calibration);
    calibration.limits.push_back(std::move(limit));
  }
  replay(counted, calibration);
  return calibration;
}

std::string fewer_runs_remedy(const Calibration& calibration) {
  if (calibration.options.percentile <= kP90) return "record more, or give --force";
  return fmt::format("record more, give --force, or take a lower --percentile ({} runs are enough for the 90th)",
                     observations_needed(kP90, kCalibrationCertainty));
}

Result<void> check_enough(const Calibration& calibration, const std::string& profile, std::string_view remedy) {
  if (calibration.options.small_sample == SmallSample::accept && calibration.runs > 0) return {};
  if (calibration.options.small_sample == SmallSample::refuse && calibration.runs >= calibration.runs_needed) return {};
  if (calibration.runs == 0) {
    return fail(ErrorCode::too_few_runs, fmt::format("no run of {} in that time tells what it needs", profile));
  }
  return fail(
      ErrorCode::too_few_runs,
      fmt::format("the {} recorded runs of {} are too few: only {} bound the {} percentile from above with {} % "
                  "certainty; {}",
                  calibration.runs, profile, calibration.runs_needed, percentile_name(calibration.options.percentile),
                  kCalibrationCertainty * 100, remedy));
}

Limits with_proposals(Limits limits, const Calibration& calibration) {
  for (const LimitCalibration& limit : calibration.limits) {
    Limit& current = limits.*limit.row->field;
    if (limit.proposal && current.source == LimitSource::preset) current.value = *limit.proposal;
  }
  return limits;
}

std::string calibration_to_json(const Calibration& calibration, const std::string& profile) {
  Json record = {{"profile", profile},
                 {"percentile", static_cast<double>(calibration.options.percentile) / 100},
                 {"factor", calibration.options.factor},
                 {"certainty", kCalibrationCertainty},
                 {"runs", calibration.runs},
                 {"runs_needed", calibration.runs_needed},
                 {"left_out", calibration.left_out},
                 {"ended_by_limit", calibration.ended_by_limit},
                 {"would_stop", calibration.would_stop}};
  Json limits = Json::array();
  for (const LimitCalibration& limit : calibration.limits) limits.push_back(limit_record(limit));
  record["limits"] = std::move(limits);
  return dump_json(record);
}

std::string percentile_text(PercentileHundredths percentile) {
  std::string text = fmt::format("{}.{:02}", percentile / 100, percentile % 100);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string percentile_name(PercentileHundredths percentile) {
  constexpr unsigned kWhole = 100;
  const unsigned number = percentile / kWhole;
  const bool is_regular = percentile % kWhole != 0 || number / 10 == 1;
  const unsigned last = is_regular ? 0 : number % 10;
  return percentile_text(percentile) + (last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
}

}  // namespace belljar
