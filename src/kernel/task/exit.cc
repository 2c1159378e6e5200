#include "kernel/task/exit.h"

#include <linux/futex.h>
#include <sys/wait.h>

#include <algorithm>

#include "kernel/broker/broker_client.h"
#include "kernel/broker/console_terminal.h"
#include "kernel/entry/thread_state.h"
#include "kernel/fs/mount_tree.h"
#include "kernel/host/calls.h"
#include "kernel/mm/address_space.h"
#include "kernel/mm/user_memory.h"
#include "kernel/task/clone.h"
#include "kernel/task/memory_use.h"
#include "kernel/task/process_table.h"
#include "kernel/task/question.h"
#include "kernel/task/robust.h"
#include "kernel/task/signals.h"
#include "kernel/terminal/terminal.h"
#include "kernel/time/cpu_times.h"
#include "kernel/time/interval_timers.h"

extern "C" [[noreturn]] void host_leave_slot(std::atomic<std::uint32_t>* slot);

namespace belljar::kernel {
namespace {

int code_of(int wait_status) {
  return WIFEXITED(wait_status) ? CLD_EXITED : WCOREDUMP(wait_status) ? CLD_DUMPED : CLD_KILLED;
}

int status_of(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : WTERMSIG(wait_status);
}

void note_use(shm::End& end) {
  const TmpSpace& space = *memory_file_space();
  end.tmp_bytes = space.bytes_used();
  end.tmp_inodes = space.inodes_used();
  end.tmp_was_full = space.was_full() ? 1 : 0;
  end.tmp_inodes_were_full = space.were_inodes_full() ? 1 : 0;
  const ProcessTable& table = process_table();
  end.tasks_peak = table.tasks_peak;
  end.task_refusals = table.task_refusals.load();
  end.file_refusals = table.file_refusals.load();
}

// The program itself has ended, and with it the sandbox: the broker passes on what is still to be printed.
void report_end(int wait_status) {
  const std::uint32_t kind = WIFEXITED(wait_status) ? shm::End::kExited : shm::End::kSignalled;
  shm::End& end = shared_with_broker().end;
  note_use(end);
  if (has_console_terminal()) return end_after_console_terminal(kind, status_of(wait_status));
  end.code = status_of(wait_status);
  end.kind.store(kind);
  ring_broker();
}

Process& new_parent_of_children(Process& process) {
  for (Process* above = process.parent; above != nullptr; above = above->parent) {
    if (above->is_subreaper && !above->is_exiting) return *above;
  }
  return *process_table().init;
}

bool is_link(const Process& above, const ProcessGroup& group) {
  return above.group != nullptr && above.group != &group && above.group->session == group.session;
}

// After `above`, which could have continued the group's stopped processes, is gone: they are told so, and go on.
void wake_orphaned_group(const Process& above, ProcessGroup& group) {
  if (!is_link(above, group) || !is_orphaned(group)) return;
  bool has_stopped = false;
  for (const Process* member = group.first_process; member != nullptr; member = member->next_in_group) {
    has_stopped |= member->state == ProcessState::stopped;
  }
  if (!has_stopped) return;
  for (const int signal : {SIGHUP, SIGCONT}) {
    siginfo_t info{};
    info.si_signo = signal;
    info.si_code = SI_KERNEL;
    send_signal_to_group_locked(group, info);
  }
}

void give_children_away(Process& process) {
  Process& heir = new_parent_of_children(process);
  while (Process* const child = process.first_child) {
    unlink_child(*child);
    link_child(heir, *child);
    if (child->group != nullptr) wake_orphaned_group(process, *child->group);
    if (child->parent_death_signal != 0) {
      siginfo_t info{};
      info.si_signo = child->parent_death_signal;
      info.si_code = SI_USER;
      send_signal_locked(*child, info);
    }
    if (child->state != ProcessState::zombie) continue;
    if (&heir == process_table().init) {
      reap(*child);
    } else {
      notify_parent(*child, code_of(child->wait_status), status_of(child->wait_status));
    }
  }
}

bool wants_no_zombies(const Process& parent) {
  if (parent.first_task == nullptr) return true;
  const SignalAction& action = parent.actions->actions[SIGCHLD];
  return action.handler == reinterpret_cast<std::uint64_t>(SIG_IGN) || (action.flags & SA_NOCLDWAIT) != 0;
}

// Tasks lock held.
void become_zombie(Process& process) {
  process.state = ProcessState::zombie;
  leave_terminal(process, LeaveTerminal::exit);
  give_children_away(process);
  if (process.group != nullptr && process.parent != nullptr) wake_orphaned_group(*process.parent, *process.group);
  drop_signals(process.pending, ~0ULL);
  if (process.pid == kFirstPid) report_end(process.wait_status);
  process.exit_events.wake_all();
  Process& parent = *process.parent;
  const bool forget = process.exit_signal == SIGCHLD && wants_no_zombies(parent);
  if (parent.first_task != nullptr && process.exit_signal != 0) {
    notify_parent(process, code_of(process.wait_status), status_of(process.wait_status));
  }
  parent.child_events.wake_all();
  if (forget) reap(process);
}

// Everything of the thread that others don't look at under the tasks lock.
void let_go_of_resources(Task& task) {
  release_robust_futexes(task);
  if (task.clear_child_tid != 0) {
    const std::uint32_t none = 0;
    if (copy_out(task.clear_child_tid, none)) {
      host::futex(reinterpret_cast<std::uint32_t*>(task.clear_child_tid), FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
  }
  // Others look at these through /proc.
  Ref<FdTable> files;
  Ref<FsPlaces> places;
  {
    LockGuard guard(tasks_lock());
    files = std::move(task.files);
    places = std::move(task.fs);
  }
}

}  // namespace

void notify_parent(Process& process, int code, int status) {
  Process* const parent = process.parent;
  if (parent == nullptr || parent->first_task == nullptr) return;
  siginfo_t info{};
  info.si_signo = code == CLD_EXITED || code == CLD_KILLED || code == CLD_DUMPED ? process.exit_signal : SIGCHLD;
  info.si_code = code;
  info.si_pid = process.pid;
  info.si_uid = process.leader->credentials.uid;
  info.si_status = status;
  const bool is_stop = code == CLD_STOPPED || code == CLD_CONTINUED;
  if (!is_stop || (parent->actions->actions[SIGCHLD].flags & SA_NOCLDSTOP) == 0) send_signal_locked(*parent, info);
  parent->child_events.wake_all();
}

void reap(Process& zombie) {
  if (zombie.parent != nullptr) {
    CpuTimes& times = zombie.parent->dead_children;
    times.user_ns += zombie.dead_threads.user_ns + zombie.dead_children.user_ns;
    times.system_ns += zombie.dead_threads.system_ns + zombie.dead_children.system_ns;
    std::uint64_t& peak = zombie.parent->children_peak_bytes;
    peak = std::max(peak, memory_peak_with_children(zombie));
    unlink_child(zombie);
  }
  leave_group(zombie);
  forget_task(*zombie.leader);
  zombie.leader = nullptr;
  zombie.release();
}

void exit_task() {
  Task& task = current();
  Process& process = *task.process;
  VforkReturn* const vfork = task.vfork_return;
  let_go_of_resources(task);
  const CpuTimes used = cpu_times_of(task);
  bool is_last = false;
  {
    const LateWakes late;
    LockGuard guard(tasks_lock());
    const bool is_leader = &task == process.leader;  // of a process that may be gone then
    process.dead_threads.user_ns += used.user_ns;
    process.dead_threads.system_ns += used.system_ns;
    task.is_dead = true;
    task.is_kickable.store(0);
    drop_signals(task.pending, ~0ULL);
    (task.previous_in_process == nullptr ? process.first_task : task.previous_in_process->next_in_process) =
        task.next_in_process;
    if (task.next_in_process != nullptr) task.next_in_process->previous_in_process = task.previous_in_process;
    --process_table().task_count;
    is_last = --process.task_count == 0;
    if (process.executing != nullptr) wake_task(*process.executing);
    if (is_last) {
      if (vfork == nullptr) leave_address_space();
      timers_at_exit(process);
      drop_questions(process);
      become_zombie(process);
    }
    if (!is_leader) forget_task(task);  // the leader stays for who waits
  }
  if (vfork != nullptr) return_to_vfork_parent(*vfork);
  if (is_last) host::exit_group(0);
  host_leave_slot(&slot_word(thread_state().slot));
}

void begin_exit(Process& process, int status) {
  if (process.is_exiting) return;
  process.is_exiting = true;
  process.wait_status = status;
  if (process.state == ProcessState::stopped) process.state = ProcessState::running;
  for (Task* task = process.first_task; task != nullptr; task = task->next_in_process) kick(*task);
}

}  // namespace belljar::kernel
