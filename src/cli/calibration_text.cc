#include <fmt/format.h>

#include <algorithm>

#include "cli/calibration_pages.h"

namespace belljar {
namespace {

std::string amount(const LimitCalibration& limit, std::optional<std::uint64_t> value) {
  return value ? show_amount(limit.row->unit, *value) : "-";
}

std::string runs_text(std::size_t count) {
  return fmt::format("{} run{}", count, count == 1 ? "" : "s");
}

std::string most_used(const LimitCalibration& limit) {
  return limit.observed.empty() ? "-" : show_amount(limit.row->unit, limit.observed.back());
}

std::string table(const Calibration& calibration) {
  std::string out = fmt::format("{:<16}{:>9}{:>9}{:>9}{:>9}{:>9}{:>7}{:>10}{:>12}\n", "LIMIT", "P50", "P90", "P99",
                                "MAX", "NOW", "ENDED", "PROPOSAL", "WOULD STOP");
  for (const LimitCalibration& limit : calibration.limits) {
    if (limit.sample_size() == 0) continue;
    const std::string would_stop =
        limit.proposal ? fmt::format("{} of {}", limit.would_stop, limit.observed.size()) : "-";
    out += fmt::format("{:<16}{:>9}{:>9}{:>9}{:>9}{:>9}{:>7}{:>10}{:>12}\n", limit.row->name, amount(limit, limit.p50),
                       amount(limit, limit.p90), amount(limit, limit.p99), most_used(limit),
                       show_limit(*limit.row, limit.current), limit.ended,
                       limit.proposal ? format_limit(limit.row->unit, *limit.proposal) : "-", would_stop);
  }
  return out;
}

std::string histogram_text(const LimitCalibration& limit) {
  constexpr std::size_t kBins = 10;
  constexpr std::size_t kColumns = 40;
  const Histogram histogram = make_histogram(limit.observed, kBins);
  std::size_t most = 1;
  for (const HistogramBin& bin : histogram.bins) most = std::max(most, bin.count);
  std::string out;
  for (const HistogramBin& bin : histogram.bins) {
    const std::size_t length = bin.count == 0 ? 0 : std::max<std::size_t>(1, bin.count * kColumns / most);
    out += fmt::format("  {:>9} {:<{}} {:>6}\n", show_amount(limit.row->unit, bin.from), std::string(length, '#'),
                       kColumns, bin.count);
  }
  if (!histogram.bins.empty()) {
    out += fmt::format("  {:>9}{}\n", show_amount(limit.row->unit, limit.observed.back()),
                       histogram.widths == BinWidths::rising ? " (each step is the same factor)" : "");
  }
  return out;
}

std::string limit_part(const LimitCalibration& limit, const Calibration& calibration) {
  if (limit.sample_size() == 0) return "";
  std::string out = fmt::format("\n{}: {}\n{}", limit.row->name, limit.row->what, histogram_text(limit));
  if (const std::string sentence = certainty_sentence(limit, calibration); !sentence.empty())
    out += "  " + sentence + "\n";
  for (const std::string& sentence : struck_sentences(limit)) out += "  " + sentence + "\n";
  if (!limit.why_none.empty()) out += fmt::format("  No proposal: {}.\n", limit.why_none);
  return out;
}

std::string untold_limits(const Calibration& calibration) {
  std::string names;
  for (const LimitCalibration& limit : calibration.limits) {
    if (limit.sample_size() == 0) names.append(names.empty() ? "" : ", ").append(limit.row->name);
  }
  return names.empty() ? "" : fmt::format("\nNo run tells what it used of {}: these are left as they are.\n", names);
}

}  // namespace

std::string runs_sentence(const Calibration& calibration, const CalibrationTitle& title) {
  std::string out =
      fmt::format("{} of {} in the last {}: {} ended by themselves, {} at a limit", runs_text(calibration.runs),
                  title.profile, format_limit(LimitUnit::milliseconds, title.since_ms),
                  calibration.runs - calibration.ended_by_limit, calibration.ended_by_limit);
  if (calibration.left_out > 0) out += fmt::format("; {} more were cancelled or refused", calibration.left_out);
  return out + ".";
}

std::string certainty_sentence(const LimitCalibration& limit, const Calibration& calibration) {
  if (limit.row->unit == LimitUnit::millicpus || limit.sample_size() == 0) return "";
  const std::string name = percentile_name(calibration.options.percentile);
  const int certainty = static_cast<int>(100 * kCalibrationCertainty);
  if (limit.at_least) {
    return fmt::format(
        "The {} percentile is at least {}: more runs were struck than it leaves out, and these count with the limit "
        "that each had.",
        name, amount(limit, limit.at_least));
  }
  std::string out = fmt::format("The {} percentile is {}", name, amount(limit, limit.percentile));
  if (limit.lower && limit.lower == limit.upper) return out + fmt::format(", with {} % certainty.", certainty);
  if (limit.lower && limit.upper) {
    return out + fmt::format("; with {} % certainty each, it is at least {} and at most {}.", certainty,
                             amount(limit, limit.lower), amount(limit, limit.upper));
  }
  if (limit.upper)
    return out + fmt::format("; with {} % certainty it is at most {}.", certainty, amount(limit, limit.upper));
  if (limit.lower) out += fmt::format("; with {} % certainty it is at least {}", certainty, amount(limit, limit.lower));
  if (limit.sample_size() >= calibration.runs_needed) {
    return out + ". The runs that were struck leave it without a bound from above.";
  }
  return out + fmt::format(". {} too few to bound it from above; {} do.",
                           limit.sample_size() == 1 ? "1 run is" : fmt::format("{} runs are", limit.sample_size()),
                           calibration.runs_needed);
}

std::vector<std::string> struck_sentences(const LimitCalibration& limit) {
  std::vector<std::string> sentences;
  if (limit.ended > 0) {
    sentences.push_back(
        fmt::format("It ended {}{}.", runs_text(limit.ended),
                    limit.proposal ? fmt::format(", of which {} had less than the proposal", limit.would_go_on) : ""));
  }
  if (limit.hindered > 0) sentences.push_back(fmt::format("It struck {} that went on.", runs_text(limit.hindered)));
  if (limit.censored > 0) {
    sentences.push_back(
        fmt::format("What {} would have used is not known, only that it is more than {} had: {} above "
                    "all others.",
                    runs_text(limit.censored), limit.censored == 1 ? "it" : "they",
                    limit.censored == 1 ? "it counts" : "they count"));
  }
  if (limit.cut_short > 0 && limit.row->unit != LimitUnit::millicpus) {
    sentences.push_back(fmt::format("{} that another limit ended {} nothing of this one.", runs_text(limit.cut_short),
                                    limit.cut_short == 1 ? "tells" : "tell"));
  }
  return sentences;
}

std::string replay_sentence(const Calibration& calibration) {
  const std::size_t whole = calibration.runs - calibration.ended_by_limit;
  return fmt::format("With the proposals, {} of the {} runs that ended by themselves would have been stopped.",
                     calibration.would_stop, whole);
}

std::string calibration_text(const Calibration& calibration, const CalibrationTitle& title) {
  std::string out = runs_sentence(calibration, title) + "\n" +
                    fmt::format("Proposals are {} times the {} percentile, rounded up.\n\n", calibration.options.factor,
                                percentile_name(calibration.options.percentile));
  out += table(calibration);
  for (const LimitCalibration& limit : calibration.limits) out += limit_part(limit, calibration);
  out += untold_limits(calibration);
  return out + "\n" + replay_sentence(calibration) + "\n";
}

std::string calibration_policy(const Calibration& calibration, const CalibrationTitle& title) {
  std::string out = fmt::format(
      "# Written by belljar calibrate on {}.\n# {}\n# {} times the {} percentile.\n\n[limits]\n", title.made_at,
      runs_sentence(calibration, title), calibration.options.factor, percentile_name(calibration.options.percentile));
  for (const LimitCalibration& limit : calibration.limits) {
    if (!limit.proposal) continue;
    const std::string use =
        limit.percentile ? amount(limit, limit.percentile) : fmt::format("at least {}", amount(limit, limit.at_least));
    out +=
        fmt::format("{} = \"{}\"  # used: {}\n", limit.row->name, format_limit(limit.row->unit, *limit.proposal), use);
  }
  return out;
}

}  // namespace belljar
