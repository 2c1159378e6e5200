#include <fcntl.h>
#include <linux/mqueue.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "host/descriptors.h"
#include "host/loopback.h"
#include "host/open_path.h"
#include "host/privilege.h"
#include "host/process.h"
#include "seccomp/filter.h"
#include "tiers/container/init_steps_child.h"

namespace belljar::container {
namespace {

constexpr const char* kHostName = "sandbox";
constexpr const char* kInitName = "belljar-init";
constexpr std::uint64_t kDataPerMemory = 4;
constexpr int kReportFd = 3;  // an OwnProgram's

void send_frame(const InitPlan& plan, const Frame& frame) {
  while (::send(plan.control, &frame, sizeof frame, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

// Sends descriptors to the supervisor, and closes them here.
void hand_over(const InitPlan& plan, SetupStep step, FrameKind kind, std::span<const int> fds) {
  Frame frame{};
  frame.kind = kind;
  const std::span<const std::byte> packet = std::as_bytes(std::span(&frame, 1));
  check(plan, step, static_cast<int>(host::send_with_descriptors(plan.control, packet, fds)));
  for (const int fd : fds) ::close(fd);
}

// Ends the process when the supervisor is gone: PR_SET_PDEATHSIG alone misses a death before the call.
void check_supervisor_lives(const InitPlan& plan) {
  char byte;
  if (::recv(plan.control, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0) ::_exit(1);
}

// What /proc/1/cmdline and environ would show of the supervisor: its paths, its secrets.
void forget_supervisor(const InitPlan& plan) {
  for (const MemoryArea& area : {plan.own_arguments, plan.own_environment}) {
    if (area.begin != nullptr) std::memset(area.begin, 0, area.size);
  }
  if (plan.own_arguments.size > std::strlen(kInitName)) std::strcpy(plan.own_arguments.begin, kInitName);
}

void make_namespaces(const InitPlan& plan) {
  constexpr SetupStep kStep = SetupStep::namespaces;
  check(plan, kStep, errno_result(::unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)));
  check(plan, kStep, host::bring_up_loopback());
  if (plan.egress_link >= 0) make_egress(plan);
  check(plan, kStep, errno_result(::sethostname(kHostName, std::strlen(kHostName))));
}

// Writes "0" (the writer itself) into each cgroup file, then roots the cgroup namespace there.
void enter_cgroups(const InitPlan& plan, const Received& received) {
  for (const int fd : received.groups(plan)) {
    check(plan, SetupStep::enter_cgroup, errno_result(::write(fd, "0", 1)));
    ::close(fd);
  }
  check(plan, SetupStep::enter_cgroup, errno_result(::unshare(CLONE_NEWCGROUP)));
}

// Where the caller has a smaller limit, that one stays: raising it asks for a privilege.
void lower_limit(const InitPlan& plan, decltype(RLIMIT_FSIZE) limit, rlim_t most) {
  rlimit inherited{};
  check(plan, SetupStep::rlimits, errno_result(::getrlimit(limit, &inherited)));
  const rlim_t value = std::min(most, inherited.rlim_max);
  const rlimit lowered{value, value};
  check(plan, SetupStep::rlimits, errno_result(::setrlimit(limit, &lowered)));
}

void set_rlimits(const InitPlan& plan) {
  // Not 0: where core_pattern is a pipe, the kernel starts its program for a limit of 0 too. A limit of 1 is too small
  // for any file, and stops the pipe (core(5)).
  const rlimit no_core{1, 1};
  check(plan, SetupStep::rlimits, errno_result(::setrlimit(RLIMIT_CORE, &no_core)));
  const rlimit open_files{plan.open_files, plan.open_files};
  check(plan, SetupStep::rlimits, errno_result(::setrlimit(RLIMIT_NOFILE, &open_files)));
  if (plan.file_size > 0) lower_limit(plan, RLIMIT_FSIZE, plan.file_size);
  // What lies in POSIX message queues is no process's memory, so that sampling does not see it.
  lower_limit(plan, RLIMIT_MSGQUEUE, MQ_BYTES_MAX);
  if (plan.sampled.memory_bytes > 0) {
    // Bounds how far a process can get between two samples. Private writable memory, because runtimes such as node
    // reserve far more address space than they use.
    const rlimit data{plan.sampled.memory_bytes * kDataPerMemory, plan.sampled.memory_bytes * kDataPerMemory};
    check(plan, SetupStep::rlimits, errno_result(::setrlimit(RLIMIT_DATA, &data)));
  }
  if (plan.sampled.tasks > 0) {
    // Counted in the sandbox's own user namespace (Linux 5.14), where init is one more.
    const rlimit tasks{plan.sampled.tasks + 1, plan.sampled.tasks + 1};
    check(plan, SetupStep::rlimits, errno_result(::setrlimit(RLIMIT_NPROC, &tasks)));
  }
}

void enforce_landlock(const InitPlan& plan, const KernelParts& kernel) {
  if (plan.landlock_abi == 0) return;
  constexpr SetupStep kStep = SetupStep::landlock;
  const int rules = check(plan, kStep, host::landlock_create(plan.landlock_abi));
  const auto grant = [&](const char* path, host::PathKind kind) {
    const SysResult<Fd> place = host::open_without_links(path, O_PATH);
    if (!place) give_up(plan, kStep, -place.error().value);
    check(plan, kStep, host::landlock_grant_changes(rules, plan.landlock_abi, place->get(), kind));
  };
  // Only what is in the new root is executed: /proc/self/exe of init is the host's belljar, which a script may not have
  // as its interpreter.
  const int root = check(plan, kStep, errno_result(::open("/", O_PATH | O_CLOEXEC)));
  check(plan, kStep, host::landlock_grant_execution(rules, root));
  ::close(root);
  if (kernel.broker >= 0) check(plan, kStep, host::landlock_grant_execution(rules, kernel.broker));
  for (const char* path : {"/tmp", "/dev", "/dev/mqueue", "/proc"}) grant(path, host::PathKind::folder);
  for (const char* path : plan.own_folders) grant(path, host::PathKind::folder);
  for (const InitMount& mount : plan.mounts) {
    if (mount.changes_allowed) {
      grant(mount.target, mount.is_folder ? host::PathKind::folder : host::PathKind::file);
    }
  }
  check(plan, kStep, host::landlock_enforce(rules));
  ::close(rules);
}

// Memory that shows nowhere in /proc can't be sampled: a memfd that nobody maps, System V semaphores and messages.
// Where memory is sampled there is none of it; programs fall back to files and futexes. Other architectures' numbers
// are refused by the profile.
void forbid_unseen_memory(const InitPlan& plan) {
  sock_filter rows[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 2, 0),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_semget, 1, 0),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_msgget, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{std::size(rows), rows};
  check(plan, SetupStep::seccomp, errno_result(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)));
}

void install_filter(const InitPlan& plan) {
  if (plan.sampled.memory_bytes > 0) forbid_unseen_memory(plan);
  const auto install = [](std::span<const sock_filter> rows, unsigned flags) {
    const sock_fprog program{static_cast<unsigned short>(rows.size()), const_cast<sock_filter*>(rows.data())};
    return errno_result(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
  };
  const CompiledProfile& profile = container_profile();
  // Refusals are told to the supervisor, which counts them and answers with the errno of the row. Where somebody
  // listens already, as around a Belljar that runs in another sandbox, the kernel refuses by itself.
  // The writable space goes along, so that its use can be looked at from outside, also after a kill.
  const int space = check(plan, SetupStep::hand_over, errno_result(::open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC)));
  const int listener = install(profile.notifying_program, SECCOMP_FILTER_FLAG_NEW_LISTENER);
  if (listener < 0) check(plan, SetupStep::seccomp, install(profile.program, 0));
  const int handles[kHandlesMax] = {space, listener};
  hand_over(plan, SetupStep::hand_over, FrameKind::handles, {handles, listener >= 0 ? 2U : 1U});
}

std::uint64_t now_us() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

// In the vforked child: default signals, three descriptors, own session, then exec. Returns the errno of a failed exec.
int become_program(const InitPlan& plan, const ProgramStreams& streams, const KernelParts& kernel) {
  struct sigaction default_action{};
  default_action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &default_action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setsid();
  // First out of the way of the numbers that the streams are to have.
  const int report = plan.report_write >= 0 ? ::fcntl(plan.report_write, F_DUPFD, kReportFd + 1) : -1;
  if (::dup2(streams.in, 0) < 0 || ::dup2(streams.out, 1) < 0 || ::dup2(streams.err, 2) < 0 ||
      (plan.report_write >= 0 && ::dup2(report, kReportFd) < 0)) {
    return errno;
  }
  if (streams.is_terminal && ::ioctl(0, TIOCSCTTY, 0) != 0) return errno;
  if (kernel.broker >= 0) return become_broker(plan, kernel);
  if (::syscall(SYS_close_range, plan.report_write >= 0 ? kReportFd + 1 : kReportFd, ~0U, 0) != 0) return errno;
  int error = ENOENT;
  for (const char* path : plan.exec_paths) {
    ::execve(path, plan.arguments, plan.environment);
    if (errno == EACCES) {
      error = EACCES;
    } else if (errno == ENOENT && ::access(path, F_OK) == 0) {
      return ELIBACC;  // the file is there: what is missing is the interpreter that it names
    } else if (errno != ENOENT && errno != ENOTDIR) {
      return errno;
    }
  }
  return error;
}

// Leaves the control groups when nothing else is in them any more, so that the supervisor can read and remove them
// while this process ends. It is the last when it has no child: whatever loses its parent becomes init's.
bool leave_cgroups(const InitPlan& plan, const Received& received) {
  const std::span<const int> exits = received.group_exits(plan);
  siginfo_t info{};
  if (exits.empty() || ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0) return false;
  return std::ranges::all_of(exits, [](int fd) { return ::write(fd, "0", 1) == 1; });
}

std::uint64_t to_ms(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1000 + static_cast<std::uint64_t>(time.tv_usec) / 1000;
}

// What this process has waited for is in its counters, next to what it moved itself.
void read_io(const InitPlan& plan, const Received& received, Frame* frame) {
  std::optional<host::IoCounters> own;
  for (const int file : received.io(plan)) {
    char text[512];
    const ssize_t count = ::read(file, text, sizeof text);
    auto counters = host::parse_io({text, static_cast<std::size_t>(std::max<ssize_t>(count, 0))});
    if (!counters) return;
    if (!own) {
      own = counters;
      own->read_bytes += static_cast<std::uint64_t>(count);  // by this read
      continue;
    }
    *counters = host::io_without(*counters, *own);
    frame->io_is_known = 1;
    frame->io_read_bytes = counters->read_bytes;
    frame->io_written_bytes = counters->written_bytes;
  }
}

void report_exit(const InitPlan& plan, const Received& received, const KernelParts& kernel, const siginfo_t& info) {
  Frame frame{};
  frame.kind = FrameKind::exited;
  frame.exit_code = info.si_code == CLD_EXITED ? info.si_status : -1;
  frame.signal = info.si_code == CLD_EXITED ? -1 : info.si_status;
  struct statfs space{};
  if (::statfs("/tmp", &space) == 0) {
    frame.written_bytes = (space.f_blocks - space.f_bfree) * static_cast<std::uint64_t>(space.f_bsize);
    frame.written_inodes = space.f_files - space.f_ffree;
    frame.bytes_full = space.f_bfree == 0 ? 1 : 0;
    frame.inodes_full = space.f_ffree == 0 ? 1 : 0;
  }
  frame.file_full = frame.exit_code != 0 && has_file_at_limit(plan) ? 1 : 0;
  read_io(plan, received, &frame);
  rusage children{};
  ::getrusage(RUSAGE_CHILDREN, &children);
  plan.seen.user_ms = to_ms(children.ru_utime);
  plan.seen.system_ms = to_ms(children.ru_stime);
  if (kernel.broker >= 0) read_kernel_end(plan, kernel, &frame);
  frame.left_groups = leave_cgroups(plan, received) ? 1 : 0;
  send_frame(plan, frame);
}

}  // namespace

int errno_result(long result) {
  return result < 0 ? -errno : static_cast<int>(result);
}

void give_up(const InitPlan& plan, SetupStep step, int result, int detail) {
  Frame frame{};
  frame.kind = FrameKind::setup_failed;
  frame.step = step;
  frame.errno_value = -result;
  frame.detail = detail;
  send_frame(plan, frame);
  ::_exit(1);
}

void receive_message(const InitPlan& plan, ParentMessage expected, Received* received) {
  std::uint8_t message = 0;
  iovec data{&message, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kPassedFdsMax)];
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t count;
  do {
    count = ::recvmsg(plan.control, &header, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) ::_exit(1);  // the supervisor is gone
  if (message != static_cast<std::uint8_t>(expected) || (header.msg_flags & MSG_CTRUNC) != 0) {
    give_up(plan, SetupStep::receive, -EPROTO);
  }
  const cmsghdr* part = CMSG_FIRSTHDR(&header);
  if (part == nullptr || received == nullptr) return;
  received->fd_count = static_cast<unsigned>((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
  std::memcpy(received->fds, CMSG_DATA(part), received->fd_count * sizeof(int));
  const unsigned promised =
      plan.mount_fds + plan.script_fds + plan.group_fds + plan.group_exit_fds + plan.kernel_fds + plan.io_fds;
  if (received->fd_count != promised) give_up(plan, SetupStep::receive, -EPROTO);
}

void confine_kernel(const InitPlan& plan) {
  set_rlimits(plan);
  check(plan, SetupStep::capabilities, host::forbid_new_capabilities());
  if (plan.privilege == Privilege::root) {
    check(plan, SetupStep::identity, errno_result(::syscall(SYS_setgroups, 0, nullptr)));
  }
  check(plan, SetupStep::identity, host::set_identity(plan.ids.uid, plan.ids.gid));
  check(plan, SetupStep::capabilities, host::clear_capabilities());
  check(plan, SetupStep::identity, errno_result(::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)));
  check(plan, SetupStep::capabilities, errno_result(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
}

void confine(const InitPlan& plan, const KernelParts& kernel) {
  set_rlimits(plan);
  check(plan, SetupStep::capabilities, host::forbid_new_capabilities());
  if (plan.privilege == Privilege::root) {
    check(plan, SetupStep::identity, errno_result(::syscall(SYS_setgroups, 0, nullptr)));
  }
  check(plan, SetupStep::identity, host::set_identity(plan.ids.uid, plan.ids.gid));
  check(plan, SetupStep::capabilities, host::clear_capabilities());
  check(plan, SetupStep::capabilities, errno_result(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)));
  check(plan, SetupStep::identity, errno_result(::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)));  // reset by set_identity
  check_supervisor_lives(plan);
  ::umask(022);
  check(plan, SetupStep::working_folder, errno_result(::chdir(plan.working_folder)));
  check(plan, SetupStep::capabilities, errno_result(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
  enforce_landlock(plan, kernel);
  install_filter(plan);
}

// The calls of ioctl_tty(2). The terminal belongs to the sandbox's own devpts: nothing of the host's terminals is in
// reach.
ProgramStreams make_streams(const InitPlan& plan) {
  if (!plan.terminal) return {plan.stdin_read, plan.stdout_write, plan.stderr_write, false};
  constexpr SetupStep kStep = SetupStep::terminal;
  for (const int end : {plan.stdin_read, plan.stdout_write, plan.stderr_write}) ::close(end);
  const int ours = check(plan, kStep, errno_result(::open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)));
  const int unlocked = 0;
  check(plan, kStep, errno_result(::ioctl(ours, TIOCSPTLCK, &unlocked)));
  const int peer = check(plan, kStep, errno_result(::ioctl(ours, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)));
  // Away from 0, 1 and 2: dup2(2) of a descriptor to itself would leave it to be closed by execve(2).
  const int terminal = check(plan, kStep, errno_result(::fcntl(peer, F_DUPFD_CLOEXEC, 3)));
  ::close(peer);
  check(plan, kStep, errno_result(::fchown(terminal, kSandboxUid, kSandboxUid)));
  if (plan.kernel_fds > 0) {
    // The user-space kernel's own terminal does to characters what there is to do.
    termios settings{};
    check(plan, kStep, errno_result(::tcgetattr(terminal, &settings)));
    ::cfmakeraw(&settings);
    check(plan, kStep, errno_result(::tcsetattr(terminal, TCSANOW, &settings)));
  }
  const winsize size{plan.terminal->rows, plan.terminal->columns, 0, 0};
  check(plan, kStep, errno_result(::ioctl(terminal, TIOCSWINSZ, &size)));
  hand_over(plan, kStep, FrameKind::terminal, {&ours, 1});
  return {terminal, terminal, terminal, true};
}

int start_program(const InitPlan& plan, const ProgramStreams& streams, const KernelParts& kernel) {
  // Not after the vfork: on a busy host the program may have run for long before this process goes on.
  const std::uint64_t start_us = now_us();
  volatile int exec_errno = 0;  // shared with the child, which runs in this memory until it executes
  const pid_t program = ::vfork();
  if (program == 0) {
    exec_errno = become_program(plan, streams, kernel);
    ::_exit(127);
  }
  check(plan, SetupStep::fork_program, errno_result(program));
  if (exec_errno != 0) {
    Frame frame{};
    frame.kind = FrameKind::exec_failed;
    frame.errno_value = exec_errno;
    send_frame(plan, frame);
    ::_exit(1);
  }
  plan.seen.program_start_us = start_us;
  for (const int end : {streams.in, streams.out, streams.err}) ::close(end);
  if (plan.report_write >= 0) ::close(plan.report_write);
  // So that init runs at once when the program ends, before what the program leaves behind changes what is reported.
  ::sched_setaffinity(0, sizeof plan.caller_cpus, &plan.caller_cpus);
  return program;
}

void reap_until_end(const InitPlan& plan, const Received& received, const KernelParts& kernel, int program) {
  Sampler sampler(plan.sampled, &plan.seen);
  // Blocked, so that it ends the wait for the next sample, also when it came before.
  sigset_t child_signal;
  ::sigemptyset(&child_signal);
  ::sigaddset(&child_signal, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child_signal, nullptr);
  const int options = WEXITED | __WALL | (sampler.is_needed() ? WNOHANG : 0);
  while (true) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, options) != 0) {
      if (errno == EINTR) continue;
      ::_exit(1);
    }
    if (info.si_pid == program) {
      const bool has_failed = info.si_code != CLD_EXITED || info.si_status != 0;
      if (has_failed && sampler.is_needed()) sampler.count_tasks_at_end();
      report_exit(plan, received, kernel, info);
      ::_exit(0);
    }
    if (info.si_pid != 0 && info.si_pid == kernel.first_process) note_kernel_gone(kernel);
    // A stream of ended orphans must not keep the sampler from its work.
    if (info.si_pid != 0 && !(sampler.is_needed() && sampler.is_due())) continue;
    const Sampler::Verdict verdict = sampler.sample();
    if (verdict == Sampler::Verdict::blind) give_up(plan, SetupStep::sample, -sampler.failure());
    if (verdict == Sampler::Verdict::memory_exceeded) {
      Frame frame{};
      frame.kind = FrameKind::memory_exceeded;
      send_frame(plan, frame);
      ::_exit(0);
    }
    constexpr timespec kSampleInterval{0, 10'000'000};
    if (info.si_pid == 0) ::sigtimedwait(&child_signal, nullptr, &kSampleInterval);
  }
}

void init_main(const InitPlan& plan) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  ::prctl(PR_SET_NAME, kInitName, 0, 0, 0);
  ::signal(SIGCHLD, SIG_DFL);  // ignored, as a caller may hand it down, it would make children end unseen
  ::signal(SIGXFSZ, SIG_IGN);  // a small RLIMIT_FSIZE of the caller's is to be a failure with a reason, not a death
  // The clone copied all of the supervisor's.
  host::close_all_but({plan.control, plan.stdin_read, plan.stdout_write, plan.stderr_write, plan.report_write,
                       plan.space_link, plan.egress_link});
  make_namespaces(plan);
  receive_message(plan, ParentMessage::ids_ready, nullptr);
  if (plan.privilege == Privilege::root) check(plan, SetupStep::take_ids, host::set_identity(0, 0));
  check(plan, SetupStep::capabilities, errno_result(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)));
  ::umask(0);
  Received received;
  build_root(plan, &received);
  lock_root(plan);
  forget_supervisor(plan);
  const ProgramStreams streams = make_streams(plan);
  enter_cgroups(plan, received);
  const KernelParts kernel = plan.kernel_fds > 0 ? start_kernel(plan, received) : KernelParts{};
  confine(plan, kernel);
  reap_until_end(plan, received, kernel, start_program(plan, streams, kernel));
}

}  // namespace belljar::container
