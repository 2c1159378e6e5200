#include "kernel/task/signals.h"

#include <errno.h>
#include <linux/futex.h>
#include <time.h>

#include "kernel/entry/thread_state.h"
#include "kernel/host/calls.h"
#include "kernel/mm/user_memory.h"
#include "kernel/syscalls/signal_rules.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/task/process_table.h"
#include "kernel/time/clocks.h"

namespace belljar::kernel {

constexpr int kSignalsMost = 64;

bool is_signal(int signal) {
  return signal >= 1 && signal <= kSignalsMost;
}

bool may_signal(const Credentials& who, const Process& target, int signal) {
  if (who.euid == 0 || &target == &current_process()) return true;
  if (target.leader == nullptr) return false;
  const Credentials& other = target.leader->credentials;
  if (who.euid == other.uid || who.euid == other.suid || who.uid == other.uid || who.uid == other.suid) return true;
  return signal == SIGCONT && target.group != nullptr && current_process().group->session == target.group->session;
}

siginfo_t user_signal(int signal, int code) {
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = code;
  info.si_pid = current_process().pid;
  info.si_uid = current().credentials.uid;
  return info;
}

namespace {

constexpr std::size_t kSetSize = sizeof(SignalSet);
constexpr std::uint64_t kMinimumStack = 2048;  // MINSIGSTKSZ

// kill(2) with a pid that stands for several processes. Tasks lock held.
SyscallResult signal_many(Pid pid, const siginfo_t& info) {
  const Credentials& who = current().credentials;
  bool found = false;
  bool sent = false;
  const auto send = [&](Process& process) {
    found = true;
    if (!may_signal(who, process, info.si_signo)) return;
    sent = true;
    send_signal_locked(process, info);
  };
  if (pid == -1) {
    for (Process* process = next_process(kInitPid); process != nullptr; process = next_process(process->pid)) {
      if (process != &current_process()) send(*process);
    }
  } else {
    ProcessGroup* const group = pid == 0 ? current_process().group : find_group(-pid);
    for (Process* process = group == nullptr ? nullptr : group->first_process; process != nullptr;) {
      Process* const next = process->next_in_group;
      send(*process);
      process = next;
    }
  }
  if (sent) return 0ULL;
  return error(found ? EPERM : ESRCH);
}

SyscallResult signal_process(Pid pid, const siginfo_t& info) {
  LockGuard guard(tasks_lock());
  if (pid <= 0) return signal_many(pid, info);
  Process* process = find_process(pid);
  if (process == nullptr) {
    const Task* const task = find_task(pid);
    if (task == nullptr) return error(ESRCH);
    process = task->process;
  }
  if (!may_signal(current().credentials, *process, info.si_signo)) return error(EPERM);
  send_signal_locked(*process, info);
  return 0ULL;
}

SyscallResult signal_task(Pid group, Pid tid, const siginfo_t& info) {
  if (tid <= 0 || (info.si_signo != 0 && !is_signal(info.si_signo))) return error(EINVAL);
  LockGuard guard(tasks_lock());
  Task* const task = find_task(tid);
  if (task == nullptr || task->is_dead || (group > 0 && task->process->pid != group)) return error(ESRCH);
  if (!may_signal(current().credentials, *task->process, info.si_signo)) return error(EPERM);
  send_signal_to_task_locked(*task, info);
  return 0ULL;
}

// What a program may say of its own signals (rt_sigqueueinfo(2)): not that the kernel or kill(2) sent them.
SysResult<siginfo_t> read_info(UserAddress from, int signal, bool is_own) {
  siginfo_t info = TRY(copy_in<siginfo_t>(from));
  info.si_signo = signal;
  if ((info.si_code >= 0 || info.si_code == SI_TKILL) && !is_own) return error(EPERM);
  return info;
}

SysResult<SignalSet> read_mask(UserAddress from, std::uint64_t size) {
  if (size != kSetSize) return error(EINVAL);
  return copy_in<SignalSet>(from);
}

}  // namespace

SyscallResult sys_rt_sigaction(const SyscallArguments& arguments) {
  const int signal = arguments.get<int>(0);
  if (!is_signal(signal) || arguments.values[3] != kSetSize) return error(EINVAL);
  Process& process = current_process();
  SignalAction action;
  if (arguments.values[1] != 0) {
    if ((kNeverBlocked & signal_bit(signal)) != 0) return error(EINVAL);
    action = TRY(copy_in<SignalAction>(arguments.values[1]));
    action.mask &= ~kNeverBlocked;
  }
  SignalAction old;
  {
    LockGuard guard(tasks_lock());
    old = process.actions->actions[signal];
    if (arguments.values[1] != 0) {
      process.actions->actions[signal] = action;
      const bool ignores = action.handler == reinterpret_cast<std::uint64_t>(SIG_IGN) ||
                           (action.handler == reinterpret_cast<std::uint64_t>(SIG_DFL) &&
                            default_action(signal) == DefaultAction::ignore);
      if (ignores) {
        drop_signals(process.pending, signal_bit(signal));
        for (Task* task = process.first_task; task != nullptr; task = task->next_in_process) {
          drop_signals(task->pending, signal_bit(signal));
        }
      }
    }
  }
  if (arguments.values[2] != 0) TRY_VOID(copy_out(arguments.values[2], old));
  return 0ULL;
}

SyscallResult sys_rt_sigprocmask(const SyscallArguments& arguments) {
  if (arguments.values[3] != kSetSize) return error(EINVAL);
  const SignalSet old = current().blocked.load();
  if (arguments.values[1] != 0) {
    const SignalSet set = TRY(copy_in<SignalSet>(arguments.values[1]));
    switch (arguments.get<int>(0)) {
      case SIG_BLOCK:
        set_blocked(old | set);
        break;
      case SIG_UNBLOCK:
        set_blocked(old & ~set);
        break;
      case SIG_SETMASK:
        set_blocked(set);
        break;
      default:
        return error(EINVAL);
    }
  }
  if (arguments.values[2] != 0) TRY_VOID(copy_out(arguments.values[2], old));
  return 0ULL;
}

SyscallResult sys_rt_sigpending(const SyscallArguments& arguments) {
  if (arguments.values[1] > kSetSize) return error(EINVAL);
  SignalSet pending = 0;
  {
    LockGuard guard(tasks_lock());
    pending = pending_signals(current()) & current().blocked.load();
  }
  TRY_VOID(copy_out(arguments.values[0], &pending, arguments.values[1]));
  return 0ULL;
}

SyscallResult sys_rt_sigtimedwait(const SyscallArguments& arguments) {
  const SignalSet wanted = TRY(read_mask(arguments.values[0], arguments.values[3])) & ~kNeverBlocked;
  Deadline deadline = kNever;
  if (arguments.values[2] != 0) {
    const std::uint64_t limit = TRY(to_nanoseconds(TRY(copy_in<timespec>(arguments.values[2]))));
    deadline = TRY(deadline_of(CLOCK_MONOTONIC, limit, TimeKind::relative));
  }
  Task& task = current();
  siginfo_t info{};
  Waiting waiting(task.process->signal_events);
  while (info.si_signo == 0) {
    {
      LockGuard guard(tasks_lock());
      info = take_signal(task, wanted);
    }
    if (info.si_signo != 0) break;
    const auto slept = waiting.sleep(deadline);
    if (slept) continue;
    const int code = value_of(slept.error());
    return error(code == ETIMEDOUT ? EAGAIN : code == kRestart ? EINTR : code);
  }
  if (arguments.values[1] != 0) TRY_VOID(copy_out(arguments.values[1], info));
  return static_cast<std::uint64_t>(info.si_signo);
}

// The mask of the wait ends with the call: a handler that it lets in sees the old one restored afterwards.
SyscallResult sys_rt_sigsuspend(const SyscallArguments& arguments) {
  const SignalSet mask = TRY(read_mask(arguments.values[0], arguments.values[1]));
  Task& task = current();
  task.saved_blocked = task.blocked.load();
  task.must_restore_blocked = true;
  set_blocked(mask);
  prepare_to_sleep();
  while (true) {
    const auto slept = sleep_until_woken(kNever);
    if (!slept) break;
  }
  task.has_work.store(1);
  return error(kRestartNoHandler);
}

SyscallResult sys_pause(const SyscallArguments&) {
  prepare_to_sleep();
  while (sleep_until_woken(kNever)) {
  }
  return error(kRestartNoHandler);
}

SyscallResult sys_sigaltstack(const SyscallArguments& arguments) {
  Task& task = current();
  const stack_t old = task.alternate_stack;
  const auto base = reinterpret_cast<std::uint64_t>(old.ss_sp);
  const std::uint64_t stack = thread_state().frame->rsp;
  const bool is_on = (old.ss_flags & SS_DISABLE) == 0 && stack > base && stack - base <= old.ss_size;
  if (arguments.values[0] != 0) {
    stack_t wanted = TRY(copy_in<stack_t>(arguments.values[0]));
    if (is_on) return error(EPERM);
    constexpr int kAutoDisarm = static_cast<int>(1U << 31);
    if ((wanted.ss_flags & ~(SS_DISABLE | SS_ONSTACK | kAutoDisarm)) != 0) return error(EINVAL);
    if ((wanted.ss_flags & SS_DISABLE) != 0) {
      wanted = {nullptr, SS_DISABLE, 0};
    } else if (wanted.ss_size < kMinimumStack) {
      return error(ENOMEM);
    }
    wanted.ss_flags &= SS_DISABLE;
    task.alternate_stack = wanted;
  }
  if (arguments.values[1] != 0) {
    stack_t told = old;
    if (is_on) told.ss_flags |= SS_ONSTACK;
    TRY_VOID(copy_out(arguments.values[1], told));
  }
  return 0ULL;
}

SyscallResult sys_kill(const SyscallArguments& arguments) {
  const int signal = arguments.get<int>(1);
  if (signal != 0 && !is_signal(signal)) return error(EINVAL);
  return signal_process(arguments.get<Pid>(0), user_signal(signal, SI_USER));
}

SyscallResult sys_tkill(const SyscallArguments& arguments) {
  return signal_task(0, arguments.get<Pid>(0), user_signal(arguments.get<int>(1), SI_TKILL));
}

SyscallResult sys_tgkill(const SyscallArguments& arguments) {
  if (arguments.get<Pid>(0) <= 0) return error(EINVAL);
  return signal_task(arguments.get<Pid>(0), arguments.get<Pid>(1), user_signal(arguments.get<int>(2), SI_TKILL));
}

SyscallResult sys_rt_sigqueueinfo(const SyscallArguments& arguments) {
  const Pid pid = arguments.get<Pid>(0);
  const int signal = arguments.get<int>(1);
  if (signal != 0 && !is_signal(signal)) return error(EINVAL);
  return signal_process(pid, TRY(read_info(arguments.values[2], signal, pid == current_process().pid)));
}

SyscallResult sys_rt_tgsigqueueinfo(const SyscallArguments& arguments) {
  const Pid pid = arguments.get<Pid>(0);
  const int signal = arguments.get<int>(2);
  const siginfo_t info = TRY(read_info(arguments.values[3], signal, pid == current_process().pid));
  return signal_task(pid, arguments.get<Pid>(1), info);
}

}  // namespace belljar::kernel
