// What `belljar run --profile NAME` and `--limits auto:NAME` do with the record of runs (store/).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/run_command.h"
#include "spec/sandbox_spec.h"
#include "store/store.h"

namespace belljar {

// Remembers one run.
class Recorder {
 public:
  // Before the run, so that one that can't be remembered is refused. Reads the program's text where it is to be kept.
  static Result<Recorder> open(const RunOptions& options, const SandboxSpec& spec);

  // What can't be recorded after all is said on stderr: the run has been.
  void record(const Outcome& outcome);

 private:
  Recorder(Store store, NewRun run) : store_(std::move(store)), run_(std::move(run)) {}

  Store store_;
  NewRun run_;
};

// `limits` with those that nobody named as `belljar calibrate` would propose them from the runs of `profile`. Errors:
// as the store's, and too_few_runs.
Result<Limits> calibrated_limits(const Limits& limits, const std::string& profile);

// Milliseconds since 1970.
std::int64_t unix_ms();

// That time in the caller's zone, in a form of strftime(3) that gives at most 63 bytes.
std::string time_text(std::int64_t ms, const char* form);

// The caller's own store, where there is one.
Result<Store> open_own_store();

}  // namespace belljar
