// Pseudo terminals: pty(7). A Terminal is one pair; MasterFile and SlaveFile (terminal_files.h) are its two sides.
//
// Locks: the terminal's own (LockRank::object); what belongs to job control (session_, foreground) is under the tasks
// lock, which is taken before it, never after.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>

#include "kernel/arena/lock.h"
#include "kernel/arena/ref.h"
#include "kernel/fs/file.h"
#include "kernel/task/process.h"
#include "kernel/task/wait_queue.h"
#include "kernel/terminal/line_discipline.h"

namespace belljar::kernel {

struct WindowSize {
  std::uint16_t rows = 0, columns = 0, width = 0, height = 0;  // as struct winsize has them
};

enum class LeaveTerminal : std::uint8_t { exit, asked };

class Terminal final : public Counted {
 public:
  static constexpr std::uint32_t kCountMax = 256;

  // A new pair with a free number. ENOSPC beyond kCountMax.
  static SysResult<Ref<Terminal>> make();
  // The one with this number, while its master is open. Null: there is none.
  static Ref<Terminal> find(std::uint32_t number);
  // The next number in use, at or above `number`; kCountMax: none.
  static std::uint32_t next_used(std::uint32_t number);

  std::uint32_t number() const { return number_; }
  void fill_stat(struct stat* status) const;

  // ---- the master's side ----
  SysResult<std::uint64_t> read_output(Buffers& to, bool is_nonblocking);
  SysResult<std::uint64_t> write_input(Buffers& from, bool is_nonblocking);
  Events master_ready();
  void close_master();

  // ---- the slave's side ----
  // `generation`: of the file, from open_slave(); another one since then: the terminal was hung up.
  SysResult<std::uint32_t> open_slave();
  void close_slave(std::uint32_t generation);
  SysResult<std::uint64_t> read_input(Buffers& to, bool is_nonblocking, std::uint32_t generation);
  SysResult<std::uint64_t> write_output(Buffers& from, bool is_nonblocking, std::uint32_t generation);
  Events slave_ready(std::uint32_t generation);
  bool is_hung_up(std::uint32_t generation);

  // ---- terminal_calls.cc: ioctl_tty(2) ----
  // SIGWINCH to the foreground where it changes.
  void set_window(const WindowSize& window);
  SysResult<std::uint64_t> ioctl(std::uint32_t request, std::uint64_t argument, bool is_master);

  // ---- job_control.cc ----
  // Makes it the controlling terminal of the caller's session, if it leads one that has none; with `is_asked` says why
  // not.
  SysResult<void> become_controlling();
  bool is_controlling();  // of the caller's session
  // For a background process: the signal that it gets instead of going on. kRestart, EIO, or nothing where it may.
  SysResult<void> check_foreground(int signal);
  void signal_foreground(SignalSet signals);
  Pid foreground();
  SysResult<void> set_foreground(Pid group_id);
  SysResult<Pid> session_id();

  WaitQueue master_queue;
  WaitQueue slave_queue;

  std::atomic<bool> is_locked = true;  // TIOCSPTLCK
  std::uint32_t mode = S_IFCHR | 0620;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;

 private:
  friend void leave_terminal(Process& leader, LeaveTerminal why);

  void hang_up();
  void let_session_go();
  SysResult<std::uint64_t> read_canonical(Buffers& to, bool is_nonblocking, std::uint32_t generation);
  SysResult<std::uint64_t> read_raw(Buffers& to, bool is_nonblocking, std::uint32_t generation);
  SysResult<std::uint64_t> copy_input(Buffers& to, bool& is_end);
  std::uint32_t put_part(const char* bytes, std::uint32_t size);
  std::uint32_t put_input_part(const char* bytes, std::uint32_t size, SignalSet& signals);

  SysResult<std::uint64_t> get_settings(std::uint64_t to);
  SysResult<std::uint64_t> set_settings(std::uint64_t from, bool flushes);
  SysResult<std::uint64_t> ioctl_job(std::uint32_t request, std::uint64_t argument, bool is_master);
  SysResult<std::uint64_t> ioctl_line(std::uint32_t request, std::uint64_t argument, bool is_master);
  SysResult<std::uint64_t> ioctl_master(std::uint32_t request, std::uint64_t argument);
  SysResult<std::uint64_t> flush(std::uint64_t which);

  std::uint32_t number_ = 0;

  Lock lock_{LockRank::object};
  LineDiscipline line_;
  WindowSize window_;
  bool is_master_closed_ = false;
  bool was_slave_closed_ = false;  // none is open, but one was
  std::uint32_t slave_count_ = 0;
  std::uint32_t generation_ = 0;

  // Tasks lock.
  Session* session_ = nullptr;
  Pid foreground_ = 0;
};

// All terminals of the sandbox.
class TerminalState {
 public:
  Lock lock{LockRank::pair};
  Terminal* terminals[Terminal::kCountMax] = {};
};

// For the end of a process that leads a session, and TIOCNOTTY of one: who is in the foreground gets SIGHUP, and the
// session has no terminal any more. Tasks lock held.
void leave_terminal(Process& leader, LeaveTerminal why);

}  // namespace belljar::kernel
