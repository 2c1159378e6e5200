// The limits of one sandbox: rows of limits.def as fields.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace belljar {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;
inline constexpr std::uint64_t kTiB = 1024 * kGiB;

enum class LimitUnit { bytes, millicpus, count, milliseconds };

// Who chose a value. A limit that the caller named must be enforced in full; a default may be enforced more weakly.
enum class LimitSource { preset, named };

struct Limit {
  std::uint64_t value;  // in the row's unit
  LimitSource source = LimitSource::preset;

  bool operator==(const Limit&) const = default;
};

struct Limits {
#define LIMIT(name, flag, unit, preset, least, most, what, sentence, container, kernel, wasm) Limit name{preset};
#include "spec/limits.def"
#undef LIMIT

  bool operator==(const Limits&) const = default;
};

// A row of limits.def.
struct LimitRow {
  std::string_view name;
  std::string_view flag;
  LimitUnit unit;
  std::uint64_t preset;
  std::uint64_t least;
  std::uint64_t most;
  std::string_view what;
  std::string_view sentence;
  Limit Limits::* field;
  std::string_view held_in_container;  // by whom
  std::string_view held_in_kernel;
  std::string_view held_in_wasm;
};

std::span<const LimitRow> limit_rows();

// The row with this name; it must be one.
const LimitRow& limit_row(std::string_view name);

// Whether the row is off unless it is set: its default is the most that it takes.
bool can_be_off(const LimitRow& row);

// Whether the value stands for no limit.
bool is_unlimited(const LimitRow& row, std::uint64_t value);

// Parses `text` as people write the row's unit, and checks the range. Units are powers of 1024 for bytes (none, K, M,
// G, T), and ms, s (or none), m, h, d for time; what is finer than the row's unit is dropped. Where a row can be off,
// "off" is read as the most. The error (bad_value) names `where` (a flag or a policy key), what was written and what
// would be right.
Result<std::uint64_t> parse_limit(const LimitRow& row, std::string_view text, std::string_view where);

// The value as people write it: "256M", "30 s", "0.5", "1024". Exact: parse_limit() takes it back to the same value.
std::string format_limit(LimitUnit unit, std::uint64_t value);

// The same of a limit; "off" where it is none.
std::string format_limit(const LimitRow& row, std::uint64_t value);

// The same for reading only, rounded to three digits: "13.4M", "1.25 s".
std::string show_amount(LimitUnit unit, std::uint64_t value);

// show_amount() of a limit; "off" where it is none.
std::string show_limit(const LimitRow& row, std::uint64_t value);

// The row's sentence with the value filled in.
std::string limit_sentence(const LimitRow& row, std::uint64_t value);

}  // namespace belljar
