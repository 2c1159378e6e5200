// The watcher: a small process beside each run that cleans up when the supervisor is killed, and kills the sandbox when
// the supervisor misses the deadline (because it is stopped, say). Alone it can't be reached from the caller's
// terminal.
#pragma once

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"
#include "host/process.h"
#include "tiers/tier.h"

namespace belljar {

class [[nodiscard]] Watcher {
 public:
  // Forks the watcher. `deadline_ms` is on CLOCK_MONOTONIC.
  static Result<Watcher> start(const CleanupNeeds& needs, std::uint64_t deadline_ms);

  Watcher(Watcher&&) = default;
  Watcher& operator=(Watcher&&) = default;
  ~Watcher();

  // Tells the watcher that the sandbox has ended under this process's eyes, so that it ends too. The destructor reaps
  // it.
  void dismiss();

  // Leaves the cleaning up to the watcher, which outlives this process.
  void leave_to_it();

 private:
  Watcher(Fd alive, host::Process process) : alive_(std::move(alive)), process_(std::move(process)) {}

  Fd alive_;  // the watcher sees its other end close when this process dies
  host::Process process_;
};

// Milliseconds on CLOCK_MONOTONIC.
std::uint64_t monotonic_ms();

}  // namespace belljar
