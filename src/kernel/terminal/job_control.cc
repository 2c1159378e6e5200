// Which session a terminal controls, and who of it is in the foreground: credentials(7), ioctl_tty(2).
#include <signal.h>

#include "kernel/task/signals.h"
#include "kernel/terminal/terminal.h"

namespace belljar::kernel {
namespace {

siginfo_t kernel_signal(int signal) {
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = SI_KERNEL;
  return info;
}

Session* own_session() {
  const ProcessGroup* const group = current_process().group;
  return group == nullptr ? nullptr : group->session;
}

bool is_leader(const Process& process, const Session* session) {
  return session != nullptr && session->id == process.pid;
}

void signal_group(Pid id, int signal) {
  if (ProcessGroup* const group = find_group(id)) send_signal_to_group_locked(*group, kernel_signal(signal));
}

}  // namespace

// Tasks lock held.
void Terminal::hang_up() {
  {
    LockGuard guard(lock_);
    ++generation_;
    slave_count_ = 0;
    was_slave_closed_ = true;
    line_.is_output_stopped = false;
  }
  master_queue.wake_all();
  slave_queue.wake_all();
  if (session_ == nullptr) return;
  if (Process* const leader = find_process(session_->id)) {
    send_signal_locked(*leader, kernel_signal(SIGHUP));
    send_signal_locked(*leader, kernel_signal(SIGCONT));
  }
  let_session_go();
}

// Tasks lock held.
void Terminal::let_session_go() {
  std::exchange(session_, nullptr)->terminal = nullptr;
  foreground_ = 0;
  release();  // the session's
}

void leave_terminal(Process& leader, LeaveTerminal why) {
  Session* const session = leader.group == nullptr ? nullptr : leader.group->session;
  if (!is_leader(leader, session) || session->terminal == nullptr) return;
  const Ref<Terminal> terminal = Ref<Terminal>::of(session->terminal);
  signal_group(terminal->foreground_, SIGHUP);
  if (why == LeaveTerminal::asked) signal_group(terminal->foreground_, SIGCONT);
  terminal->let_session_go();
}

SysResult<void> Terminal::become_controlling() {
  LockGuard tasks(tasks_lock());
  Session* const session = own_session();
  if (session != nullptr && session_ == session && is_leader(current_process(), session)) return {};
  if (!is_leader(current_process(), session) || session->terminal != nullptr || session_ != nullptr)
    return error(EPERM);
  acquire();
  session->terminal = this;
  session_ = session;
  foreground_ = current_process().group->id;
  return {};
}

bool Terminal::is_controlling() {
  LockGuard tasks(tasks_lock());
  return session_ != nullptr && session_ == own_session();
}

SysResult<void> Terminal::check_foreground(int signal) {
  LockGuard tasks(tasks_lock());
  ProcessGroup* const group = current_process().group;
  if (session_ == nullptr || session_ != own_session() || foreground_ == 0 || group->id == foreground_) return {};
  const SignalAction& action = current_process().actions->actions[signal];
  const bool is_refused = (current().blocked.load() & signal_bit(signal)) != 0 ||
                          action.handler == reinterpret_cast<std::uint64_t>(SIG_IGN);
  if (is_refused) return signal == SIGTTIN ? error(EIO) : SysResult<void>();
  if (is_orphaned(*group)) return error(EIO);
  send_signal_to_group_locked(*group, kernel_signal(signal));
  return error(kRestart);
}

void Terminal::signal_foreground(SignalSet signals) {
  if (signals == 0) return;
  LockGuard tasks(tasks_lock());
  for (int signal = 1; signal < 32; ++signal) {
    if ((signals & signal_bit(signal)) != 0 && foreground_ != 0) signal_group(foreground_, signal);
  }
}

Pid Terminal::foreground() {
  LockGuard tasks(tasks_lock());
  return foreground_;
}

SysResult<void> Terminal::set_foreground(Pid group_id) {
  LockGuard tasks(tasks_lock());
  if (session_ == nullptr || session_ != own_session()) return error(ENOTTY);
  if (group_id < 0) return error(EINVAL);
  const ProcessGroup* const group = find_group(group_id);
  if (group == nullptr) return error(ESRCH);
  if (group->session != session_) return error(EPERM);
  foreground_ = group_id;
  return {};
}

SysResult<Pid> Terminal::session_id() {
  LockGuard tasks(tasks_lock());
  if (session_ == nullptr) return error(ENOTTY);
  return session_->id;
}

}  // namespace belljar::kernel
