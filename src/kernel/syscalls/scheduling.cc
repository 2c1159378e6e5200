// Priorities, policies and CPUs of threads (sched(7)). They are checked and noted; the host schedules as its own rules
// say.
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>

#include "kernel/mm/user_memory.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/task/sandbox_facts.h"
#include "kernel/time/clocks.h"

namespace belljar::kernel {
namespace {

constexpr int kNiceLowest = -20;
constexpr int kNiceHighest = 19;
constexpr std::uint64_t kTimeSlice = 4'000'000;  // of SCHED_OTHER, as sched_rr_get_interval(2) tells it

// kill(2)-like: a task whose settings another may change belongs to the same user.
bool is_own(const Task& task) {
  const std::uint32_t who = current().credentials.euid;
  return who == task.credentials.euid || who == task.credentials.uid;
}

// The tasks that getpriority(2) and setpriority(2) name; ESRCH where there is none. The tasks lock is held.
template <typename Visit>
SysResult<void> for_each_named(int which, int who, Visit visit) {
  bool found = false;
  const auto visit_process = [&](Process& process) {
    for (Task* task = process.first_task; task != nullptr; task = task->next_in_process) {
      found = true;
      visit(*task);
    }
  };
  if (which == PRIO_PROCESS) {
    Task* const task = who == 0 ? &current() : find_task(who);
    if (task == nullptr) return error(ESRCH);
    visit(*task);
    return {};
  }
  const std::uint32_t uid = who == 0 ? current().credentials.uid : static_cast<std::uint32_t>(who);
  const Pid group = who == 0 ? group_id_of(current_process()) : who;
  for (Process* process = next_process(0); process != nullptr; process = next_process(process->pid)) {
    const bool is_named = which == PRIO_PGRP ? group_id_of(*process) == group
                                             : process->leader != nullptr && process->leader->credentials.uid == uid;
    if (is_named) visit_process(*process);
  }
  if (!found) return error(ESRCH);
  return {};
}

SysResult<void> set_nice(Task& task, int nice) {
  const Credentials& own = current().credentials;
  if (own.euid != task.credentials.euid && own.euid != task.credentials.uid) return error(EPERM);
  // RLIMIT_NICE counts from 1 (nice 19) to 40 (nice -20).
  const rlim_t ceiling = task.process->limits[RLIMIT_NICE].rlim_cur;
  if (nice<task.settings.nice&& static_cast<rlim_t>(20 - nice)> ceiling) return error(EACCES);
  task.settings.nice = nice;
  return {};
}

bool is_policy(int policy) {
  return policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE;
}

bool is_realtime_policy(int policy) {
  return policy == SCHED_FIFO || policy == SCHED_RR;
}

// sched_setscheduler(2) and sched_setparam(2): real-time needs a right that nobody here has.
SyscallResult set_policy(Pid pid, int policy, bool keeps_policy, UserAddress parameter_address) {
  if (pid < 0 || parameter_address == 0) return error(EINVAL);
  const auto parameter = TRY(copy_in<sched_param>(parameter_address));
  const LockGuard guard(tasks_lock());
  Task* const task = pid == 0 ? &current() : find_task(pid);
  if (task == nullptr) return error(ESRCH);
  if (keeps_policy) policy = task->settings.policy;
  policy &= ~SCHED_RESET_ON_FORK;
  if (is_realtime_policy(policy)) {
    return error(parameter.sched_priority < 1 || parameter.sched_priority > 99 ? EINVAL : EPERM);
  }
  if (!is_policy(policy) || parameter.sched_priority != 0) return error(EINVAL);
  if (!is_own(*task)) return error(EPERM);
  task->settings.policy = policy;
  return 0;
}

// The settings of a task, by value; for calls that only look.
SysResult<TaskSettings> settings_of(Pid pid) {
  if (pid < 0) return error(EINVAL);
  if (pid == 0) return current().settings;
  const LockGuard guard(tasks_lock());
  const Task* const task = find_task(pid);
  if (task == nullptr) return error(ESRCH);
  return task->settings;
}

struct CpuSet {
  static constexpr std::size_t kWords = sizeof(TaskSettings::affinity) / sizeof(std::uint64_t);
  std::uint64_t words[kWords] = {};

  static std::uint32_t count() { return std::min<std::uint32_t>(sandbox_facts().cpu_count, kWords * 64); }
  // What sched_getaffinity(2) fills: whole words that hold every CPU.
  static std::size_t size() { return (count() + 63) / 64 * sizeof(std::uint64_t); }
  static CpuSet all() {
    CpuSet set;
    for (std::uint32_t cpu = 0; cpu < count(); ++cpu) set.words[cpu / 64] |= 1ULL << cpu % 64;
    return set;
  }
};

}  // namespace

SyscallResult sys_getpriority(const SyscallArguments& arguments) {
  const auto which = arguments.get<int>(0);
  if (which < PRIO_PROCESS || which > PRIO_USER) return error(EINVAL);
  const LockGuard guard(tasks_lock());
  std::uint64_t highest = 0;
  TRY_VOID(for_each_named(which, arguments.get<int>(1), [&](const Task& task) {
    highest = std::max(highest, static_cast<std::uint64_t>(20 - task.settings.nice));
  }));
  return highest;
}

SyscallResult sys_setpriority(const SyscallArguments& arguments) {
  const auto which = arguments.get<int>(0);
  const int nice = std::clamp(arguments.get<int>(2), kNiceLowest, kNiceHighest);
  if (which < PRIO_PROCESS || which > PRIO_USER) return error(EINVAL);
  const LockGuard guard(tasks_lock());
  SysResult<void> result;
  TRY_VOID(for_each_named(which, arguments.get<int>(1), [&](Task& task) {
    if (const auto set = set_nice(task, nice); !set) result = set;
  }));
  TRY_VOID(result);
  return 0;
}

SyscallResult sys_sched_setaffinity(const SyscallArguments& arguments) {
  const auto pid = arguments.get<Pid>(0);
  CpuSet wanted;
  const std::size_t size = std::min<std::size_t>(arguments.get<std::uint32_t>(1), sizeof wanted.words);
  TRY_VOID(copy_in(wanted.words, arguments.get<UserAddress>(2), size));
  const CpuSet all = CpuSet::all();
  bool is_empty = true;
  for (std::size_t word = 0; word < CpuSet::kWords; ++word) {
    wanted.words[word] &= all.words[word];
    is_empty = is_empty && wanted.words[word] == 0;
  }
  const LockGuard guard(tasks_lock());
  Task* const task = pid == 0 ? &current() : find_task(pid);
  if (task == nullptr) return error(ESRCH);
  if (!is_own(*task)) return error(EPERM);
  if (is_empty) return error(EINVAL);
  std::copy(std::begin(wanted.words), std::end(wanted.words), task->settings.affinity);
  return 0;
}

SyscallResult sys_sched_getaffinity(const SyscallArguments& arguments) {
  const auto size = arguments.get<std::uint32_t>(1);
  if (std::uint64_t{size} * 8 < CpuSet::count() || size % sizeof(std::uint64_t) != 0) return error(EINVAL);
  const auto pid = arguments.get<Pid>(0);
  if (pid < 0) return error(ESRCH);
  const TaskSettings settings = TRY(settings_of(pid));
  CpuSet set = CpuSet::all();
  bool is_set = false;
  for (const std::uint64_t word : settings.affinity) is_set = is_set || word != 0;
  if (is_set) std::copy(std::begin(settings.affinity), std::end(settings.affinity), set.words);
  const std::size_t told = std::min<std::size_t>(size, CpuSet::size());
  TRY_VOID(copy_out(arguments.get<UserAddress>(2), set.words, told));
  return told;
}

SyscallResult sys_sched_setparam(const SyscallArguments& arguments) {
  return set_policy(arguments.get<Pid>(0), 0, true, arguments.get<UserAddress>(1));
}

SyscallResult sys_sched_setscheduler(const SyscallArguments& arguments) {
  const auto policy = arguments.get<int>(1);
  if (policy < 0) return error(EINVAL);
  return set_policy(arguments.get<Pid>(0), policy, false, arguments.get<UserAddress>(2));
}

SyscallResult sys_sched_getscheduler(const SyscallArguments& arguments) {
  return static_cast<std::uint64_t>(TRY(settings_of(arguments.get<Pid>(0))).policy);
}

SyscallResult sys_sched_getparam(const SyscallArguments& arguments) {
  if (arguments.get<UserAddress>(1) == 0) return error(EINVAL);
  TRY(settings_of(arguments.get<Pid>(0)));
  TRY_VOID(copy_out(arguments.get<UserAddress>(1), sched_param{}));
  return 0;
}

SyscallResult sys_sched_get_priority_max(const SyscallArguments& arguments) {
  const auto policy = arguments.get<int>(0);
  if (is_realtime_policy(policy)) return 99;
  if (!is_policy(policy)) return error(EINVAL);
  return 0;
}

SyscallResult sys_sched_get_priority_min(const SyscallArguments& arguments) {
  const auto policy = arguments.get<int>(0);
  if (is_realtime_policy(policy)) return 1;
  if (!is_policy(policy)) return error(EINVAL);
  return 0;
}

SyscallResult sys_sched_rr_get_interval(const SyscallArguments& arguments) {
  TRY(settings_of(arguments.get<Pid>(0)));
  TRY_VOID(copy_out(arguments.get<UserAddress>(1), to_timespec(kTimeSlice)));
  return 0;
}

}  // namespace belljar::kernel
