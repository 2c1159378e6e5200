// Limits and use of resources: getrlimit(2), getrusage(2), times(2).
#include <sys/resource.h>
#include <sys/times.h>

#include "kernel/fs/fd_table.h"
#include "kernel/mm/user_memory.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/task/memory_use.h"
#include "kernel/task/sandbox_facts.h"
#include "kernel/time/clocks.h"
#include "kernel/time/cpu_times.h"
#include "kernel/time/interval_timers.h"

namespace belljar::kernel {
namespace {

constexpr std::uint64_t kTicksPerSecond = 100;   // USER_HZ
constexpr rlim_t kDescriptorsMax = 1024 * 1024;  // fs.nr_open

// setrlimit(2): hard limits can only be lowered, as nobody here has a capability.
SysResult<void> check_limit(int resource, const rlimit& before, const rlimit& wanted) {
  if (wanted.rlim_cur > wanted.rlim_max) return error(EINVAL);
  if (resource == RLIMIT_NOFILE && wanted.rlim_max > kDescriptorsMax) return error(EPERM);
  if (wanted.rlim_max > before.rlim_max) return error(EPERM);
  return {};
}

// Tells the parts that keep a copy.
void apply_limit(Process& process, int resource, const rlimit& limit) {
  if (resource == RLIMIT_CPU) apply_cpu_limit(process);
  if (resource != RLIMIT_NOFILE) return;
  for (Task* task = process.first_task; task != nullptr; task = task->next_in_process) {
    if (task->files) task->files->set_limit(static_cast<std::uint32_t>(limit.rlim_cur));
  }
}

// prlimit(2): the real user and group must be all of the other's.
bool may_limit(const Task& other) {
  const Credentials& own = current().credentials;
  const Credentials& theirs = other.credentials;
  return own.uid == theirs.uid && own.uid == theirs.euid && own.uid == theirs.suid && own.gid == theirs.gid &&
         own.gid == theirs.egid && own.gid == theirs.sgid;
}

// Reads and replaces a limit at once. `wanted` may be null.
SysResult<rlimit> exchange_limit(Pid pid, std::uint32_t resource, const rlimit* wanted) {
  if (resource >= RLIM_NLIMITS) return error(EINVAL);
  const int index = static_cast<int>(resource);
  const LockGuard guard(tasks_lock());
  Task* const task = pid == 0 ? &current() : find_task(pid);
  if (task == nullptr) return error(ESRCH);
  if (task->process != current().process && !may_limit(*task)) return error(EPERM);
  Process& process = *task->process;
  const rlimit before = process.limits[index];
  if (wanted != nullptr) {
    TRY_VOID(check_limit(index, before, *wanted));
    process.limits[index] = *wanted;
    apply_limit(process, index, *wanted);
  }
  return before;
}

std::uint64_t to_ticks(std::uint64_t nanoseconds) {
  return nanoseconds / (kNanosecondsPerSecond / kTicksPerSecond);
}

CpuTimes times_of_children() {
  const LockGuard guard(tasks_lock());
  return current_process().dead_children;
}

std::uint64_t memory_peak_of_children() {
  const LockGuard guard(tasks_lock());
  return current_process().children_peak_bytes;
}

}  // namespace

SyscallResult sys_getrlimit(const SyscallArguments& arguments) {
  const rlimit now = TRY(exchange_limit(0, arguments.get<std::uint32_t>(0), nullptr));
  TRY_VOID(copy_out(arguments.get<UserAddress>(1), now));
  return 0;
}

SyscallResult sys_setrlimit(const SyscallArguments& arguments) {
  const auto wanted = TRY(copy_in<rlimit>(arguments.get<UserAddress>(1)));
  TRY(exchange_limit(0, arguments.get<std::uint32_t>(0), &wanted));
  return 0;
}

SyscallResult sys_prlimit64(const SyscallArguments& arguments) {
  const auto new_address = arguments.get<UserAddress>(2);
  const auto old_address = arguments.get<UserAddress>(3);
  rlimit wanted{};
  if (new_address != 0) wanted = TRY(copy_in<rlimit>(new_address));
  const rlimit before =
      TRY(exchange_limit(arguments.get<Pid>(0), arguments.get<std::uint32_t>(1), new_address == 0 ? nullptr : &wanted));
  if (old_address != 0) TRY_VOID(copy_out(old_address, before));
  return 0;
}

SyscallResult sys_getrusage(const SyscallArguments& arguments) {
  CpuTimes times;
  std::uint64_t peak = memory_peak_of(current_process());
  switch (arguments.get<int>(0)) {
    case RUSAGE_SELF:
      times = cpu_times_of(current_process());
      break;
    case RUSAGE_CHILDREN:
      times = times_of_children();
      peak = memory_peak_of_children();
      break;
    case RUSAGE_THREAD:
      times = cpu_times_of(current());
      break;
    default:
      return error(EINVAL);
  }
  rusage use{};
  use.ru_utime = to_timeval(times.user_ns);
  use.ru_stime = to_timeval(times.system_ns);
  use.ru_maxrss = static_cast<long>(peak / 1024);
  TRY_VOID(copy_out(arguments.get<UserAddress>(1), use));
  return 0;
}

SyscallResult sys_times(const SyscallArguments& arguments) {
  if (const auto to = arguments.get<UserAddress>(0)) {
    const CpuTimes own = cpu_times_of(current_process());
    const CpuTimes children = times_of_children();
    const tms times{static_cast<clock_t>(to_ticks(own.user_ns)), static_cast<clock_t>(to_ticks(own.system_ns)),
                    static_cast<clock_t>(to_ticks(children.user_ns)),
                    static_cast<clock_t>(to_ticks(children.system_ns))};
    TRY_VOID(copy_out(to, times));
  }
  return to_ticks(now_ns() - sandbox_facts().started_ns);
}

}  // namespace belljar::kernel
