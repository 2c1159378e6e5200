// ioctl_tty(2). Both sides set the slave's.
#include <poll.h>
#include <sys/ioctl.h>

#include "kernel/terminal/terminal.h"
#include "kernel/terminal/terminal_files.h"

namespace belljar::kernel {
SysResult<std::uint64_t> Terminal::get_settings(std::uint64_t to) {
  termios settings{};
  {
    LockGuard guard(lock_);
    settings = line_.settings;
  }
  TRY_VOID(copy_out(to, settings));
  return 0;
}

SysResult<std::uint64_t> Terminal::set_settings(std::uint64_t from, bool flushes) {
  const auto settings = TRY(copy_in<termios>(from));
  {
    LockGuard guard(lock_);
    const bool was_canonical = line_.is_canonical();
    line_.settings = settings;
    // As a pseudo terminal has it: eight bits, always on.
    line_.settings.c_cflag = (settings.c_cflag & ~static_cast<std::uint32_t>(CSIZE | PARENB)) | CS8 | CREAD;
    if ((settings.c_iflag & IXON) == 0) line_.is_output_stopped = false;
    if (flushes) line_.flush_input();
    line_.set_mode(was_canonical);
  }
  slave_queue.wake_all();
  master_queue.wake_all();
  return 0;
}

void Terminal::set_window(const WindowSize& window) {
  {
    LockGuard guard(lock_);
    const bool is_same = window.rows == window_.rows && window.columns == window_.columns &&
                         window.width == window_.width && window.height == window_.height;
    window_ = window;
    if (is_same) return;
  }
  signal_foreground(signal_bit(SIGWINCH));
}

SysResult<std::uint64_t> Terminal::flush(std::uint64_t which) {
  if (which > TCIOFLUSH) return error(EINVAL);
  {
    LockGuard guard(lock_);
    if (which != TCOFLUSH) line_.flush_input();
    if (which != TCIFLUSH) line_.output.clear();
  }
  slave_queue.wake_all(POLLOUT | POLLWRNORM);
  master_queue.wake_all(POLLOUT | POLLWRNORM);
  return 0;
}

SysResult<std::uint64_t> Terminal::ioctl_job(std::uint32_t request, std::uint64_t argument, bool is_master) {
  switch (request) {
    case TIOCSCTTY:
      if (is_master) return error(EINVAL);
      TRY_VOID(become_controlling());
      return 0;
    case TIOCNOTTY:
      if (!is_controlling()) return error(ENOTTY);
      {
        LockGuard tasks(tasks_lock());
        leave_terminal(current_process(), LeaveTerminal::asked);
      }
      return 0;
    case TIOCGPGRP:
      if (!is_master && !is_controlling()) return error(ENOTTY);
      TRY_VOID(copy_out(argument, foreground()));
      return 0;
    case TIOCSPGRP: {
      if (!is_controlling()) return error(ENOTTY);
      TRY_VOID(check_foreground(SIGTTOU));
      const auto group_id = TRY(copy_in<Pid>(argument));
      TRY_VOID(set_foreground(group_id));
      return 0;
    }
    case TIOCGSID: {
      if (!is_master && !is_controlling()) return error(ENOTTY);
      const Pid session = TRY(session_id());
      TRY_VOID(copy_out(argument, session));
      return 0;
    }
    default:
      return error(ENOTTY);
  }
}

SysResult<std::uint64_t> Terminal::ioctl_line(std::uint32_t request, std::uint64_t argument, bool is_master) {
  switch (request) {
    case TCGETS:
      return get_settings(argument);
    case TCSETS:
    case TCSETSW:
    case TCSETSF:
      if (!is_master) TRY_VOID(check_foreground(SIGTTOU));
      return set_settings(argument, request == TCSETSF);
    case TIOCGWINSZ: {
      WindowSize window;
      {
        LockGuard guard(lock_);
        window = window_;
      }
      TRY_VOID(copy_out(argument, window));
      return 0;
    }
    case TIOCSWINSZ: {
      const auto window = TRY(copy_in<WindowSize>(argument));
      set_window(window);
      return 0;
    }
    case TCFLSH:
      if (!is_master) TRY_VOID(check_foreground(SIGTTOU));
      return flush(argument);
    // Output is with the master as soon as it is written.
    case TCSBRK:
    case TCSBRKP:
      return 0;
    case TCXONC: {
      if (argument > TCION) return error(EINVAL);
      LockGuard guard(lock_);
      if (argument == TCOOFF || argument == TCOON) line_.is_output_stopped = argument == TCOOFF;
      return 0;
    }
    case TIOCGETD:
      TRY_VOID(copy_out(argument, 0));
      return 0;
    case TIOCSETD:
      if (TRY(copy_in<int>(argument)) != 0) return error(EINVAL);
      return 0;
    case TIOCEXCL:
    case TIOCNXCL:
      return 0;
    case TIOCSTI:
      return error(EPERM);
    default:
      return error(ENOTTY);
  }
}

SysResult<std::uint64_t> Terminal::ioctl_master(std::uint32_t request, std::uint64_t argument) {
  switch (request) {
    case TIOCGPTN:
      TRY_VOID(copy_out(argument, number_));
      return 0;
    case TIOCSPTLCK:
      is_locked.store(TRY(copy_in<int>(argument)) != 0);
      return 0;
    case TIOCGPTLCK:
      TRY_VOID(copy_out(argument, static_cast<int>(is_locked.load())));
      return 0;
    case TIOCGPTPEER:
      return open_peer(Ref<Terminal>::of(this), static_cast<std::uint32_t>(argument));
    case TIOCSIG: {
      const bool is_known = argument == SIGINT || argument == SIGQUIT || argument == SIGTSTP;
      if (!is_known) return error(EINVAL);
      signal_foreground(signal_bit(static_cast<int>(argument)));
      return 0;
    }
    case TIOCPKT:
      // Packet mode can only be off.
      if (TRY(copy_in<int>(argument)) != 0) return error(EINVAL);
      return 0;
    default:
      return error(ENOTTY);
  }
}

SysResult<std::uint64_t> Terminal::ioctl(std::uint32_t request, std::uint64_t argument, bool is_master) {
  if (request == FIONREAD || request == TIOCOUTQ) {
    std::uint32_t size = 0;
    {
      LockGuard guard(lock_);
      const bool is_input = request == FIONREAD;
      if (is_master) {
        size = is_input ? line_.output.used() : 0;
      } else {
        size = is_input ? line_.input_size() : line_.output.used();
      }
    }
    TRY_VOID(copy_out(argument, static_cast<int>(size)));
    return 0;
  }
  const auto is_other = [](const SysResult<std::uint64_t>& result) {
    return !result && value_of(result.error()) == ENOTTY;
  };
  SysResult<std::uint64_t> result = error(ENOTTY);
  if (is_master) result = ioctl_master(request, argument);
  if (is_other(result)) result = ioctl_line(request, argument, is_master);
  if (is_other(result)) result = ioctl_job(request, argument, is_master);
  return result;
}

}  // namespace belljar::kernel
