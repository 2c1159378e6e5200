// eventfd(2) and timerfd_create(2).
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>

#include "kernel/ipc/event_file.h"
#include "kernel/ipc/timer_file.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/time/clocks.h"

namespace belljar::kernel {
namespace {

SyscallResult make_eventfd(std::uint32_t count, std::uint32_t flags) {
  if ((flags & ~static_cast<std::uint32_t>(EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)) != 0) return error(EINVAL);
  const EventFileMode mode = (flags & EFD_SEMAPHORE) != 0 ? EventFileMode::semaphore : EventFileMode::counter;
  return TRY(add_new_file(make_event_file(count, mode), O_RDWR, flags));
}

itimerspec to_itimerspec(const FileTimer::Setting& setting) {
  itimerspec value{};
  value.it_interval = to_timespec(setting.interval);
  if (setting.first == kNever) return value;
  const std::uint64_t now = now_ns();
  // A timer that is on never shows 0.
  value.it_value = to_timespec(setting.first > now ? setting.first - now : 1);
  return value;
}

SysResult<FileTimer::Setting> to_setting(const itimerspec& value, clockid_t clock, bool is_absolute) {
  FileTimer::Setting setting;
  const std::uint64_t first = TRY(to_nanoseconds(value.it_value));
  const std::uint64_t interval = TRY(to_nanoseconds(value.it_interval));
  setting.interval = interval;
  if (first == 0) return setting;
  setting.first = TRY(deadline_of(clock, first, is_absolute ? TimeKind::absolute : TimeKind::relative));
  return setting;
}

}  // namespace

SyscallResult sys_eventfd(const SyscallArguments& arguments) {
  return make_eventfd(arguments.get<std::uint32_t>(0), 0);
}

SyscallResult sys_eventfd2(const SyscallArguments& arguments) {
  return make_eventfd(arguments.get<std::uint32_t>(0), arguments.get<std::uint32_t>(1));
}

SyscallResult sys_timerfd_create(const SyscallArguments& arguments) {
  const auto clock = arguments.get<clockid_t>(0);
  const auto flags = arguments.get<std::uint32_t>(1);
  if ((flags & ~static_cast<std::uint32_t>(TFD_CLOEXEC | TFD_NONBLOCK)) != 0) return error(EINVAL);
  // Those that wake a machine up need a capability.
  if (clock == CLOCK_REALTIME_ALARM || clock == CLOCK_BOOTTIME_ALARM) return error(EPERM);
  if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME) return error(EINVAL);
  Ref<FileTimer> timer = make_ref<FileTimer>();
  if (!timer) return error(ENOMEM);
  return TRY(add_new_file(make_ref<TimerFile>(std::move(timer), clock), O_RDWR, flags));
}

SyscallResult sys_timerfd_settime(const SyscallArguments& arguments) {
  const auto flags = arguments.get<std::uint32_t>(1);
  const auto value = TRY(copy_in<itimerspec>(arguments.values[2]));
  if ((flags & ~static_cast<std::uint32_t>(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET)) != 0) return error(EINVAL);
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  TimerFile* const timer = timer_file_of(*file);
  if (timer == nullptr) return error(EINVAL);
  const auto setting = TRY(to_setting(value, timer->clock(), (flags & TFD_TIMER_ABSTIME) != 0));
  const itimerspec before = to_itimerspec(timer->timer().set(setting));
  if (arguments.values[3] != 0) TRY_VOID(copy_out(arguments.values[3], before));
  return 0;
}

SyscallResult sys_timerfd_gettime(const SyscallArguments& arguments) {
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  TimerFile* const timer = timer_file_of(*file);
  if (timer == nullptr) return error(EINVAL);
  TRY_VOID(copy_out(arguments.values[1], to_itimerspec(timer->timer().setting())));
  return 0;
}

}  // namespace belljar::kernel
