#include "files/text_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

namespace belljar {
namespace {

constexpr std::ptrdiff_t kContextLines = 3;
constexpr std::ptrdiff_t kEditsMax = 1500;  // of the search: its time and memory grow with the square of this
constexpr std::size_t kBinaryLookBytes = 65536;

using Lines = std::vector<std::string_view>;

// Each with its line end, which only the last may lack.
Lines split_lines(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

// `count` lines from `before` and `after` on are the same.
struct Match {
  std::ptrdiff_t before;
  std::ptrdiff_t after;
  std::ptrdiff_t count;
};

// The shortest edit script by the greedy algorithm of Myers ("An O(ND) Difference Algorithm and Its Variations", 1986)
// on the lines between the common beginning and end.
class EditSearch {
 public:
  EditSearch(std::span<const std::string_view> before, std::span<const std::string_view> after)
      : before_(before), after_(after) {}

  // Single common lines in order; none where the search was given up.
  std::vector<Match> matches() {
    const std::ptrdiff_t edits_max = std::min(kEditsMax, std::ssize(before_) + std::ssize(after_));
    std::vector<std::ptrdiff_t> reach(static_cast<std::size_t>(2 * edits_max + 3), 0);
    const std::ptrdiff_t middle = edits_max + 1;
    for (std::ptrdiff_t edits = 0; edits <= edits_max; ++edits) {
      for (std::ptrdiff_t diagonal = -edits; diagonal <= edits; diagonal += 2) {
        std::ptrdiff_t& x = reach[static_cast<std::size_t>(middle + diagonal)];
        x = first_on(diagonal, edits, [&](std::ptrdiff_t k) { return reach[static_cast<std::size_t>(middle + k)]; });
        while (x < std::ssize(before_) && x - diagonal < std::ssize(after_) && is_same(x, x - diagonal)) ++x;
        if (x >= std::ssize(before_) && x - diagonal >= std::ssize(after_)) return walk_back(edits);
      }
      const auto begin = reach.begin() + (middle - edits);
      trace_.emplace_back(begin, begin + (2 * edits + 1));
    }
    return {};
  }

 private:
  bool is_same(std::ptrdiff_t x, std::ptrdiff_t y) const {
    return before_[static_cast<std::size_t>(x)] == after_[static_cast<std::size_t>(y)];
  }

  // Where a path of `edits` edits enters the diagonal: by an insertion from the one above or a deletion from the one
  // below. `reach_of` tells how far paths of one edit less came.
  template <typename ReachOf>
  static std::ptrdiff_t first_on(std::ptrdiff_t diagonal, std::ptrdiff_t edits, ReachOf reach_of) {
    if (edits == 0) return 0;
    const bool is_insertion =
        diagonal == -edits || (diagonal != edits && reach_of(diagonal - 1) < reach_of(diagonal + 1));
    return is_insertion ? reach_of(diagonal + 1) : reach_of(diagonal - 1) + 1;
  }

  std::vector<Match> walk_back(std::ptrdiff_t edits) const {
    std::vector<Match> found;
    std::ptrdiff_t x = std::ssize(before_);
    std::ptrdiff_t y = std::ssize(after_);
    for (; edits >= 0; --edits) {
      const std::ptrdiff_t diagonal = x - y;
      const auto reach_of = [&](std::ptrdiff_t k) {
        const auto& row = trace_[static_cast<std::size_t>(edits - 1)];
        return row[static_cast<std::size_t>(k + edits - 1)];
      };
      const std::ptrdiff_t entry = first_on(diagonal, edits, reach_of);
      while (x > entry) {
        --x;
        --y;
        found.push_back({x, y, 1});
      }
      if (edits == 0) break;
      const bool is_insertion =
          diagonal == -edits || (diagonal != edits && reach_of(diagonal - 1) < reach_of(diagonal + 1));
      if (is_insertion) {
        --y;
      } else {
        --x;
      }
    }
    std::ranges::reverse(found);
    return found;
  }

  std::span<const std::string_view> before_;
  std::span<const std::string_view> after_;
  std::vector<std::vector<std::ptrdiff_t>> trace_;  // for each number of edits, how far each diagonal came
};

// All common lines, in runs; the last run is empty and lies at the end.
std::vector<Match> common_runs(const Lines& before, const Lines& after) {
  const auto begin = static_cast<std::ptrdiff_t>(std::ranges::mismatch(before, after).in1 - before.begin());
  std::ptrdiff_t end = 0;
  while (end < std::min(std::ssize(before), std::ssize(after)) - begin &&
         *(before.end() - 1 - end) == *(after.end() - 1 - end)) {
    ++end;
  }
  const auto between = [&](const Lines& lines) {
    return std::span(lines).subspan(static_cast<std::size_t>(begin),
                                    static_cast<std::size_t>(std::ssize(lines) - begin - end));
  };
  std::vector<Match> runs;
  const auto add = [&runs](const Match& match) {
    if (match.count == 0) return;
    if (!runs.empty() && runs.back().before + runs.back().count == match.before &&
        runs.back().after + runs.back().count == match.after) {
      runs.back().count += match.count;
    } else {
      runs.push_back(match);
    }
  };
  add({0, 0, begin});
  for (const Match& match : EditSearch(between(before), between(after)).matches())
    add({match.before + begin, match.after + begin, match.count});
  add({std::ssize(before) - end, std::ssize(after) - end, end});
  runs.push_back({std::ssize(before), std::ssize(after), 0});
  return runs;
}

class HunkWriter {
 public:
  HunkWriter(const Lines& before, const Lines& after) : before_(before), after_(after) {}

  // Lines [from, to) of each side differ; what lies between two calls is common.
  void change(const Match& from, const Match& to) {
    if (!hunk_.empty() && from.before - before_end_ > 2 * kContextLines) flush();
    if (hunk_.empty()) {
      const std::ptrdiff_t context = std::min(kContextLines, from.before - std::max<std::ptrdiff_t>(before_end_, 0));
      before_begin_ = before_end_ = from.before - context;
      after_begin_ = after_end_ = from.after - context;
    }
    put_common(from.before - before_end_);
    for (; before_end_ < to.before; ++before_end_) put('-', before_[static_cast<std::size_t>(before_end_)]);
    for (; after_end_ < to.after; ++after_end_) put('+', after_[static_cast<std::size_t>(after_end_)]);
  }

  void flush() {
    if (hunk_.empty()) return;
    put_common(std::min(kContextLines, std::ssize(before_) - before_end_));
    out_ += fmt::format("@@ -{} +{} @@\n", range(before_begin_, before_end_), range(after_begin_, after_end_));
    out_ += hunk_;
    hunk_.clear();
  }

  std::string take() { return std::move(out_); }

 private:
  static std::string range(std::ptrdiff_t begin, std::ptrdiff_t end) {
    const std::ptrdiff_t count = end - begin;
    const std::ptrdiff_t first = count == 0 ? begin : begin + 1;
    return count == 1 ? fmt::format("{}", first) : fmt::format("{},{}", first, count);
  }

  void put_common(std::ptrdiff_t count) {
    for (; count > 0; --count, ++before_end_, ++after_end_) put(' ', before_[static_cast<std::size_t>(before_end_)]);
  }

  void put(char mark, std::string_view line) {
    hunk_ += mark;
    hunk_ += line;
    if (!line.ends_with('\n')) hunk_ += "\n\\ No newline at end of file\n";
  }

  const Lines& before_;
  const Lines& after_;
  std::string out_;
  std::string hunk_;
  std::ptrdiff_t before_begin_ = 0;
  std::ptrdiff_t before_end_ = 0;
  std::ptrdiff_t after_begin_ = 0;
  std::ptrdiff_t after_end_ = 0;
};

}  // namespace

std::string unified_hunks(std::string_view before, std::string_view after) {
  if (before == after) return "";
  const Lines before_lines = split_lines(before);
  const Lines after_lines = split_lines(after);
  HunkWriter writer(before_lines, after_lines);
  Match at{0, 0, 0};
  for (const Match& run : common_runs(before_lines, after_lines)) {
    if (run.before > at.before || run.after > at.after) writer.change(at, run);
    at = {run.before + run.count, run.after + run.count, 0};
  }
  writer.flush();
  return writer.take();
}

bool is_binary(std::string_view content) {
  return content.substr(0, kBinaryLookBytes).find('\0') != std::string_view::npos;
}

}  // namespace belljar
