#include "kernel/task/signals.h"

#include <errno.h>
#include <sys/wait.h>

#include "kernel/entry/host_signals.h"
#include "kernel/host/calls.h"
#include "kernel/mm/address_space.h"
#include "kernel/task/exit.h"
#include "kernel/task/process_table.h"
#include "kernel/task/question.h"

namespace belljar::kernel {
namespace {

constexpr int kFirstRealTime = 32;
// Of signals from 32 on, one process may have this many waiting.
constexpr int kQueuedMost = 1024;

bool is_ignored(const Process& process, int signal) {
  const std::uint64_t handler = process.actions->actions[signal].handler;
  if (handler == reinterpret_cast<std::uint64_t>(SIG_IGN)) return true;
  return handler == reinterpret_cast<std::uint64_t>(SIG_DFL) && default_action(signal) == DefaultAction::ignore;
}

void add_pending(SignalQueue& queue, const siginfo_t& info) {
  const int signal = info.si_signo;
  if (signal < kFirstRealTime && (queue.set & signal_bit(signal)) != 0) return;
  PendingSignal** last = &queue.first;
  int count = 0;
  for (; *last != nullptr; last = &(*last)->next) ++count;
  queue.set |= signal_bit(signal);
  if (count >= kQueuedMost) return;
  PendingSignal* const pending = make_object<PendingSignal>();
  if (pending == nullptr) return;  // it comes without its siginfo_t
  pending->info = info;
  *last = pending;
}

siginfo_t take_from(SignalQueue& queue, SignalSet wanted) {
  siginfo_t info{};
  if ((queue.set & wanted) == 0) return info;
  // Faults first, then by number.
  const SignalSet faults = queue.set & wanted & kFaultSignals;
  const int signal = __builtin_ctzll(faults != 0 ? faults : queue.set & wanted) + 1;
  info.si_signo = signal;
  PendingSignal** link = &queue.first;
  while (*link != nullptr && (*link)->info.si_signo != signal) link = &(*link)->next;
  if (PendingSignal* const found = *link) {
    info = found->info;
    *link = found->next;
    delete_object(found);
  }
  for (const PendingSignal* rest = *link; rest != nullptr; rest = rest->next) {
    if (rest->info.si_signo == signal) return info;
  }
  queue.set &= ~signal_bit(signal);
  return info;
}

void go_on(Process& process) {
  for (Task* task = process.first_task; task != nullptr; task = task->next_in_process) {
    drop_signals(task->pending, kStopSignals);
  }
  drop_signals(process.pending, kStopSignals);
  if (process.state != ProcessState::stopped) return;
  process.state = ProcessState::running;
  process.was_continued = true;
  process.stop_signal = 0;
  notify_parent(process, CLD_CONTINUED, SIGCONT);
  for (Task* task = process.first_task; task != nullptr; task = task->next_in_process) kick(*task);
}

// What sending does besides queueing. True: there is nothing to queue.
bool acts_at_once(Process& process, int signal) {
  if (signal == SIGKILL) {
    begin_exit(process, SIGKILL);
    return true;
  }
  if (signal == SIGCONT) go_on(process);
  if ((kStopSignals & signal_bit(signal)) != 0) drop_signals(process.pending, signal_bit(SIGCONT));
  return false;
}

void wake_waiters(Process& process) {
  process.signal_events.wake_all();
}

}  // namespace

DefaultAction default_action(int signal) {
  switch (signal) {
    case SIGCHLD:
    case SIGURG:
    case SIGWINCH:
      return DefaultAction::ignore;
    case SIGCONT:
      return DefaultAction::go_on;
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
      return DefaultAction::stop;
    default:
      return DefaultAction::end;
  }
}

void drop_signals(SignalQueue& queue, SignalSet which) {
  queue.set &= ~which;
  for (PendingSignal** link = &queue.first; *link != nullptr;) {
    PendingSignal* const pending = *link;
    if ((which & signal_bit(pending->info.si_signo)) == 0) {
      link = &pending->next;
      continue;
    }
    *link = pending->next;
    delete_object(pending);
  }
}

void kick(Task& task) {
  task.has_work.store(1);
  if (&task == &current()) return;
  const bool sleeps = task.is_sleeping.load() != 0;
  wake_task(task);
  if (!sleeps && task.is_kickable.load() != 0) host::tgkill(task.process->host_pid, task.host_tid, kKickSignal);
}

void nudge(Task& task) {
  task.has_work.store(1);
  if (task.is_sleeping.load() == 0) interrupt_for_work(task);
}

void interrupt_for_work(Task& task) {
  task.has_work.store(1);
  if (task.is_kickable.load() != 0) host::tgkill(task.process->host_pid, task.host_tid, kKickSignal);
}

void do_work() {
  adopt_file_sizes();
  answer_questions();
}

void send_signal_to_task_locked(Task& task, const siginfo_t& info) {
  Process& process = *task.process;
  const int signal = info.si_signo;
  if (signal == 0 || task.is_dead || acts_at_once(process, signal)) return;
  const bool is_blocked = (task.blocked.load() & signal_bit(signal)) != 0;
  if (!is_blocked && is_ignored(process, signal)) return;
  add_pending(task.pending, info);
  if (!is_blocked) kick(task);
  wake_waiters(process);
}

void send_signal_locked(Process& process, const siginfo_t& info) {
  const int signal = info.si_signo;
  if (signal == 0 || process.state == ProcessState::zombie || process.first_task == nullptr) return;
  if (acts_at_once(process, signal)) return;
  Task* taker = nullptr;
  for (Task* task = process.first_task; task != nullptr; task = task->next_in_process) {
    if ((task->blocked.load() & signal_bit(signal)) != 0) continue;
    if (taker == nullptr || task == &current() || (task == process.leader && taker != &current())) taker = task;
  }
  if (taker != nullptr && is_ignored(process, signal)) return;
  add_pending(process.pending, info);
  if (taker != nullptr) kick(*taker);
  wake_waiters(process);
}

void send_signal_to_group_locked(ProcessGroup& group, const siginfo_t& info) {
  for (Process* process = group.first_process; process != nullptr;) {
    Process* const next = process->next_in_group;
    send_signal_locked(*process, info);
    process = next;
  }
}

void send_signal(Process& process, const siginfo_t& info) {
  const LateWakes late;
  LockGuard guard(tasks_lock());
  send_signal_locked(process, info);
}

void send_signal_to_task(Task& task, const siginfo_t& info) {
  const LateWakes late;
  LockGuard guard(tasks_lock());
  send_signal_to_task_locked(task, info);
}

void send_signal_to_group(ProcessGroup& group, const siginfo_t& info) {
  const LateWakes late;
  LockGuard guard(tasks_lock());
  send_signal_to_group_locked(group, info);
}

void raise_signal(int signal) {
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = SI_KERNEL;
  send_signal_to_task(current(), info);
}

SignalSet pending_signals(const Task& task) {
  return task.pending.set | task.process->pending.set;
}

siginfo_t take_signal(Task& task, SignalSet wanted) {
  siginfo_t info = take_from(task.pending, wanted);
  if (info.si_signo == 0) info = take_from(task.process->pending, wanted);
  return info;
}

bool has_signal() {
  Task& task = current();
  if (task.has_work.load() == 0) return false;
  {
    LockGuard guard(tasks_lock());
    const Process& process = *task.process;
    const bool has = process.is_exiting || process.state == ProcessState::stopped ||
                     (process.executing != nullptr && process.executing != &task) ||
                     (pending_signals(task) & ~task.blocked.load()) != 0;
    if (has) return true;
    task.has_work.store(0);
  }
  do_work();
  return false;
}

void set_blocked(SignalSet blocked) {
  Task& task = current();
  LockGuard guard(tasks_lock());
  task.blocked.store(blocked & ~kNeverBlocked);
  if ((pending_signals(task) & ~task.blocked.load()) != 0) task.has_work.store(1);
}

void force_signal(const siginfo_t& info) {
  Task& task = current();
  LockGuard guard(tasks_lock());
  const SignalSet bit = signal_bit(info.si_signo);
  SignalAction& action = task.process->actions->actions[info.si_signo];
  if ((task.blocked.load() & bit) != 0 || action.handler == reinterpret_cast<std::uint64_t>(SIG_IGN)) {
    action.handler = reinterpret_cast<std::uint64_t>(SIG_DFL);
    task.blocked.store(task.blocked.load() & ~bit);
  }
  add_pending(task.pending, info);
  task.has_work.store(1);
}

SysResult<void> check_file_size(std::uint64_t end) {
  const rlim_t limit = current_process().limits[RLIMIT_FSIZE].rlim_cur;
  if (end <= limit) return {};
  ProcessTable& table = process_table();
  if (limit == table.file_size_max) table.file_refusals.fetch_add(1, std::memory_order_relaxed);
  raise_signal(SIGXFSZ);
  return error(EFBIG);
}

}  // namespace belljar::kernel
