#include "host/process.h"

#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#if defined(__SANITIZE_THREAD__)
extern "C" {
void __sanitizer_syscall_pre_impl_fork();
void __sanitizer_syscall_post_impl_fork(long result);
}
#endif

namespace belljar::host {

namespace {

// To the thread sanitizer, which does not see it, this is a fork(2): the child is not to wait for a lock of the
// sanitizer's that another thread held.
long call_clone3(clone_args& arguments) {
#if defined(__SANITIZE_THREAD__)
  __sanitizer_syscall_pre_impl_fork();
  const long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  const int clone_errno = errno;
  __sanitizer_syscall_post_impl_fork(pid);
  errno = clone_errno;
  return pid;
#else
  return ::syscall(SYS_clone3, &arguments, sizeof arguments);
#endif
}

// The number after `key`, which begins a line.
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos || (at > 0 && text[at - 1] != '\n')) return std::nullopt;
  text.remove_prefix(at + key.size());
  std::uint64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<IoCounters> parse_io(std::string_view text) {
  const auto read_bytes = number_after(text, "rchar: ");
  const auto written_bytes = number_after(text, "wchar: ");
  if (!read_bytes || !written_bytes) return std::nullopt;
  return IoCounters{*read_bytes, *written_bytes};
}

IoCounters io_without(const IoCounters& whole, const IoCounters& part) {
  return {whole.read_bytes - std::min(whole.read_bytes, part.read_bytes),
          whole.written_bytes - std::min(whole.written_bytes, part.written_bytes)};
}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    kill_and_reap();
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::move(other.pidfd_);
  }
  return *this;
}

void Process::kill() const {
  if (pidfd_.is_open()) ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
}

void Process::go_on() const {
  if (pidfd_.is_open()) ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGCONT, nullptr, 0);
}

SysResult<ExitRecord> Process::reap() {
  ExitRecord record{};
  siginfo_t info{};
  // The raw call, because the C library's waitid() drops the fifth argument.
  while (::syscall(SYS_waitid, P_PIDFD, pidfd_.get(), &info, WEXITED | __WALL, &record.usage) != 0) {
    if (errno != EINTR) return std::unexpected(Errno{errno});
  }
  pid_ = -1;
  record.code = info.si_code;
  record.status = info.si_status;
  return record;
}

void Process::kill_and_reap() {
  if (pid_ <= 0) return;
  kill();
  (void)reap();
}

SysResult<CloneResult> clone_process(std::uint64_t flags, int cgroup_fd) {
  int pidfd = -1;
  clone_args arguments{};
  arguments.flags = flags | CLONE_PIDFD;
  arguments.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  arguments.exit_signal = 0;  // not SIGCHLD: a caller that ignores that would have the kernel reap the child unseen
  if (cgroup_fd >= 0) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = static_cast<std::uint64_t>(cgroup_fd);
  }
  const long pid = call_clone3(arguments);
  if (pid < 0) return std::unexpected(Errno{errno});
  if (pid == 0) return CloneResult{Side::child, Process()};
  return CloneResult{Side::parent, Process(static_cast<pid_t>(pid), Fd(pidfd))};
}

}  // namespace belljar::host
