// Waiting awake before sleeping. To wake a thread that sleeps on an idle processor takes the host many times longer
// than an answer of another thread takes; so a task whose sleeps ended in about that time of late looks for a while
// whether its wait ends, before it sleeps. How long is found as hypervisors' halt polling does it: it grows with each
// such sleep. It ends with a long sleep, and with a very short one: then the other thread had waited for this one's
// processor. Never with a single processor.
#pragma once

#include <time.h>

#include "kernel/host/calls.h"
#include "kernel/task/process.h"
#include "kernel/task/sandbox_facts.h"

namespace belljar::kernel {

// One wait of the running task.
class Spin {
 public:
  Spin() : task_(current()), is_useful_(sandbox_facts().cpu_count > 1) {}

  // Until `is_over`, the task gets a signal, or the time allowed is used up.
  template <typename Condition>
  void until(Condition is_over) {
    if (task_.spin_ns == 0) return;
    const std::uint64_t end = now() + task_.spin_ns;
    while (!is_over() && task_.has_work.load(std::memory_order_relaxed) == 0 && now() < end) __builtin_ia32_pause();
  }

  // Around a sleep that follows.
  void before_sleep() {
    if (is_useful_) sleep_begin_ = now();
  }
  void after_sleep(bool is_timed_out) {
    if (!is_useful_) return;
    const std::uint64_t slept = now() - sleep_begin_;
    if (is_timed_out || slept < kWakeLeast_ns || slept > kMost_ns) {
      task_.spin_ns = 0;
    } else {
      task_.spin_ns = task_.spin_ns == 0 ? kFirst_ns : task_.spin_ns * 4 < kMost_ns ? task_.spin_ns * 4 : kMost_ns;
    }
  }

 private:
  static constexpr std::uint32_t kFirst_ns = 8'000;
  static constexpr std::uint32_t kMost_ns = 200'000;
  static constexpr std::uint32_t kWakeLeast_ns = 15'000;  // less is a switch between threads of one processor

  static std::uint64_t now() { return host::clock_ns(CLOCK_MONOTONIC); }

  Task& task_;
  bool is_useful_;
  std::uint64_t sleep_begin_ = 0;
};

}  // namespace belljar::kernel
