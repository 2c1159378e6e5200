// Timers of the sandbox: objects in the arena that one helper thread fires when their time has come. Threads that sleep
// with a deadline don't need them; timerfd, alarm(2), setitimer(2) and timer_create(2) do.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernel/arena/lock.h"
#include "kernel/arena/ref.h"
#include "kernel/task/wait_queue.h"

namespace belljar::kernel {

class TimerState;

// Derive from it, and make it with make_ref(): an armed timer is kept alive by the list that it is in.
//
//   class TimerFdState final : public Timer { void fire() override { LockGuard guard(lock); if (...) ...; } };
//
// The owner keeps a Ref, and calls disarm() before it lets go. Since fire() runs without any lock, it can come just
// after a disarm() or another arm() of another thread: it looks at its own state, under its own lock, for what it has
// to do. For an interval it arms itself again.
class Timer : public Counted {
 public:
  // Fires once `deadline` has passed; in place of an earlier arming. May be called with any lock but one of
  // LockRank::timers or higher held.
  void arm(Deadline deadline);
  // Whether it was armed.
  bool disarm();

 protected:
  // In the helper thread, which has no current(). It holds no lock and must not sleep.
  virtual void fire() = 0;

 private:
  friend class TimerState;
  Deadline deadline_ = kNever;
  bool is_armed_ = false;
  // A pairing heap by deadline: the first child, the next child of the same parent, and the previous one or the parent.
  Timer* child_ = nullptr;
  Timer* next_ = nullptr;
  Timer* previous_ = nullptr;
};

// All armed timers; one in the arena (arena/roots.h).
class TimerState {
 public:
  // Changes whenever the earliest deadline becomes earlier; the helper thread sleeps on it (futex(2)).
  std::atomic<std::uint32_t> word = 0;

  std::uint64_t run_due(std::uint64_t now);

 private:
  friend class Timer;
  void insert(Timer& timer);
  void remove(Timer& timer);
  Timer* pop_due(std::uint64_t now);
  static Timer* merge(Timer* one, Timer* other);
  static Timer* merge_children(Timer* first);

  Lock lock_{LockRank::timers};
  Timer* first_ = nullptr;
};

// For the helper thread: fires what is due at `now` (CLOCK_MONOTONIC), returns the next deadline (kNever: none). The
// loop:
//
//   const std::uint32_t seen = timers_word().load();
//   const std::uint64_t next = run_due_timers(host::clock_ns(CLOCK_MONOTONIC));
//   sleep on timers_word() while it is `seen`, until `next`;
std::uint64_t run_due_timers(std::uint64_t now);
std::atomic<std::uint32_t>& timers_word();

}  // namespace belljar::kernel
