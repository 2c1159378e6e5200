#include "tiers/watcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <span>
#include <string_view>

#include "cgroup/cgroup.h"
#include "host/descriptors.h"
#include "host/process.h"
#include "spec/errors.h"
#include "tiers/container/container.h"

namespace belljar {
namespace {

constexpr std::uint64_t kDeadlineGraceMs = 2000;
// A run that lasts this long leaves the time to look for what earlier ones left.
constexpr std::uint64_t kSweepAfterMs = 300;
constexpr int kSweepPatienceMs = 1000;
constexpr std::size_t kDescriptorsMax = 16;
constexpr std::size_t kMessageBytesMax = 16384;
constexpr char kDismissed = 'x';

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

// What arm() sends: the time allowed and the folders as text, one a line, and the descriptors, the process first.
std::string encode(const CleanupNeeds& needs) {
  std::string text = std::to_string(needs.timeout_ms);
  for (const std::string& folder : needs.folders) text += "\n" + folder;
  return text;
}

// What came of it. Without the heap: until there is something to clean up, this process waits for no lock that another
// thread of its parent held when it was forked.
struct ReceivedNeeds {
  int process_fd = -1;
  std::uint64_t timeout_ms = 0;
  std::array<char, kMessageBytesMax> text;
  std::size_t text_size = 0;

  std::vector<std::string> folders() const;
};

std::vector<std::string> ReceivedNeeds::folders() const {
  std::vector<std::string> names;
  std::string_view rest(text.data(), text_size);
  for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    rest.remove_prefix(end + 1);
    names.emplace_back(rest.substr(0, rest.find('\n')));
  }
  return names;
}

// False when the parent died or gave up before there was anything to clean up.
bool receive_needs(int link, ReceivedNeeds* needs) {
  iovec data{needs->text.data(), needs->text.size() - 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kDescriptorsMax)> control;
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t count;
  do {
    count = ::recvmsg(link, &header, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  const cmsghdr* part = count > 1 ? CMSG_FIRSTHDR(&header) : nullptr;
  if (part == nullptr) return false;
  std::array<int, kDescriptorsMax> fds;
  const std::size_t fd_count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  std::memcpy(fds.data(), CMSG_DATA(part), fd_count * sizeof(int));
  needs->process_fd = fds[0];  // the others stay open as long as this process lives: that is their purpose
  needs->text_size = static_cast<std::size_t>(count);
  needs->text[needs->text_size] = '\0';
  needs->timeout_ms = std::strtoull(needs->text.data(), nullptr, 10);
  return true;
}

void kill_sandbox(const ReceivedNeeds& needs) {
  ::syscall(SYS_pidfd_send_signal, needs.process_fd, SIGKILL, nullptr, 0);
}

// False when the time is up; the start of the program may put that off meanwhile.
bool is_in_time(int link, std::uint64_t called_ms, const ReceivedNeeds& needs,
                const std::atomic<std::uint64_t>& started_us) {
  while (true) {
    const std::uint64_t until_ms = deadline_ms(called_ms, started_us, needs.timeout_ms) + kDeadlineGraceMs;
    if (wait_for(link, until_ms) == Wake::ready) return true;
    if (deadline_ms(called_ms, started_us, needs.timeout_ms) + kDeadlineGraceMs <= until_ms) return false;
  }
}

// In a process of its own, which may take the heap's locks as they were when the watcher was cloned, and which many old
// groups can't keep from the watching: it ends when it has to. fork(3) would take those locks here.
void sweep_aside(int link) {
  const auto sweeper = host::clone_process(0, -1);
  if (!sweeper) return;  // a later run sweeps
  if (sweeper->side == host::Side::child) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    sweep_cgroups(is_sandbox_owner_alive);
    ::_exit(0);
  }
  pollfd wanted[] = {{link, POLLIN, 0}, {sweeper->process.pidfd(), POLLIN, 0}};
  ::poll(wanted, std::size(wanted), kSweepPatienceMs);
}

[[noreturn]] void watch(int link, const std::atomic<std::uint64_t>& started_us) {
  ::setsid();
  ::prctl(PR_SET_NAME, "belljar-watch", 0, 0, 0);
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  host::close_all_but({link});
  ReceivedNeeds needs;
  if (!receive_needs(link, &needs)) ::_exit(0);

  const std::uint64_t called_ms = monotonic_ms();
  if (wait_for(link, called_ms + kSweepAfterMs) == Wake::timeout) {
    sweep_aside(link);
    if (!is_in_time(link, called_ms, needs, started_us)) {
      kill_sandbox(needs);
      (void)wait_for(link, UINT64_MAX);
    }
  }
  char byte;
  if (::recv(link, &byte, 1, 0) == 1 && byte == kDismissed) ::_exit(0);

  kill_sandbox(needs);
  const std::vector<std::string> folders = needs.folders();
  lift_cpu_limit(folders);
  (void)wait_for(needs.process_fd, UINT64_MAX);
  remove_cgroup_folders(folders);
  ::_exit(0);
}

std::unexpected<Error> failed(const char* doing, int error) {
  return fail(ErrorCode::no_resources, fmt::format("can't {}: {}", doing, errno_text(error)));
}

}  // namespace

std::uint64_t monotonic_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

std::uint64_t deadline_ms(std::uint64_t called_ms, std::uint64_t started_us, std::uint64_t timeout_ms) {
  return started_us > 0 ? (started_us + 999) / 1000 + timeout_ms : called_ms + kStartPatienceMs;
}

std::uint64_t monotonic_us() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

Result<Watcher> Watcher::start(const std::atomic<std::uint64_t>& started_us) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return failed("make a socket pair", errno);
  Fd own(ends[0]);
  const Fd theirs(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return failed("start the watcher", errno);
  if (pid == 0) watch(theirs.get(), started_us);
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.is_open()) return failed("open the watcher", errno);
  return Watcher(std::move(own), host::Process(pid, std::move(pidfd)));
}

Result<void> Watcher::arm(const CleanupNeeds& needs) const {
  const std::string text = encode(needs);
  std::vector<int> fds = {needs.process_fd};
  fds.insert(fds.end(), needs.keep_open.begin(), needs.keep_open.end());
  if (fds.size() > kDescriptorsMax || text.size() >= kMessageBytesMax) return failed("tell the watcher", E2BIG);
  const long sent = host::send_with_descriptors(link_.get(), std::as_bytes(std::span(text)), fds);
  if (sent < 0) return failed("tell the watcher", static_cast<int>(-sent));
  return {};
}

void Watcher::dismiss() {
  if (!link_.is_open()) return;
  (void)::send(link_.get(), &kDismissed, 1, MSG_NOSIGNAL);
  link_.reset();
}

void Watcher::leave_to_it() {
  (void)link_.release();  // closed when this process ends
  process_.release();
}

Watcher::~Watcher() {
  dismiss();
  if (process_.is_running()) (void)process_.reap();
}

}  // namespace belljar
