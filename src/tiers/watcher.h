// The watcher: a small process beside each sandbox. It waits, to clean up when its parent is killed, and to end the
// sandbox when the parent misses the deadline (because it is stopped, say). It has a session of its own, so that
// nothing typed at the caller's terminal reaches it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "host/process.h"

namespace belljar {

// What the watcher needs to clean up after its parent.
struct CleanupNeeds {
  int process_fd = -1;               // pidfd of the sandbox's first process
  std::vector<int> keep_open;        // locks that must outlive the sandbox
  std::vector<std::string> folders;  // cgroup folders, deepest first
  std::uint64_t timeout_ms = 0;      // from the execution of the program; the watcher adds a grace of its own
};

class [[nodiscard]] Watcher {
 public:
  // Forks the watcher. `started_us` lies in shared memory, and tells when the program was executed (0: not yet).
  static Result<Watcher> start(const std::atomic<std::uint64_t>& started_us);

  Watcher(Watcher&& other) noexcept : link_(std::move(other.link_)), process_(std::move(other.process_)) {}
  Watcher& operator=(Watcher&&) = delete;
  // Dismisses and reaps it.
  ~Watcher();

  // From here on the watcher cleans up should this process die.
  Result<void> arm(const CleanupNeeds& needs) const;

  // Tells the watcher that all has ended under this process's eyes, so that it ends too.
  void dismiss();

  // Leaves the cleaning up to the watcher, which outlives this process.
  void leave_to_it();

 private:
  Watcher(Fd link, host::Process process) : link_(std::move(link)), process_(std::move(process)) {}

  Fd link_;  // SOCK_SEQPACKET; the watcher sees it close when this process dies
  host::Process process_;
};

// How long a sandbox may take to start, on a host that is busy with others.
inline constexpr std::uint64_t kStartPatienceMs = 30'000;

// When the program must have ended: `timeout_ms` after it was executed (at `started_us`), or after the patience for a
// start that began at `called_ms`. Milliseconds of CLOCK_MONOTONIC.
std::uint64_t deadline_ms(std::uint64_t called_ms, std::uint64_t started_us, std::uint64_t timeout_ms);

// CLOCK_MONOTONIC.
std::uint64_t monotonic_ms();
std::uint64_t monotonic_us();

}  // namespace belljar
