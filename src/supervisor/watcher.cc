#include "supervisor/watcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "cgroup/cgroup.h"
#include "spec/errors.h"
#include "tiers/container/container.h"

namespace belljar {
namespace {

constexpr std::uint64_t kDeadlineGraceMs = 2000;
// A run that lasts this long leaves the time to look for what earlier ones left.
constexpr std::uint64_t kSweepAfterMs = 300;

void close_all_but(std::vector<int> keep) {
  std::ranges::sort(keep);
  unsigned next = 0;
  for (const int fd : keep) {
    if (fd < 0) continue;
    if (static_cast<unsigned>(fd) > next) ::syscall(SYS_close_range, next, static_cast<unsigned>(fd) - 1, 0);
    next = static_cast<unsigned>(fd) + 1;
  }
  ::syscall(SYS_close_range, next, ~0U, 0);
}

enum class Wake { ready, timeout };

// Waits for `fd` to be readable or closed at its other end, until `until_ms` at most.
Wake wait_for(int fd, std::uint64_t until_ms) {
  while (true) {
    const std::uint64_t now = monotonic_ms();
    const std::uint64_t left = until_ms > now ? until_ms - now : 0;
    pollfd wanted{fd, POLLIN, 0};
    const int count = ::poll(&wanted, 1, static_cast<int>(std::min<std::uint64_t>(left, 1U << 30)));
    if (count > 0) return Wake::ready;
    if (count == 0 && monotonic_ms() >= until_ms) return Wake::timeout;
    if (count < 0 && errno != EINTR) return Wake::ready;
  }
}

[[noreturn]] void watch(const CleanupNeeds& needs, int supervisor_fd, std::uint64_t deadline_ms) {
  ::setsid();
  ::prctl(PR_SET_NAME, "belljar-watch", 0, 0, 0);
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  std::vector<int> keep = needs.keep_open;
  keep.push_back(needs.process_fd);
  keep.push_back(supervisor_fd);
  close_all_but(std::move(keep));

  const std::uint64_t until_ms = deadline_ms + kDeadlineGraceMs;
  if (wait_for(supervisor_fd, std::min(until_ms, monotonic_ms() + kSweepAfterMs)) == Wake::timeout) {
    sweep_cgroups(is_sandbox_owner_alive);
    if (wait_for(supervisor_fd, until_ms) == Wake::timeout) {
      ::syscall(SYS_pidfd_send_signal, needs.process_fd, SIGKILL, nullptr, 0);
      (void)wait_for(supervisor_fd, UINT64_MAX);
    }
  }
  char byte;
  if (::read(supervisor_fd, &byte, 1) == 1) ::_exit(0);  // the supervisor cleaned up

  ::syscall(SYS_pidfd_send_signal, needs.process_fd, SIGKILL, nullptr, 0);
  (void)wait_for(needs.process_fd, UINT64_MAX);
  remove_cgroup_folders(needs.folders);
  ::_exit(0);
}

}  // namespace

std::uint64_t monotonic_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

Result<Watcher> Watcher::start(const CleanupNeeds& needs, std::uint64_t deadline_ms) {
  const auto failed = [](int error) {
    return fail(ErrorCode::no_resources, fmt::format("can't start the watcher: {}", errno_text(error)));
  };
  auto pipe = make_pipe();
  if (!pipe) return failed(pipe.error().value);
  const pid_t pid = ::fork();
  if (pid < 0) return failed(errno);
  if (pid == 0) {
    watch(needs, pipe->read.get(), deadline_ms);
  }
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.is_open()) return failed(errno);
  return Watcher(std::move(pipe->write), host::Process(pid, std::move(pidfd)));
}

void Watcher::leave_to_it() {
  (void)alive_.release();  // closed when this process ends
  process_.release();
}

void Watcher::dismiss() {
  if (!alive_.is_open()) return;
  (void)write_all(alive_.get(), "x");
  alive_.reset();
}

Watcher::~Watcher() {
  dismiss();
  if (process_.is_running()) (void)process_.reap();
}

}  // namespace belljar
