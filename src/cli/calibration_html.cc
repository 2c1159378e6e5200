#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/calibration_pages.h"

namespace belljar {
namespace {

constexpr std::string_view kStyle = R"css(
:root { --ink: #1c2430; --soft: #5b6675; --line: #dfe4ea; --page: #f6f7f9; --card: #ffffff; --bar: #7aa5d8;
        --now: #8a94a3; --proposal: #12805c; --percentile: #b4551d; --band: #b4551d; --alarm: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --soft: #9aa6b5; --line: #323b47; --page: #14181d; --card: #1c2229; --bar: #4f7fb8;
          --now: #8a94a3; --proposal: #4cc79a; --percentile: #ee9a5e; --band: #ee9a5e; --alarm: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 2.5rem 1.25rem 4rem; background: var(--page); color: var(--ink);
       font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 60rem; margin: 0 auto; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .4rem; }
h2 { font-size: 1.15rem; margin: 0; }
p { margin: .35rem 0; }
.soft { color: var(--soft); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1.1rem 1.3rem;
        margin-top: 1.25rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: 1rem; margin-top: 1.5rem; }
.figures .card { margin: 0; }
.figures b { display: block; font-size: 1.65rem; line-height: 1.3; font-variant-numeric: tabular-nums; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .4rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; font-size: .85rem; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
tr:last-child td { border-bottom: 0; }
td.proposal { color: var(--proposal); font-weight: 700; }
td a { color: inherit; }
.wide { overflow-x: auto; }
.wide svg { min-width: 36rem; }
.head { display: flex; flex-wrap: wrap; gap: .2rem 1rem; align-items: baseline; justify-content: space-between; }
svg { display: block; width: 100%; height: auto; margin: .6rem 0 .2rem; }
svg text { font-size: 12px; fill: var(--soft); paint-order: stroke; stroke: var(--card); stroke-width: 4px;
           stroke-linejoin: round; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-size: .87rem; color: var(--soft); }
.legend i { display: inline-block; width: 1.1em; height: .7em; margin-right: .4em; border-radius: 2px; }
.alarm { color: var(--alarm); }
code { font: .92em ui-monospace, "DejaVu Sans Mono", Menlo, monospace; background: var(--page); padding: .1em .35em;
       border-radius: 4px; }
)css";

// The plot, in its own units; the page scales it.
constexpr double kWidth = 880;
constexpr double kHeight = 226;
constexpr double kLeft = 8;
constexpr double kRight = 872;
constexpr double kTop = 48;  // above it: what the lines are, a row for each kind, so that no name covers another
constexpr double kBottom = 198;
constexpr double kNowRow = 12;
constexpr double kProposalRow = 26;
constexpr double kPercentileRow = 40;
constexpr std::size_t kBars = 72;

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string amount(const LimitCalibration& limit, std::optional<std::uint64_t> value) {
  return value ? show_amount(limit.row->unit, *value) : "–";
}

// Where values lie on the axis: by their logarithm, so that a limit far above the uses has a place too, but for the
// smallest, among which 0 must be.
class Axis {
 public:
  explicit Axis(const LimitCalibration& limit) : unit_(limit.row->unit) {
    const std::vector<std::uint64_t>& values = limit.observed;
    const auto positive = std::ranges::find_if(values, [](std::uint64_t value) { return value > 0; });
    const std::uint64_t least = positive != values.end() ? *positive : limit.current;
    starts_at_zero_ = values.empty() || values.front() == 0;
    bend_ = std::max(1.0, static_cast<double>(least) / (starts_at_zero_ ? 2 : 16));
    most_ = std::max({limit.proposal.value_or(0), limit.at_least.value_or(0), values.empty() ? 0 : values.back()});
    // What is above a thousand times the rest has no place.
    if (limit.current / 1000 <= most_) most_ = std::max(most_, limit.current);
    from_ = starts_at_zero_ ? 0 : bent(static_cast<double>(least) / 1.35);
    to_ = bent(static_cast<double>(most_) * 1.25);
  }

  double place(std::uint64_t value) const {
    return kLeft + (kRight - kLeft) * (bent(static_cast<double>(value)) - from_) / (to_ - from_);
  }
  bool shows(std::uint64_t value) const { return place(value) <= kRight; }

  std::vector<std::uint64_t> ticks() const {
    constexpr std::size_t kTicksMax = 8;
    std::vector<std::uint64_t> kept;
    for (unsigned stride = 1; stride < 24; ++stride) {
      kept = ticks_by(stride);
      if (kept.size() <= kTicksMax) break;
    }
    return kept;
  }

 private:
  double bent(double value) const { return std::log1p(value / bend_); }

  // 1, 2, 5, 10 ... in the unit people read; powers of two for bytes; every `stride`th of them.
  std::vector<std::uint64_t> ticks_by(unsigned stride) const {
    std::vector<std::uint64_t> kept;
    if (starts_at_zero_) kept.push_back(0);
    double value = unit_ == LimitUnit::millicpus ? 10 : 1;  // what is below shows as 0
    for (unsigned i = 0; value <= static_cast<double>(most_) * 1.25; ++i) {
      const auto whole = static_cast<std::uint64_t>(value);
      if (i % stride == 0 && place(whole) >= kLeft + (starts_at_zero_ ? 40 : 12) && place(whole) <= kRight - 12) {
        kept.push_back(whole);
      }
      value *= unit_ == LimitUnit::bytes ? 2 : (i % 3 == 1 ? 2.5 : 2);
    }
    return kept;
  }

  LimitUnit unit_;
  double bend_ = 1;
  double from_ = 0;
  double to_ = 1;
  std::uint64_t most_ = 1;
  bool starts_at_zero_ = false;
};

// How many runs each bar of the plot stands for, and where those are that a limit struck: just beyond the highest limit
// that did.
struct Bars {
  std::vector<std::size_t> counts = std::vector<std::size_t>(kBars, 0);
  std::size_t struck_bar = 0;
  std::size_t most = 1;
};

Bars count_bars(const LimitCalibration& limit, const Axis& axis) {
  Bars bars;
  const auto bar_of = [&](std::uint64_t value) {
    const double bar = (axis.place(value) - kLeft) / (kRight - kLeft) * kBars;
    return std::min(static_cast<std::size_t>(std::max(0.0, bar)), kBars - 1);
  };
  for (const std::uint64_t value : limit.observed) ++bars.counts[bar_of(value)];
  if (limit.censored > 0) bars.struck_bar = std::min(bar_of(std::ranges::max(limit.censored_caps)) + 1, kBars - 1);
  bars.most = std::max({std::size_t{1}, *std::ranges::max_element(bars.counts), limit.censored});
  return bars;
}

std::string bar(std::size_t at, std::size_t count, std::size_t most, std::string_view colour) {
  constexpr double kStep = (kRight - kLeft) / kBars;
  constexpr double kLeastHeight = 3;  // a single run among thousands is to be seen
  const double share = static_cast<double>(count) / static_cast<double>(most);
  const double height = std::max(kLeastHeight, (kBottom - kTop) * share);
  return fmt::format(
      "<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' rx='1.5' fill='{}'><title>{} run{}"
      "</title></rect>\n",
      kLeft + static_cast<double>(at) * kStep + 0.5, kBottom - height, kStep - 1, height, colour, count,
      count == 1 ? "" : "s");
}

std::string draw_bars(const LimitCalibration& limit, const Bars& bars) {
  std::string out = fmt::format(
      "<line x1='{0}' y1='{1}' x2='{2}' y2='{1}' stroke='var(--line)' stroke-dasharray='2 4'/>\n", kLeft, kTop, kRight);
  for (std::size_t i = 0; i < kBars; ++i) {
    if (bars.counts[i] > 0) out += bar(i, bars.counts[i], bars.most, "var(--bar)");
  }
  if (limit.censored > 0) out += bar(bars.struck_bar, limit.censored, bars.most, "var(--alarm)");
  return out;
}

std::string axis_line(const LimitCalibration& limit, const Axis& axis) {
  std::string out =
      fmt::format("<line x1='{0}' y1='{1}' x2='{2}' y2='{1}' stroke='var(--line)'/>\n", kLeft, kBottom, kRight);
  for (const std::uint64_t tick : axis.ticks()) {
    const double x = axis.place(tick);
    out += fmt::format(
        "<line x1='{0:.1f}' y1='{1}' x2='{0:.1f}' y2='{2}' stroke='var(--soft)'/>"
        "<text x='{0:.1f}' y='{3}' text-anchor='{4}'>{5}</text>\n",
        x, kBottom, kBottom + 5, kBottom + 20, x < kLeft + 15 ? "start" : "middle",
        tick == 0 ? "0" : show_amount(limit.row->unit, tick));
  }
  return out;
}

// A line across the plot with its name above it.
struct Marker {
  std::uint64_t value;
  std::string text;
  std::string_view colour;
  std::string_view dashes;
  double row;
};

std::string draw_markers(const std::vector<Marker>& markers, const Axis& axis) {
  std::string lines;
  std::string names;  // over all lines
  for (const Marker& each : markers) {
    const bool is_shown = axis.shows(each.value);
    const double x = is_shown ? axis.place(each.value) : kRight;
    const std::string_view anchor = x > kRight - 120 ? "end" : x < kLeft + 120 ? "start" : "middle";
    if (is_shown) {
      lines += fmt::format(
          "<line x1='{0:.1f}' y1='{1}' x2='{0:.1f}' y2='{2}' stroke='{3}' stroke-width='2' "
          "stroke-dasharray='{4}'/>\n",
          x, each.row + 4, kBottom, each.colour, each.dashes);
    }
    names += fmt::format("<text x='{:.1f}' y='{}' text-anchor='{}' style='fill:{}'>{}{}</text>\n", x, each.row, anchor,
                         each.colour, html_text(each.text), is_shown ? "" : " →");
  }
  return lines + names;
}

std::string band(const LimitCalibration& limit, const Axis& axis) {
  if (!limit.lower || !limit.upper) return "";
  const double from = axis.place(*limit.lower);
  return fmt::format("<rect x='{:.1f}' y='{}' width='{:.1f}' height='{}' fill='var(--band)' opacity='0.2'/>\n", from,
                     kTop, std::max(2.0, axis.place(*limit.upper) - from), kBottom - kTop);
}

std::vector<Marker> markers_of(const LimitCalibration& limit, const Calibration& calibration) {
  const std::string name = fmt::format("p{}", percentile_text(calibration.options.percentile));
  std::vector<Marker> markers = {
      {limit.current, fmt::format("now {}", show_limit(*limit.row, limit.current)), "var(--now)", "5 4", kNowRow}};
  if (limit.proposal) {
    markers.push_back({*limit.proposal, fmt::format("proposal {}", amount(limit, limit.proposal)), "var(--proposal)",
                       "none", kProposalRow});
  }
  if (limit.percentile) {
    markers.push_back({*limit.percentile, fmt::format("{} {}", name, amount(limit, limit.percentile)),
                       "var(--percentile)", "none", kPercentileRow});
  } else if (limit.at_least) {
    markers.push_back({*limit.at_least, fmt::format("{} at least {}", name, amount(limit, limit.at_least)),
                       "var(--percentile)", "none", kPercentileRow});
  }
  return markers;
}

std::string plot(const LimitCalibration& limit, const Calibration& calibration) {
  const Axis axis(limit);
  const Bars bars = count_bars(limit, axis);
  std::string out =
      fmt::format("<div class='wide'><svg viewBox='0 0 {} {}' role='img' aria-label='Distribution of {}'>\n", kWidth,
                  kHeight, limit.row->name);
  out += band(limit, axis);
  out += draw_bars(limit, bars);
  out += axis_line(limit, axis);
  out += draw_markers(markers_of(limit, calibration), axis);
  out += fmt::format(
      "</svg></div>\n<div class='legend'><span><i style='background:var(--bar)'></i>runs, up to {} in a "
      "bar</span>",
      bars.most);
  if (limit.censored > 0) {
    out += fmt::format(
        "<span><i style='background:var(--alarm)'></i>{} that the limit struck: they would have used "
        "more</span>",
        limit.censored);
  }
  if (limit.lower && limit.upper) {
    out += fmt::format(
        "<span><i style='background:var(--band);opacity:.35'></i>where the percentile is, each end with {:.0f} % "
        "certainty</span>",
        100 * kCalibrationCertainty);
  }
  return out + "</div>\n";
}

std::string summary_row(const LimitCalibration& limit) {
  const std::string stop = limit.proposal ? fmt::format("{} of {}", limit.would_stop, limit.observed.size()) : "–";
  const std::string most = limit.observed.empty() ? "–" : show_amount(limit.row->unit, limit.observed.back());
  const std::string proposal = limit.proposal ? format_limit(limit.row->unit, *limit.proposal) : "–";
  return fmt::format(
      "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td{}>{}</td>"
      "<td class='proposal'>{}</td><td>{}</td></tr>\n",
      fmt::format("<a href='#{0}'>{0}</a>", limit.row->name), amount(limit, limit.p50), amount(limit, limit.p90),
      amount(limit, limit.p99), most, show_limit(*limit.row, limit.current), limit.ended > 0 ? " class='alarm'" : "",
      limit.ended, proposal, stop);
}

std::string limit_card(const LimitCalibration& limit, const Calibration& calibration) {
  const std::string proposal = limit.proposal ? format_limit(limit.row->unit, *limit.proposal) : "none";
  std::string out = fmt::format(
      "<section class='card' id='{0}'><div class='head'><h2>{0}</h2><span class='soft'>now {1}, "
      "proposal <b style='color:var(--proposal)'>{2}</b></span></div>\n<p class='soft'>{3}</p>\n",
      limit.row->name, show_limit(*limit.row, limit.current), proposal, html_text(limit.row->what));
  out += plot(limit, calibration);
  std::string sentences = html_text(certainty_sentence(limit, calibration));
  for (const std::string& sentence : struck_sentences(limit)) sentences.append(" ").append(html_text(sentence));
  if (!sentences.empty()) out += fmt::format("<p>{}</p>\n", sentences);
  if (!limit.why_none.empty()) out += fmt::format("<p class='soft'>No proposal: {}.</p>\n", html_text(limit.why_none));
  return out + "</section>\n";
}

std::string unmeasured_card(const Calibration& calibration) {
  std::string items;
  for (const LimitCalibration& limit : calibration.limits) {
    if (limit.sample_size() > 0) continue;
    items += fmt::format("<p><b>{}</b> <span class='soft'>{}: {}</span></p>\n", limit.row->name,
                         html_text(limit.row->what), html_text(limit.why_none));
  }
  if (items.empty()) return "";
  return fmt::format("<section class='card'><h2>Without a proposal</h2>\n{}</section>\n", items);
}

std::string figure(std::string_view number, std::string_view what) {
  return fmt::format("<div class='card'><b>{}</b><span class='soft'>{}</span></div>\n", number, what);
}

}  // namespace

std::string calibration_html(const Calibration& calibration, const CalibrationTitle& title) {
  const std::size_t whole = calibration.runs - calibration.ended_by_limit;
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<!-- Written by belljar calibrate -->\n<html lang='en'><head><meta charset='utf-8'>"
      "<meta name='viewport' content='width=device-width, initial-scale=1'>\n<title>Limits of {0}</title>\n"
      "<style>{1}</style></head><body><main>\n<h1>Limits of {0}</h1>\n<p class='soft'>{2} Written on {3}.</p>\n",
      title.profile, kStyle, html_text(runs_sentence(calibration, title)), title.made_at);
  out += "<div class='figures'>\n" + figure(fmt::format("{}", calibration.runs), "runs") +
         figure(fmt::format("{} × p{}", calibration.options.factor, percentile_text(calibration.options.percentile)),
                "is what the proposals are, rounded up") +
         figure(fmt::format("{}", calibration.ended_by_limit), "runs ended at a limit") +
         figure(fmt::format("{} of {}", calibration.would_stop, whole), "good runs would the proposals have stopped") +
         "</div>\n";
  out +=
      "<section class='card wide'><table><thead><tr><th>limit</th><th>p50</th><th>p90</th><th>p99</th><th>max</th>"
      "<th>now</th><th>ended</th><th>proposal</th><th>would stop</th></tr></thead><tbody>\n";
  for (const LimitCalibration& limit : calibration.limits) {
    if (limit.sample_size() > 0) out += summary_row(limit);
  }
  out += "</tbody></table></section>\n";
  for (const LimitCalibration& limit : calibration.limits) {
    if (limit.sample_size() > 0) out += limit_card(limit, calibration);
  }
  out += unmeasured_card(calibration);
  out += fmt::format(
      "<p class='soft' style='margin-top:1.5rem'>{} <code>belljar run --limits auto:{}</code> takes the "
      "proposals as they are then.</p>\n</main></body></html>\n",
      html_text(replay_sentence(calibration)), title.profile);
  return out;
}

}  // namespace belljar
