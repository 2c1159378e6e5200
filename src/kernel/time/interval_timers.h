// Timers of a process that send signals: alarm(2), setitimer(2), timer_create(2), and the limit on CPU time.
//
// All of it is held by the tasks lock.
#pragma once

#include <time.h>

#include "kernel/task/process.h"
#include "kernel/time/timers.h"

namespace belljar::kernel {

// What a timer counts.
enum class TimerMeasure : std::uint8_t {
  real,         // CLOCK_MONOTONIC; other clocks are turned into it when the timer is set
  user_time,    // of the process
  cpu_time,     // of the process, user and system
  thread_time,  // of one thread
};

class SignalTimer final : public Timer {
 public:
  SignalTimer(Process& process, TimerMeasure measure) : process_(&process), measure_(measure) {}

  int signal = 0;                     // 0: none is sent (SIGEV_NONE)
  Pid thread = 0;                     // the receiver; 0: the process
  Pid measured_thread = 0;            // of TimerMeasure::thread_time
  int id = -1;                        // of timer_create(2)
  clockid_t clock = CLOCK_MONOTONIC;  // as timer_create(2) named it
  sigval value{};
  std::uint64_t interval = 0;
  int overrun = 0;  // expirations that the last signal stands for, besides the first

  // 0: disarmed.
  void set(std::uint64_t expires);
  // What `set` takes, and how much is left until then; 0: disarmed.
  std::uint64_t measured_now() const;
  std::uint64_t left() const;
  // Makes it harmless, also to a fire() that is about to run.
  void end();

  // POSIX timers of a process.
  SignalTimer* next_of_process = nullptr;

 private:
  void fire() override;
  void expire(std::uint64_t now);
  void deliver();
  void watch_cpu_limit(std::uint64_t now);
  void arm_for(std::uint64_t now);

  Process* process_;
  TimerMeasure measure_;
  std::uint64_t expires_ = 0;
  std::uint64_t seen_ = 0;        // of a CPU clock: what it was at the last look
  std::uint64_t look_after_ = 0;  // how long to wait for the next
};

class IntervalTimers final : public Counted {
 public:
  Ref<SignalTimer> by_kind[3];   // ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF
  Ref<SignalTimer> cpu_limit;    // RLIMIT_CPU
  SignalTimer* first = nullptr;  // of timer_create(2); references
  std::uint32_t count = 0;
  int next_id = 0;
};

// The process's timers, made at the first use; null where the heap is full. The tasks lock is held.
IntervalTimers* timers_of(Process& process);
// The timer of setitimer(2); null as above.
SignalTimer* interval_timer_of(Process& process, int which);

// RLIMIT_CPU of the process was set or inherited. The tasks lock is held.
void apply_cpu_limit(Process& process);
// For execve(2): timers of timer_create(2) go, the others stay. Takes the tasks lock.
void timers_at_exec(Process& process);
// For the end of a process: all go. The tasks lock is held.
void timers_at_exit(Process& process);

}  // namespace belljar::kernel
