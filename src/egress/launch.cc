#include "egress/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "host/own_program.h"
#include "spec/errors.h"

namespace belljar::egress {
namespace {

constexpr const char* kProgramName = "belljar-egress";
constexpr int kProgramFd = 6;
constexpr int kAboveAll = 16;
constexpr auto kPatience = std::chrono::seconds(10);

Result<Fd> open_program() {
  auto program = host::open_own_program(kProgramName);
  if (program) return std::move(program->opened);
  return fail(ErrorCode::host_unsupported,
              fmt::format("the program {} is {}; it came with belljar, so install that again", kProgramName,
                          host::own_program_places()));
}

struct ChildEnds {
  int link;
  int config;
  int control;
  int program;
};

// Runs between clone and exec, in a copy of a process that may have other threads: system calls only.
[[noreturn]] void become_program(const ChildEnds& ends) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  ::setsid();
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  // First out of the way of the numbers that they are to have.
  const int sources[] = {nothing, nothing, nothing, ends.link, ends.config, ends.control, ends.program};
  constexpr int kCount = kProgramFd + 1;
  int moved[kCount];
  for (int i = 0; i < kCount; ++i) moved[i] = ::fcntl(sources[i], F_DUPFD, kAboveAll);
  for (int i = 0; i < kCount; ++i) {
    if (moved[i] < 0 || ::dup3(moved[i], i, i == kProgramFd ? O_CLOEXEC : 0) < 0) ::_exit(1);
  }
  ::syscall(SYS_close_range, kProgramFd + 1, ~0U, 0);
  char name[] = "belljar-egress";
  char* const arguments[] = {name, nullptr};
  char* const environment[] = {nullptr};
  ::syscall(SYS_execveat, kProgramFd, "", arguments, environment, AT_EMPTY_PATH);
  ::_exit(1);
}

std::unexpected<Error> no_room(const char* what) {
  return fail(ErrorCode::no_resources,
              fmt::format("can't make {} for the egress process: {}", what, errno_text(errno)));
}

}  // namespace

Result<EgressProcess> EgressProcess::start(const EgressConfig& config, const InspectionSources& sources) {
  const Fd program = TRY(open_program());
  int link[2];
  int control[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) != 0) return no_room("a socket pair");
  Fd init_link(link[0]);
  const Fd own_link(link[1]);
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0) return no_room("a socket pair");
  Fd supervisor_control(control[0]);
  const Fd own_control(control[1]);
  if (sources.is_needed) TRY_VOID(hand_over(supervisor_control.get(), sources));
  auto pipe = make_pipe();
  if (!pipe) return no_room("a pipe");
  auto clone = host::clone_process(0, -1);
  if (!clone) {
    errno = clone.error().value;
    return no_room("a process");
  }
  if (clone->side == host::Side::child) {
    become_program({own_link.get(), pipe->read.get(), own_control.get(), program.get()});
  }
  pipe->read.reset();
  const auto written = write_all(pipe->write.get(), config_to_json(config));
  if (!written) {
    return fail(ErrorCode::start_failed,
                fmt::format("the egress process could not be started: {}", errno_text(written.error().value)));
  }
  return EgressProcess(std::move(clone->process), std::move(init_link), std::move(supervisor_control));
}

// What the process says up to its end, or to the end of a line.
std::string EgressProcess::hear(Until what) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  std::string text;
  std::array<char, 16384> bytes;
  while (text.size() <= kReportBytesMax && (what == Until::end || !text.ends_with('\n'))) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd waiting{control_.get(), POLLIN, 0};
    const int ready = left.count() > 0 ? ::poll(&waiting, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    const ssize_t count = ready > 0 ? ::recv(control_.get(), bytes.data(), bytes.size(), 0) : 0;
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return text;
}

Result<EgressReady> EgressProcess::await_ready(std::size_t secrets) {
  const std::string text = hear(Until::line);
  if (text.empty()) return fail(ErrorCode::internal, "the egress process came to a bad end before it was ready");
  return ready_from_json(text, secrets);
}

Result<EgressReport> EgressProcess::finish() {
  process_.go_on();  // it may have been stopped
  (void)::send(control_.get(), "e", 1, MSG_NOSIGNAL);
  const std::string text = hear(Until::end);
  control_.reset();
  process_.kill();  // it has said all; one that has not ended by now does not
  const auto record = process_.reap();
  if (!record) return fail(ErrorCode::internal, "the egress process can't be waited for");
  auto report = report_from_json(text);
  if (report || !text.empty()) return report;
  return fail(ErrorCode::internal, fmt::format("the egress process came to a bad end ({} {})",
                                               record->code == CLD_EXITED ? "exit status" : "signal", record->status));
}

}  // namespace belljar::egress
