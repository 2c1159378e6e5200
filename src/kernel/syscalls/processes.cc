#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "kernel/arena/layout.h"
#include "kernel/mm/user_memory.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/task/exec.h"
#include "kernel/task/exit.h"
#include "kernel/task/memory_use.h"
#include "kernel/task/process_table.h"
#include "kernel/task/signals.h"
#include "kernel/time/clocks.h"

namespace belljar::kernel {
namespace {

constexpr int kStopped = 0x7f;
constexpr int kContinued = 0xffff;
constexpr int kWaitFlags = WNOHANG | WUNTRACED | WEXITED | WCONTINUED | WNOWAIT | __WNOTHREAD | __WALL | __WCLONE;

// Whom a wait is for (waitid(2)).
struct WaitFor {
  idtype_t kind = P_ALL;
  Pid id = 0;
  int options = 0;
};

struct Waited {
  Pid pid = 0;  // 0: nobody has changed yet
  std::uint32_t uid = 0;
  int status = 0;  // as wait(2) tells it
  CpuTimes used;
  std::uint64_t memory_peak_bytes = 0;
};

bool is_meant(const WaitFor& wanted, const Process& child) {
  if (wanted.kind == P_PID && child.pid != wanted.id) return false;
  if (wanted.kind == P_PGID && (child.group == nullptr || child.group->id != wanted.id)) return false;
  const bool is_clone = child.exit_signal != SIGCHLD;
  return (wanted.options & __WALL) != 0 || is_clone == ((wanted.options & __WCLONE) != 0);
}

Waited describe(const Process& child, int status) {
  Waited waited;
  waited.pid = child.pid;
  waited.uid = child.leader->credentials.uid;
  waited.status = status;
  waited.used = child.dead_threads;
  waited.used.user_ns += child.dead_children.user_ns;
  waited.used.system_ns += child.dead_children.system_ns;
  waited.memory_peak_bytes = memory_peak_with_children(child);
  return waited;
}

// A change of this child that is asked for. Takes it, unless WNOWAIT.
Waited take_change(const WaitFor& wanted, Process& child) {
  const bool keeps = (wanted.options & WNOWAIT) != 0;
  if (child.state == ProcessState::zombie && (wanted.options & WEXITED) != 0) {
    const Waited waited = describe(child, child.wait_status);
    if (!keeps) reap(child);
    return waited;
  }
  if (child.state == ProcessState::stopped && child.stop_signal != 0 && (wanted.options & WUNTRACED) != 0) {
    const Waited waited = describe(child, child.stop_signal << 8 | kStopped);
    if (!keeps) child.stop_signal = 0;
    return waited;
  }
  if (child.was_continued && (wanted.options & WCONTINUED) != 0) {
    const Waited waited = describe(child, kContinued);
    if (!keeps) child.was_continued = false;
    return waited;
  }
  return {};
}

// Tasks lock held. ECHILD where there is no child that is meant.
SysResult<Waited> look_for_change(const WaitFor& wanted) {
  bool has_child = false;
  for (Process* child = current_process().first_child; child != nullptr;) {
    Process* const next = child->next_sibling;
    if (is_meant(wanted, *child)) {
      has_child = true;
      const Waited waited = take_change(wanted, *child);
      if (waited.pid != 0) return waited;
    }
    child = next;
  }
  if (!has_child) return error(ECHILD);
  return Waited{};
}

SysResult<Waited> wait_for(const WaitFor& wanted) {
  {
    LockGuard guard(tasks_lock());
    const Waited waited = TRY(look_for_change(wanted));
    if (waited.pid != 0 || (wanted.options & WNOHANG) != 0) return waited;
  }
  Waiting waiting(current_process().child_events);
  while (true) {
    {
      LockGuard guard(tasks_lock());
      const Waited waited = TRY(look_for_change(wanted));
      if (waited.pid != 0) return waited;
    }
    TRY_VOID(waiting.sleep());
  }
}

siginfo_t info_of(const Waited& waited) {
  siginfo_t info{};
  if (waited.pid == 0) return info;
  info.si_signo = SIGCHLD;
  info.si_pid = waited.pid;
  info.si_uid = waited.uid;
  if (waited.status == kContinued) {
    info.si_code = CLD_CONTINUED;
    info.si_status = SIGCONT;
  } else if (WIFSTOPPED(waited.status)) {
    info.si_code = CLD_STOPPED;
    info.si_status = WSTOPSIG(waited.status);
  } else if (WIFEXITED(waited.status)) {
    info.si_code = CLD_EXITED;
    info.si_status = WEXITSTATUS(waited.status);
  } else {
    info.si_code = CLD_KILLED;
    info.si_status = WTERMSIG(waited.status);
  }
  return info;
}

rusage rusage_of(const Waited& waited) {
  rusage use{};
  use.ru_utime = to_timeval(waited.used.user_ns);
  use.ru_stime = to_timeval(waited.used.system_ns);
  use.ru_maxrss = static_cast<long>(waited.memory_peak_bytes / 1024);
  return use;
}

SysResult<Process*> process_or_self(Pid pid) {
  if (pid < 0) return error(EINVAL);
  if (pid == 0) return &current_process();
  Process* const process = find_process(pid);
  if (process == nullptr || process->state == ProcessState::zombie) return error(ESRCH);
  return process;
}

}  // namespace

SyscallResult sys_getpid(const SyscallArguments&) {
  return static_cast<std::uint64_t>(current_process().pid);
}

SyscallResult sys_getppid(const SyscallArguments&) {
  LockGuard guard(tasks_lock());
  return static_cast<std::uint64_t>(current_process().parent->pid);
}

SyscallResult sys_gettid(const SyscallArguments&) {
  return static_cast<std::uint64_t>(current().tid);
}

SyscallResult sys_exit(const SyscallArguments& arguments) {
  Process& process = current_process();
  {
    LockGuard guard(tasks_lock());
    if (process.task_count == 1 && !process.is_exiting) {
      process.is_exiting = true;
      process.wait_status = (arguments.get<int>(0) & 0xff) << 8;
    }
  }
  exit_task();
}

SyscallResult sys_exit_group(const SyscallArguments& arguments) {
  {
    LockGuard guard(tasks_lock());
    begin_exit(current_process(), (arguments.get<int>(0) & 0xff) << 8);
  }
  exit_task();
}

SyscallResult sys_wait4(const SyscallArguments& arguments) {
  const Pid pid = arguments.get<Pid>(0);
  const int options = arguments.get<int>(2);
  if ((options & ~(WNOHANG | WUNTRACED | WCONTINUED | __WNOTHREAD | __WCLONE | __WALL)) != 0) return error(EINVAL);
  WaitFor wanted{P_ALL, 0, options | WEXITED};
  if (pid > 0) {
    wanted.kind = P_PID;
    wanted.id = pid;
  } else if (pid != -1) {
    if (pid == INT32_MIN) return error(ESRCH);
    wanted.kind = P_PGID;
    wanted.id = pid == 0 ? current_process().group->id : -pid;
  }
  const Waited waited = TRY(wait_for(wanted));
  if (waited.pid != 0) {
    if (arguments.values[1] != 0) TRY_VOID(copy_out(arguments.values[1], waited.status));
    if (arguments.values[3] != 0) TRY_VOID(copy_out(arguments.values[3], rusage_of(waited)));
  }
  return static_cast<std::uint64_t>(waited.pid);
}

SyscallResult sys_waitid(const SyscallArguments& arguments) {
  const int options = arguments.get<int>(3);
  if ((options & ~kWaitFlags) != 0 || (options & (WEXITED | WSTOPPED | WCONTINUED)) == 0) return error(EINVAL);
  WaitFor wanted{arguments.get<idtype_t>(0), arguments.get<Pid>(1), options};
  Ref<File> pidfd;
  switch (wanted.kind) {
    case P_ALL:
      break;
    case P_PID:
      if (wanted.id <= 0) return error(EINVAL);
      break;
    case P_PGID:
      if (wanted.id < 0) return error(EINVAL);
      if (wanted.id == 0) wanted.id = current_process().group->id;
      break;
    case P_PIDFD:
      pidfd = TRY(current().files->get(wanted.id));
      wanted.kind = P_PID;
      wanted.id = pidfd->process_id();
      if (wanted.id == 0) return error(EBADF);
      break;
    default:
      return error(EINVAL);
  }
  const Waited waited = TRY(wait_for(wanted));
  if (arguments.values[2] != 0) TRY_VOID(copy_out(arguments.values[2], info_of(waited)));
  if (arguments.values[4] != 0) TRY_VOID(copy_out(arguments.values[4], rusage_of(waited)));
  return 0ULL;
}

SyscallResult sys_getpgid(const SyscallArguments& arguments) {
  LockGuard guard(tasks_lock());
  return static_cast<std::uint64_t>(TRY(process_or_self(arguments.get<Pid>(0)))->group->id);
}

SyscallResult sys_getpgrp(const SyscallArguments&) {
  LockGuard guard(tasks_lock());
  return static_cast<std::uint64_t>(current_process().group->id);
}

SyscallResult sys_getsid(const SyscallArguments& arguments) {
  LockGuard guard(tasks_lock());
  return static_cast<std::uint64_t>(TRY(process_or_self(arguments.get<Pid>(0)))->group->session->id);
}

SyscallResult sys_setpgid(const SyscallArguments& arguments) {
  if (arguments.get<Pid>(1) < 0) return error(EINVAL);
  LockGuard guard(tasks_lock());
  Process& own = current_process();
  Process& process = *TRY(process_or_self(arguments.get<Pid>(0)));
  if (&process != &own) {
    if (process.parent != &own) return error(ESRCH);
    if (process.has_executed) return error(EACCES);
    if (process.group->session != own.group->session) return error(EPERM);
  }
  if (process.group->session->id == process.pid) return error(EPERM);
  const Pid group_id = arguments.get<Pid>(1) == 0 ? process.pid : arguments.get<Pid>(1);
  if (group_id != process.pid) {
    const ProcessGroup* const group = find_group(group_id);
    if (group == nullptr || group->session != process.group->session) return error(EPERM);
  }
  TRY_VOID(enter_group(process, group_id, process.group->session));
  return 0ULL;
}

SyscallResult sys_setsid(const SyscallArguments&) {
  LockGuard guard(tasks_lock());
  Process& process = current_process();
  if (find_group(process.pid) != nullptr) return error(EPERM);
  TRY_VOID(enter_group(process, process.pid, nullptr));
  return static_cast<std::uint64_t>(process.pid);
}

SyscallResult sys_set_tid_address(const SyscallArguments& arguments) {
  current().clear_child_tid = arguments.values[0];
  return static_cast<std::uint64_t>(current().tid);
}

SyscallResult sys_arch_prctl(const SyscallArguments& arguments) {
  std::uint64_t base = 0;
  switch (arguments.get<int>(0)) {
    case ARCH_SET_FS:
      if (arguments.values[1] >= kGuestEnd) return error(EPERM);
      asm volatile("wrfsbase %0" : : "r"(arguments.values[1]));
      return 0ULL;
    case ARCH_GET_FS:
      asm volatile("rdfsbase %0" : "=r"(base));
      TRY_VOID(copy_out(arguments.values[1], base));
      return 0ULL;
    default:
      return error(EINVAL);
  }
}

}  // namespace belljar::kernel
