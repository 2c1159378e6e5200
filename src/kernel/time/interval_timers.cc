#include "kernel/time/interval_timers.h"

#include <sys/time.h>

#include <algorithm>

#include "kernel/task/signals.h"
#include "kernel/time/clocks.h"
#include "kernel/time/cpu_times.h"

namespace belljar::kernel {
namespace {

// CPU clocks are looked at this far apart at least, as a kernel that counts by ticks does; and while they stand still
// at most so far apart.
constexpr std::uint64_t kTick = 4'000'000;
constexpr std::uint64_t kLongestLook = 64'000'000;

struct IntervalKind {
  int signal;
  TimerMeasure measure;
};
constexpr IntervalKind kIntervalKinds[] = {
    {SIGALRM, TimerMeasure::real},         // ITIMER_REAL
    {SIGVTALRM, TimerMeasure::user_time},  // ITIMER_VIRTUAL
    {SIGPROF, TimerMeasure::cpu_time},     // ITIMER_PROF
};

// The signal of this timer that is still waiting to be taken.
PendingSignal* find_pending(SignalQueue& queue, const SignalTimer& timer) {
  for (PendingSignal* pending = queue.first; pending != nullptr; pending = pending->next) {
    const siginfo_t& info = pending->info;
    if (info.si_signo == timer.signal && info.si_code == SI_TIMER && info.si_timerid == timer.id) return pending;
  }
  return nullptr;
}

}  // namespace

std::uint64_t SignalTimer::measured_now() const {
  switch (measure_) {
    case TimerMeasure::real:
      return now_ns();
    case TimerMeasure::user_time:
      return cpu_times_of(*process_).user_ns;
    case TimerMeasure::cpu_time: {
      const CpuTimes times = cpu_times_of(*process_);
      return times.user_ns + times.system_ns;
    }
    case TimerMeasure::thread_time: {
      const Task* const task = find_task(measured_thread);
      if (task == nullptr) return 0;
      const CpuTimes times = cpu_times_of(*task);
      return times.user_ns + times.system_ns;
    }
  }
  return 0;
}

void SignalTimer::set(std::uint64_t expires) {
  expires_ = expires;
  seen_ = look_after_ = 0;
  if (expires == 0) {
    disarm();
  } else {
    arm_for(measured_now());
  }
}

std::uint64_t SignalTimer::left() const {
  if (expires_ == 0) return 0;
  const std::uint64_t now = measured_now();
  return expires_ > now ? expires_ - now : 1;  // due, and about to be fired: not disarmed
}

void SignalTimer::end() {
  process_ = nullptr;
  disarm();
}

// CPU time passes at most as fast as the threads are many. It stands still while they sleep: then it is looked at less
// and less often.
void SignalTimer::arm_for(std::uint64_t now) {
  if (measure_ == TimerMeasure::real) {
    arm(expires_);
    return;
  }
  const std::uint64_t threads = std::max<std::uint64_t>(process_->task_count, 1);
  const std::uint64_t soonest = expires_ > now ? std::max((expires_ - now) / threads, kTick) : 0;
  look_after_ = now == seen_ ? std::min(look_after_ * 2, kLongestLook) : 0;
  seen_ = now;
  look_after_ = std::max(look_after_, soonest);
  arm(now_ns() + look_after_);
}

void SignalTimer::fire() {
  const LockGuard guard(tasks_lock());
  if (process_ == nullptr || expires_ == 0 || process_->state == ProcessState::zombie) return;
  const std::uint64_t now = measured_now();
  if (now >= expires_) expire(now);
  if (expires_ != 0) arm_for(now);
}

void SignalTimer::expire(std::uint64_t now) {
  if (process_->timers->cpu_limit.get() == this) {
    watch_cpu_limit(now);
    return;
  }
  std::uint64_t missed = 0;
  if (interval == 0) {
    expires_ = 0;
  } else {
    missed = (now - expires_) / interval;
    expires_ += (missed + 1) * interval;
  }
  overrun = static_cast<int>(std::min<std::uint64_t>(missed, 0x7fff'ffff));
  if (signal != 0) deliver();
}

// A timer has one signal waiting at most: further expirations are counted in it (timer_getoverrun(2)).
void SignalTimer::deliver() {
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = id < 0 ? SI_KERNEL : SI_TIMER;
  Task* const receiver = thread == 0 ? nullptr : find_task(thread);
  if (thread != 0 && receiver == nullptr) return;
  if (id >= 0) {
    SignalQueue& queue = receiver != nullptr ? receiver->pending : process_->pending;
    if (PendingSignal* const pending = find_pending(queue, *this)) {
      overrun = pending->info.si_overrun = pending->info.si_overrun + overrun + 1;
      return;
    }
    info.si_timerid = id;
    info.si_overrun = overrun;
    info.si_value = value;
  }
  if (receiver != nullptr) {
    send_signal_to_task_locked(*receiver, info);
  } else {
    send_signal_locked(*process_, info);
  }
}

// setrlimit(2): SIGXCPU at the soft limit and each second from there, SIGKILL at the hard one.
void SignalTimer::watch_cpu_limit(std::uint64_t now) {
  const rlimit& limit = process_->limits[RLIMIT_CPU];
  const bool is_over = limit.rlim_max != RLIM_INFINITY && now / kNanosecondsPerSecond >= limit.rlim_max;
  siginfo_t info{};
  info.si_signo = is_over ? SIGKILL : SIGXCPU;
  info.si_code = SI_KERNEL;
  expires_ = is_over ? 0 : (now / kNanosecondsPerSecond + 1) * kNanosecondsPerSecond;
  send_signal_locked(*process_, info);
}

IntervalTimers* timers_of(Process& process) {
  if (process.timers == nullptr) process.timers = make_ref<IntervalTimers>().leak();
  return process.timers;
}

SignalTimer* interval_timer_of(Process& process, int which) {
  IntervalTimers* const timers = timers_of(process);
  if (timers == nullptr) return nullptr;
  Ref<SignalTimer>& timer = timers->by_kind[which];
  if (!timer) {
    timer = make_ref<SignalTimer>(process, kIntervalKinds[which].measure);
    if (timer) timer->signal = kIntervalKinds[which].signal;
  }
  return timer.get();
}

void apply_cpu_limit(Process& process) {
  const rlimit& limit = process.limits[RLIMIT_CPU];
  if (limit.rlim_cur == RLIM_INFINITY && process.timers == nullptr) return;
  IntervalTimers* const timers = timers_of(process);
  if (timers == nullptr) return;
  if (!timers->cpu_limit) timers->cpu_limit = make_ref<SignalTimer>(process, TimerMeasure::cpu_time);
  if (!timers->cpu_limit) return;
  // A limit of 0 seconds is one of 1 second (setrlimit(2), "BUGS").
  const std::uint64_t seconds = std::max<std::uint64_t>(limit.rlim_cur, 1);
  constexpr std::uint64_t kMost = kNever / kNanosecondsPerSecond;
  timers->cpu_limit->set(limit.rlim_cur == RLIM_INFINITY || seconds >= kMost ? 0 : seconds * kNanosecondsPerSecond);
}

namespace {

void end_posix_timers(IntervalTimers& timers) {
  while (SignalTimer* const timer = timers.first) {
    timers.first = timer->next_of_process;
    timer->end();
    timer->release();
  }
  timers.count = 0;
}

}  // namespace

void timers_at_exec(Process& process) {
  const LockGuard guard(tasks_lock());
  if (process.timers == nullptr) return;
  end_posix_timers(*process.timers);
  process.timers->next_id = 0;
}

void timers_at_exit(Process& process) {
  IntervalTimers* const timers = std::exchange(process.timers, nullptr);
  if (timers == nullptr) return;
  end_posix_timers(*timers);
  for (const Ref<SignalTimer>& timer : timers->by_kind) {
    if (timer) timer->end();
  }
  if (timers->cpu_limit) timers->cpu_limit->end();
  timers->release();
}

}  // namespace belljar::kernel
