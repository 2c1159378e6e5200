// Clocks and sleeping (time(7)).
#include <sys/time.h>

#include "kernel/mm/user_memory.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/time/clocks.h"

namespace belljar::kernel {
namespace {

constexpr std::uint64_t kTick = 4'000'000;          // of the coarse clocks
constexpr std::uint64_t kCpuClockLook = 1'000'000;  // between two looks at a CPU clock, at least

// kRestartNoHandler where a signal came before the deadline.
SysResult<void> sleep_until(Deadline deadline) {
  while (now_ns() < deadline) {
    prepare_to_sleep();
    const auto slept = sleep_until_woken(deadline);
    if (!slept && value_of(slept.error()) != ETIMEDOUT) return error(kRestartNoHandler);
  }
  return {};
}

// The clock of a process stands still while nobody runs, so it is looked at again and again.
SysResult<void> sleep_on_cpu_clock(clockid_t clock, std::uint64_t until) {
  while (true) {
    const std::uint64_t now = TRY(read_clock(clock));
    if (now >= until) return {};
    TRY_VOID(sleep_until(now_ns() + (until - now) / 4 + kCpuClockLook));
  }
}

// What is left of an interrupted sleep is told to who wants to know.
SyscallResult sleep_for(clockid_t clock, std::uint64_t nanoseconds, UserAddress left_address) {
  const Deadline deadline = TRY(deadline_of(clock, nanoseconds, TimeKind::relative));
  const auto slept = sleep_until(deadline);
  if (slept) return 0;
  const std::uint64_t now = now_ns();
  if (now >= deadline) return 0;
  if (left_address != 0) TRY_VOID(copy_out(left_address, to_timespec(deadline - now)));
  return std::unexpected(slept.error());
}

}  // namespace

SyscallResult sys_clock_gettime(const SyscallArguments& arguments) {
  const std::uint64_t now = TRY(read_clock(arguments.get<clockid_t>(0)));
  TRY_VOID(copy_out(arguments.get<UserAddress>(1), to_timespec(now)));
  return 0;
}

SyscallResult sys_clock_getres(const SyscallArguments& arguments) {
  const auto clock = arguments.get<clockid_t>(0);
  TRY(read_clock(clock));
  const bool is_coarse = clock == CLOCK_REALTIME_COARSE || clock == CLOCK_MONOTONIC_COARSE;
  if (const auto to = arguments.get<UserAddress>(1)) TRY_VOID(copy_out(to, to_timespec(is_coarse ? kTick : 1)));
  return 0;
}

SyscallResult sys_gettimeofday(const SyscallArguments& arguments) {
  const auto time_address = arguments.get<UserAddress>(0);
  const auto zone_address = arguments.get<UserAddress>(1);
  const std::uint64_t now = TRY(read_clock(CLOCK_REALTIME));
  if (time_address != 0) TRY_VOID(copy_out(time_address, to_timeval(now)));
  if (zone_address != 0) TRY_VOID(zero_out(zone_address, sizeof(struct timezone)));
  return 0;
}

SyscallResult sys_time(const SyscallArguments& arguments) {
  const std::uint64_t seconds = TRY(read_clock(CLOCK_REALTIME)) / kNanosecondsPerSecond;
  if (const auto to = arguments.get<UserAddress>(0)) TRY_VOID(copy_out(to, seconds));
  return seconds;
}

SyscallResult sys_nanosleep(const SyscallArguments& arguments) {
  const auto wanted = TRY(copy_in<timespec>(arguments.get<UserAddress>(0)));
  const std::uint64_t nanoseconds = TRY(to_nanoseconds(wanted));
  return sleep_for(CLOCK_MONOTONIC, nanoseconds, arguments.get<UserAddress>(1));
}

SyscallResult sys_clock_nanosleep(const SyscallArguments& arguments) {
  const auto clock = arguments.get<clockid_t>(0);
  const bool is_absolute = (arguments.get<std::uint32_t>(1) & TIMER_ABSTIME) != 0;
  if (clock == CLOCK_THREAD_CPUTIME_ID) return error(EINVAL);
  if (clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_MONOTONIC_COARSE)
    return error(EOPNOTSUPP);
  const std::uint64_t now = TRY(read_clock(clock));
  const auto wanted = TRY(copy_in<timespec>(arguments.get<UserAddress>(2)));
  const std::uint64_t time = TRY(to_nanoseconds(wanted));
  if (is_cpu_clock(clock)) {
    TRY_VOID(sleep_on_cpu_clock(clock, is_absolute ? time : now + time));
    return 0;
  }
  if (!is_absolute) return sleep_for(clock, time, arguments.get<UserAddress>(3));
  const Deadline deadline = TRY(deadline_of(clock, time, TimeKind::absolute));
  TRY_VOID(sleep_until(deadline));
  return 0;
}

}  // namespace belljar::kernel
