#include "spec/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/utf8.h"
#include "spec/errors.h"

namespace belljar {
namespace {

using Wide = unsigned __int128;

constexpr LimitRow kRows[] = {
#define LIMIT(name, flag, unit, preset, least, most, what, sentence, container, kernel, wasm) \
  {#name, flag, LimitUnit::unit, preset, least, most, what, sentence, &Limits::name, container, kernel, wasm},
#include "spec/limits.def"
#undef LIMIT
};

// What may stand after the number, and by how much it multiplies. The first row of a unit is the empty suffix.
struct Suffix {
  LimitUnit unit;
  std::string_view text;
  std::uint64_t factor;
};

constexpr Suffix kSuffixes[] = {
    {LimitUnit::bytes, "", 1},
    {LimitUnit::bytes, "b", 1},
    {LimitUnit::bytes, "k", kKiB},
    {LimitUnit::bytes, "m", kMiB},
    {LimitUnit::bytes, "g", kGiB},
    {LimitUnit::bytes, "t", kTiB},
    {LimitUnit::milliseconds, "", 1000},
    {LimitUnit::milliseconds, "ms", 1},
    {LimitUnit::milliseconds, "s", 1000},
    {LimitUnit::milliseconds, "m", 60'000},
    {LimitUnit::milliseconds, "min", 60'000},
    {LimitUnit::milliseconds, "h", 3'600'000},
    {LimitUnit::milliseconds, "d", 86'400'000},
    {LimitUnit::millicpus, "", 1000},
    {LimitUnit::count, "", 1},
};

struct UnitWords {
  std::string_view is_not;   // "... is not <is_not>"
  std::string_view written;  // "write <written>"
};

UnitWords unit_words(LimitUnit unit) {
  switch (unit) {
    case LimitUnit::bytes:
      return {"an amount of bytes", "a number with K, M, G or T after it"};
    case LimitUnit::milliseconds:
      return {"a length of time", "a number of seconds, or a number with ms, s, m, h or d after it"};
    case LimitUnit::millicpus:
      return {"a number of cores", "a number such as 0.5 or 2"};
    case LimitUnit::count:
      return {"a whole number", "a whole number"};
  }
  return {"a number", "a number"};
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view take_digits(std::string_view& text) {
  std::size_t count = 0;
  while (count < text.size() && is_digit(text[count])) ++count;
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::optional<std::uint64_t> suffix_factor(LimitUnit unit, std::string_view written) {
  std::string suffix = lower_case(written);
  // KiB, KB and Ki are all taken for K, as most tools do: every one of them is a power of 1024.
  if (unit == LimitUnit::bytes && suffix.size() > 1) {
    if (suffix.ends_with('b')) suffix.pop_back();
    if (suffix.size() == 2 && suffix.ends_with('i')) suffix.pop_back();
  }
  for (const Suffix& row : kSuffixes) {
    if (row.unit == unit && row.text == suffix) return row.factor;
  }
  return std::nullopt;
}

// A number as written, in the row's unit, saturated far above every row's range; nothing when the form is wrong.
std::optional<Wide> parse_amount(LimitUnit unit, std::string_view text) {
  constexpr Wide kSaturated = Wide{1} << 100;
  constexpr std::size_t kFractionDigits = 9;
  const std::string_view whole = take_digits(text);
  if (whole.empty()) return std::nullopt;
  std::string_view fraction;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = take_digits(text);
    if (fraction.empty() || fraction.size() > kFractionDigits || unit == LimitUnit::count) return std::nullopt;
  }
  if (text.size() > 1 && text.starts_with(' ') && text[1] != ' ') text.remove_prefix(1);  // "30 s", as results show it
  const std::optional<std::uint64_t> factor = suffix_factor(unit, text);
  if (!factor) return std::nullopt;

  Wide amount = 0;
  for (const char digit : whole) {
    amount = amount * 10 + static_cast<unsigned>(digit - '0');
    if (amount > kSaturated / *factor) return kSaturated;
  }
  amount *= *factor;
  Wide part = 0;
  Wide scale = 1;
  for (const char digit : fraction) {
    part = part * 10 + static_cast<unsigned>(digit - '0');
    scale *= 10;
  }
  return amount + part * *factor / scale;
}

std::string format_thousandths(std::uint64_t thousandths) {
  std::string text = fmt::format("{}.{:03}", thousandths / 1000, thousandths % 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string format_time(std::uint64_t milliseconds) {
  constexpr std::uint64_t kDay = 86'400'000;
  constexpr std::uint64_t kHour = 3'600'000;
  constexpr std::uint64_t kMinute = 60'000;
  if (milliseconds == 0) return "0 s";
  if (milliseconds % kDay == 0) return fmt::format("{} d", milliseconds / kDay);
  if (milliseconds % kHour == 0) return fmt::format("{} h", milliseconds / kHour);
  if (milliseconds % kMinute == 0) return fmt::format("{} min", milliseconds / kMinute);
  if (milliseconds < 1000) return fmt::format("{} ms", milliseconds);
  return format_thousandths(milliseconds) + " s";
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes == 0) return "0";
  if (bytes % kTiB == 0) return fmt::format("{}T", bytes / kTiB);
  if (bytes % kGiB == 0) return fmt::format("{}G", bytes / kGiB);
  if (bytes % kMiB == 0) return fmt::format("{}M", bytes / kMiB);
  if (bytes % kKiB == 0) return fmt::format("{}K", bytes / kKiB);
  return fmt::format("{} B", bytes);
}

}  // namespace

std::span<const LimitRow> limit_rows() {
  return kRows;
}

const LimitRow& limit_row(std::string_view name) {
  return *std::ranges::find_if(kRows, [&](const LimitRow& row) { return row.name == name; });
}

bool can_be_off(const LimitRow& row) {
  return row.preset == row.most;
}

bool is_unlimited(const LimitRow& row, std::uint64_t value) {
  return can_be_off(row) && value == row.most;
}

Result<std::uint64_t> parse_limit(const LimitRow& row, std::string_view text, std::string_view where) {
  constexpr std::string_view kOff = "off";
  if (text == kOff && can_be_off(row)) return row.most;
  const auto range = [&row] {
    return fmt::format("from {} to {}, {} {}", format_limit(row.unit, row.least), format_limit(row.unit, row.most),
                       can_be_off(row) ? "or" : "such as", format_limit(row, row.preset));
  };
  const std::optional<Wide> amount = parse_amount(row.unit, text);
  if (!amount) {
    const UnitWords words = unit_words(row.unit);
    return fail(ErrorCode::bad_value,
                fmt::format("{}: {} is not {}{}; write {}, {}", where, quote(text), words.is_not,
                            text == kOff ? ", and this limit is never off" : "", words.written, range()));
  }
  if (*amount < row.least || *amount > row.most) {
    return fail(ErrorCode::bad_value,
                fmt::format("{}: {} is out of range; it must be {}", where, quote(text), range()));
  }
  return static_cast<std::uint64_t>(*amount);
}

std::string format_limit(LimitUnit unit, std::uint64_t value) {
  switch (unit) {
    case LimitUnit::bytes:
      return format_bytes(value);
    case LimitUnit::milliseconds:
      return format_time(value);
    case LimitUnit::millicpus:
      return format_thousandths(value);
    case LimitUnit::count:
      break;
  }
  return fmt::format("{}", value);
}

std::string format_limit(const LimitRow& row, std::uint64_t value) {
  return is_unlimited(row, value) ? "off" : format_limit(row.unit, value);
}

std::string show_amount(LimitUnit unit, std::uint64_t value) {
  struct Scale {
    std::uint64_t from;
    double divisor;
    std::string_view suffix;
  };
  constexpr Scale kBytes[] = {{kTiB, double{kTiB}, "T"},
                              {kGiB, double{kGiB}, "G"},
                              {kMiB, double{kMiB}, "M"},
                              {kKiB, double{kKiB}, "K"},
                              {0, 1, " B"}};
  constexpr Scale kTimes[] = {{2 * 86'400'000, 86'400'000, " d"},
                              {2 * 3'600'000, 3'600'000, " h"},
                              {2 * 60'000, 60'000, " min"},
                              {1000, 1000, " s"},
                              {0, 1, " ms"}};
  constexpr Scale kCores[] = {{0, 1000, ""}};
  constexpr Scale kCounts[] = {{0, 1, ""}};
  const std::span<const Scale> scales = unit == LimitUnit::bytes          ? std::span<const Scale>(kBytes)
                                        : unit == LimitUnit::milliseconds ? std::span<const Scale>(kTimes)
                                        : unit == LimitUnit::millicpus    ? std::span<const Scale>(kCores)
                                                                          : std::span<const Scale>(kCounts);
  const Scale& scale = *std::ranges::find_if(scales, [&](const Scale& each) { return value >= each.from; });
  const double scaled = static_cast<double>(value) / scale.divisor;
  if (scaled >= 100 || scale.divisor == 1) return fmt::format("{:.0f}{}", scaled, scale.suffix);
  std::string text = fmt::format("{:.{}f}", scaled, scaled >= 10 ? 1 : 2);
  if (text.find('.') != std::string::npos) text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text + std::string(scale.suffix);
}

std::string show_limit(const LimitRow& row, std::uint64_t value) {
  return is_unlimited(row, value) ? "off" : show_amount(row.unit, value);
}

std::string limit_sentence(const LimitRow& row, std::uint64_t value) {
  std::string sentence(row.sentence);
  sentence.replace(sentence.find("{}"), 2, format_limit(row.unit, value));
  return sentence;
}

}  // namespace belljar
