// The record of runs: what `belljar run --profile NAME` remembers, in a database of the caller's own. Any number of
// processes may use it at once, and any may be killed at any moment. Errors: store_failed, no_record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/limit_use.h"
#include "spec/outcome.h"
#include "store/database.h"

namespace belljar {

// $XDG_STATE_HOME/belljar/runs.db, or that below ~/.local/state. `lookup` is getenv(3) or a test's.
Result<std::string> store_file(const char* (*lookup)(const char* name));

// What is only kept when the caller asks for it. Bytes as they came, cut at kKeptBytesMax each.
struct KeptTexts {
  std::string program;  // the script's text, or the command's arguments, one a line
  std::string standard_output;
  std::string standard_error;
};
inline constexpr std::size_t kKeptBytesMax = 1 << 20;

struct NewRun {
  std::string profile;
  std::int64_t started_unix_ms = 0;
  const Outcome* outcome = nullptr;
  std::optional<KeptTexts> kept;
};

// Empty fields admit all.
struct RunFilter {
  std::string profile;
  std::string status;
  std::int64_t since_unix_ms = 0;
  std::size_t count_max = SIZE_MAX;
};

// What one run used of one limit (LimitUse), as it was recorded.
struct RecordedUse {
  std::uint64_t cap = 0;
  std::optional<std::uint64_t> used;
  bool struck = false;
  bool is_censored = false;
};

// One run of a profile. `uses` has an element for each row of limits.def, in its order; one that was not recorded then
// has a cap of 0 and no use.
struct RecordedUses {
  std::int64_t id = 0;
  std::string status;
  std::vector<RecordedUse> uses;
};

struct RecordedRun {
  std::int64_t id = 0;
  std::string profile;
  std::int64_t started_unix_ms = 0;
  std::string status;
  std::string record;  // the result record without its streams, as JSON
};

// A run with everything that is remembered of it.
struct WholeRun {
  RecordedRun run;
  std::vector<RecordedUse> uses;  // an element for each row of limits.def, in its order
  std::optional<KeptTexts> kept;
};

// How much is remembered; what is older or beyond goes when later runs are recorded.
struct Retention {
  std::int64_t age_ms_max = 90LL * 24 * 3600 * 1000;
  std::int64_t runs_max = 10'000;  // of each profile
  std::int64_t kept_max = 200;     // runs of each profile whose texts are kept
};

class [[nodiscard]] Store {
 public:
  // Makes the file and its folder where there is none, for this user alone.
  static Result<Store> open(const std::string& file, const Retention& retention = {});
  // no_record where there is none.
  static Result<Store> open_existing(const std::string& file);

  // Returns the run's number. Numbers rise and are never given twice.
  Result<std::int64_t> record(const NewRun& run);

  Result<WholeRun> run(std::int64_t id);
  // The latest runs, newest first.
  Result<std::vector<RecordedRun>> runs(const RunFilter& filter);
  // All runs of a profile since a time, oldest first; no_record where the profile is not known.
  Result<std::vector<RecordedUses>> uses(const std::string& profile, std::int64_t since_unix_ms);
  Result<std::vector<std::string>> profiles();

 private:
  Store(Database database, const Retention& retention) : database_(std::move(database)), retention_(retention) {}

  Result<void> insert_uses(std::int64_t id, const Outcome& outcome);
  Result<void> insert_kept(std::int64_t id, const KeptTexts& kept);
  Result<void> forget_old(const NewRun& run);

  Database database_;
  Retention retention_;
};

}  // namespace belljar
