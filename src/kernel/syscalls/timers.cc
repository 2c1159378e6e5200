// alarm(2), setitimer(2), timer_create(2).
#include <sys/time.h>

#include "kernel/mm/user_memory.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/time/clocks.h"
#include "kernel/time/interval_timers.h"

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kPosixTimersMax = 1024;  // of one process
constexpr int kThreadOnly = 4;                   // SIGEV_THREAD_ID

// As the raw timer_create(2) has it.
struct RawSigevent {
  sigval value;
  std::int32_t signal;
  std::int32_t notify;
  std::int32_t thread;
  std::int32_t rest[11];
};
static_assert(sizeof(RawSigevent) == 64);

struct Setting {
  std::uint64_t left = 0;
  std::uint64_t interval = 0;
};

// Sets one of setitimer(2)'s timers; returns what it was.
SysResult<Setting> exchange_interval(int which, const Setting* wanted) {
  const LockGuard guard(tasks_lock());
  SignalTimer* const timer = interval_timer_of(current_process(), which);
  if (timer == nullptr) return error(ENOMEM);
  const Setting before{timer->left(), timer->interval};
  if (wanted != nullptr) {
    timer->interval = wanted->interval;
    timer->set(wanted->left == 0 ? 0 : timer->measured_now() + wanted->left);
  }
  return before;
}

bool is_interval_timer(int which) {
  return which >= ITIMER_REAL && which <= ITIMER_PROF;
}

SysResult<void> tell_interval(UserAddress to, const Setting& state) {
  return copy_out(to, itimerval{to_timeval(state.interval), to_timeval(state.left)});
}

SignalTimer* find_timer(int id) {
  const IntervalTimers* const timers = current_process().timers;
  SignalTimer* timer = timers == nullptr ? nullptr : timers->first;
  while (timer != nullptr && timer->id != id) timer = timer->next_of_process;
  return timer;
}

// The clock that a timer counts, as its measure; and EINVAL for clocks without timers.
SysResult<TimerMeasure> measure_of(clockid_t clock) {
  if (clock == CLOCK_PROCESS_CPUTIME_ID) return TimerMeasure::cpu_time;
  if (clock == CLOCK_THREAD_CPUTIME_ID) return TimerMeasure::thread_time;
  TRY(read_clock(clock));
  if (is_cpu_clock(clock)) return (clock & 4) != 0 ? TimerMeasure::thread_time : TimerMeasure::cpu_time;
  if (clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_MONOTONIC_COARSE) {
    return error(EOPNOTSUPP);
  }
  return TimerMeasure::real;
}

SysResult<RawSigevent> read_event(UserAddress from, int id) {
  if (from == 0)
    return RawSigevent{.value = {.sival_int = id}, .signal = SIGALRM, .notify = SIGEV_SIGNAL, .thread = 0, .rest = {}};
  const auto event = TRY(copy_in<RawSigevent>(from));
  if (event.notify == SIGEV_NONE) return event;
  if (event.notify != SIGEV_SIGNAL && event.notify != SIGEV_THREAD && event.notify != (SIGEV_SIGNAL | kThreadOnly)) {
    return error(EINVAL);
  }
  if (event.signal < 1 || event.signal >= NSIG) return error(EINVAL);
  return event;
}

itimerspec to_itimerspec(const Setting& state) {
  return {to_timespec(state.interval), to_timespec(state.left)};
}

}  // namespace

SyscallResult sys_alarm(const SyscallArguments& arguments) {
  const Setting wanted{arguments.get<std::uint32_t>(0) * kNanosecondsPerSecond, 0};
  const Setting before = TRY(exchange_interval(ITIMER_REAL, &wanted));
  // Rounded to the nearest second, but an alarm that is still to come is never 0.
  const std::uint64_t seconds = (before.left + kNanosecondsPerSecond / 2) / kNanosecondsPerSecond;
  return before.left != 0 && seconds == 0 ? 1 : seconds;
}

SyscallResult sys_getitimer(const SyscallArguments& arguments) {
  if (!is_interval_timer(arguments.get<int>(0))) return error(EINVAL);
  const Setting now = TRY(exchange_interval(arguments.get<int>(0), nullptr));
  TRY_VOID(tell_interval(arguments.get<UserAddress>(1), now));
  return 0;
}

SyscallResult sys_setitimer(const SyscallArguments& arguments) {
  const auto which = arguments.get<int>(0);
  const auto old_address = arguments.get<UserAddress>(2);
  itimerval value{};  // a null pointer disarms (setitimer(2), "NOTES")
  if (const auto from = arguments.get<UserAddress>(1)) value = TRY(copy_in<itimerval>(from));
  const std::uint64_t left = TRY(to_nanoseconds(value.it_value));
  const std::uint64_t interval = TRY(to_nanoseconds(value.it_interval));
  if (!is_interval_timer(which)) return error(EINVAL);
  const Setting wanted{left, interval};
  const Setting before = TRY(exchange_interval(which, &wanted));
  if (old_address != 0) TRY_VOID(tell_interval(old_address, before));
  return 0;
}

SyscallResult sys_timer_create(const SyscallArguments& arguments) {
  const auto clock = arguments.get<clockid_t>(0);
  const TimerMeasure measure = TRY(measure_of(clock));
  Process& process = current_process();
  int id = 0;
  {
    const LockGuard guard(tasks_lock());
    IntervalTimers* const timers = timers_of(process);
    if (timers == nullptr || timers->count >= kPosixTimersMax) return error(EAGAIN);
    id = timers->next_id++;
  }
  const auto event = TRY(read_event(arguments.get<UserAddress>(1), id));
  Ref<SignalTimer> timer = make_ref<SignalTimer>(process, measure);
  if (!timer) return error(EAGAIN);
  timer->id = id;
  timer->clock = clock;
  timer->signal = event.notify == SIGEV_NONE ? 0 : event.signal;
  timer->value = event.value;
  if (measure == TimerMeasure::thread_time)
    timer->measured_thread = clock < 0 && ~(clock >> 3) != 0 ? ~(clock >> 3) : current().tid;
  const bool is_for_thread = event.notify == (SIGEV_SIGNAL | kThreadOnly);
  TRY_VOID(copy_out(arguments.get<UserAddress>(2), id));

  const LockGuard guard(tasks_lock());
  if (is_for_thread) {
    const Task* const receiver = find_task(event.thread);
    if (receiver == nullptr || receiver->process != &process) return error(EINVAL);
    timer->thread = event.thread;
  }
  timer->next_of_process = process.timers->first;
  process.timers->first = timer.leak();
  ++process.timers->count;
  return 0;
}

SyscallResult sys_timer_settime(const SyscallArguments& arguments) {
  const auto old_address = arguments.get<UserAddress>(3);
  const bool is_absolute = (arguments.get<int>(1) & TIMER_ABSTIME) != 0;
  if (arguments.get<UserAddress>(2) == 0) return error(EINVAL);
  const auto wanted = TRY(copy_in<itimerspec>(arguments.get<UserAddress>(2)));
  const std::uint64_t value = TRY(to_nanoseconds(wanted.it_value));
  const std::uint64_t interval = TRY(to_nanoseconds(wanted.it_interval));
  Setting before;
  {
    const LockGuard guard(tasks_lock());
    SignalTimer* const timer = find_timer(arguments.get<int>(0));
    if (timer == nullptr) return error(EINVAL);
    before = {timer->left(), timer->interval};
    timer->interval = interval;
    timer->overrun = 0;
    if (value == 0) {
      timer->set(0);
    } else if (is_cpu_clock(timer->clock)) {
      timer->set(is_absolute ? value : timer->measured_now() + value);
    } else {
      const Deadline deadline =
          TRY(deadline_of(timer->clock, value, is_absolute ? TimeKind::absolute : TimeKind::relative));
      timer->set(deadline);
    }
  }
  if (old_address != 0) TRY_VOID(copy_out(old_address, to_itimerspec(before)));
  return 0;
}

SyscallResult sys_timer_gettime(const SyscallArguments& arguments) {
  Setting now;
  {
    const LockGuard guard(tasks_lock());
    const SignalTimer* const timer = find_timer(arguments.get<int>(0));
    if (timer == nullptr) return error(EINVAL);
    now = {timer->left(), timer->interval};
  }
  TRY_VOID(copy_out(arguments.get<UserAddress>(1), to_itimerspec(now)));
  return 0;
}

SyscallResult sys_timer_getoverrun(const SyscallArguments& arguments) {
  const LockGuard guard(tasks_lock());
  const SignalTimer* const timer = find_timer(arguments.get<int>(0));
  if (timer == nullptr) return error(EINVAL);
  return static_cast<std::uint64_t>(timer->overrun);
}

SyscallResult sys_timer_delete(const SyscallArguments& arguments) {
  const LockGuard guard(tasks_lock());
  SignalTimer* const timer = find_timer(arguments.get<int>(0));
  if (timer == nullptr) return error(EINVAL);
  IntervalTimers& timers = *current_process().timers;
  SignalTimer** link = &timers.first;
  while (*link != timer) link = &(*link)->next_of_process;
  *link = timer->next_of_process;
  --timers.count;
  timer->end();
  timer->release();
  return 0;
}

}  // namespace belljar::kernel
