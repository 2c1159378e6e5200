#include "kernel/time/clocks.h"

#include "kernel/host/calls.h"
#include "kernel/task/process.h"
#include "kernel/time/cpu_times.h"

namespace belljar::kernel {
namespace {

constexpr std::uint64_t kLongest = 0x7fff'ffff'ffff'ffff;

SysResult<std::uint64_t> join(std::int64_t seconds, std::int64_t part, std::int64_t parts_per_second) {
  if (seconds < 0 || part < 0 || part >= parts_per_second) return error(EINVAL);
  const std::uint64_t nanoseconds =
      static_cast<std::uint64_t>(part) * (kNanosecondsPerSecond / static_cast<std::uint64_t>(parts_per_second));
  if (static_cast<std::uint64_t>(seconds) >= kLongest / kNanosecondsPerSecond) return kLongest;
  return static_cast<std::uint64_t>(seconds) * kNanosecondsPerSecond + nanoseconds;
}

// clock_getcpuclockid(3): the complement of a pid in the upper bits, then whether it is a thread's, and which time.
struct CpuClockName {
  Pid pid;
  bool is_thread;
  int kind;  // 0: user and system, 1: user, 2: the scheduler's

  static CpuClockName parse(clockid_t clock) { return {~(clock >> 3), (clock & 4) != 0, clock & 3}; }
};

SysResult<std::uint64_t> read_named_cpu_clock(clockid_t clock) {
  const CpuClockName name = CpuClockName::parse(clock);
  if (name.kind > 2) return error(EINVAL);
  CpuTimes times;
  const LockGuard guard(tasks_lock());
  if (name.is_thread) {
    const Task* task = name.pid == 0 ? &current() : find_task(name.pid);
    if (task == nullptr || task->process != current().process) return error(EINVAL);
    times = cpu_times_of(*task);
  } else {
    const Process* process = name.pid == 0 ? current().process : find_process(name.pid);
    if (process == nullptr) return error(EINVAL);
    times = cpu_times_of(*process);
  }
  return name.kind == 1 ? times.user_ns : times.user_ns + times.system_ns;
}

}  // namespace

std::uint64_t now_ns() {
  return host::clock_ns(CLOCK_MONOTONIC);
}

SysResult<std::uint64_t> to_nanoseconds(const timespec& time) {
  return join(time.tv_sec, time.tv_nsec, 1'000'000'000);
}

SysResult<std::uint64_t> to_nanoseconds(const timeval& time) {
  return join(time.tv_sec, time.tv_usec, 1'000'000);
}

timespec to_timespec(std::uint64_t nanoseconds) {
  return {static_cast<time_t>(nanoseconds / kNanosecondsPerSecond),
          static_cast<long>(nanoseconds % kNanosecondsPerSecond)};
}

timeval to_timeval(std::uint64_t nanoseconds) {
  return {static_cast<time_t>(nanoseconds / kNanosecondsPerSecond),
          static_cast<suseconds_t>(nanoseconds % kNanosecondsPerSecond / 1000)};
}

bool is_cpu_clock(clockid_t clock) {
  return clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
}

SysResult<std::uint64_t> read_clock(clockid_t clock) {
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_MONOTONIC:
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
    case CLOCK_TAI:
      return host::clock_ns(clock);
    // The alarm clocks read as those that don't wake a sleeping machine.
    case CLOCK_REALTIME_ALARM:
      return host::clock_ns(CLOCK_REALTIME);
    case CLOCK_BOOTTIME_ALARM:
      return host::clock_ns(CLOCK_BOOTTIME);
    default:
      return clock < 0 ? read_named_cpu_clock(clock) : error(EINVAL);
  }
}

SysResult<Deadline> deadline_of(clockid_t clock, std::uint64_t time, TimeKind kind) {
  const bool can_wait = clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME || clock == CLOCK_BOOTTIME ||
                        clock == CLOCK_TAI || clock == CLOCK_REALTIME_ALARM || clock == CLOCK_BOOTTIME_ALARM;
  if (!can_wait) return error(EINVAL);
  std::uint64_t from_now = time;
  if (kind == TimeKind::absolute) {
    const std::uint64_t now = TRY(read_clock(clock));
    from_now = time > now ? time - now : 0;
  }
  const std::uint64_t now = now_ns();
  return from_now > kLongest - now ? kLongest : now + from_now;
}

}  // namespace belljar::kernel
