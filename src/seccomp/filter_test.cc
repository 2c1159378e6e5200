// The container filter in real processes, and what it answers for the calls of the escape corpus.
#include "seccomp/filter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>

#include "base/fd.h"
#include "seccomp/constants.h"
#include "seccomp/evaluator.h"
#include "seccomp/syscall_table.h"

namespace belljar {
namespace {

constexpr std::uint64_t kHigh = 0x1'0000'0000;  // a bit that the kernel ignores in 32-bit arguments
constexpr std::uint32_t kX32Bit = 0x40000000;
constexpr int kAllowed = 0;

// One call, and the errno that the filter has to give it (kAllowed: the call goes through to the kernel).
struct Probe {
  const char* name;
  std::array<std::uint64_t, 6> arguments;
  int expected;
};

// Descriptors are bad and pointers null, so that a call that got through would do nothing.
constexpr std::uint64_t kBadFd = 0xffffffff;
constexpr Probe kRefused[] = {
    // Keys of the host
    {"keyctl", {0, 0xfffffffd}, EPERM},
    {"add_key", {}, EPERM},
    {"request_key", {}, EPERM},
    // Kernel surface
    {"bpf", {}, EPERM},
    {"perf_event_open", {}, EPERM},
    {"userfaultfd", {}, EPERM},
    {"io_uring_setup", {}, EPERM},
    {"io_uring_enter", {kBadFd}, EPERM},
    {"io_uring_register", {kBadFd}, EPERM},
    {"kcmp", {1, 1, 99}, EPERM},
    {"process_madvise", {kBadFd}, EPERM},
    {"process_mrelease", {kBadFd}, EPERM},
    {"process_vm_readv", {}, EPERM},
    {"process_vm_writev", {}, EPERM},
    {"pidfd_getfd", {kBadFd}, EPERM},
    {"ptrace", {0xffff}, EPERM},
    {"lookup_dcookie", {}, EPERM},
    {"vmsplice", {kBadFd}, EPERM},
    {"memfd_secret", {0xffff}, ENOSYS},
    {"map_shadow_stack", {}, ENOSYS},
    {"clone3", {}, ENOSYS},
    {"openat2", {kBadFd}, ENOSYS},
    {"fanotify_init", {0xffffffff}, EPERM},
    // The host's state
    {"kexec_load", {0, 0, 0, 0xffff}, EPERM},
    {"kexec_file_load", {kBadFd}, EPERM},
    {"init_module", {}, EPERM},
    {"finit_module", {kBadFd}, EPERM},
    {"delete_module", {}, EPERM},
    {"create_module", {}, ENOSYS},
    {"iopl", {0xff}, EPERM},
    {"ioperm", {0, 0, 1}, EPERM},
    {"swapon", {}, EPERM},
    {"swapoff", {}, EPERM},
    {"reboot", {0, 0, 0}, EPERM},
    {"acct", {1}, EPERM},
    {"quotactl", {0xffffffff}, EPERM},
    {"quotactl_fd", {kBadFd}, EPERM},
    {"settimeofday", {1}, EPERM},
    {"clock_settime", {0xff}, EPERM},
    {"adjtimex", {}, EPERM},
    {"clock_adjtime", {}, EPERM},
    {"sethostname", {0, 0xffffffff}, EPERM},
    {"setdomainname", {0, 0xffffffff}, EPERM},
    {"syslog", {0xff}, EPERM},
    {"name_to_handle_at", {kBadFd}, EPERM},
    {"open_by_handle_at", {kBadFd}, EPERM},
    {"nfsservctl", {}, ENOSYS},
    {"modify_ldt", {0xff}, EPERM},
    {"sync", {}, EPERM},
    {"syncfs", {kBadFd}, EPERM},
    // Mounts, roots and namespaces
    {"mount", {}, EPERM},
    {"umount2", {}, EPERM},
    {"pivot_root", {}, EPERM},
    {"chroot", {}, EPERM},
    {"open_tree", {kBadFd}, EPERM},
    {"open_tree_attr", {kBadFd}, EPERM},
    {"move_mount", {kBadFd}, EPERM},
    {"fsopen", {}, EPERM},
    {"fsconfig", {kBadFd}, EPERM},
    {"fsmount", {kBadFd}, EPERM},
    {"fspick", {kBadFd}, EPERM},
    {"mount_setattr", {kBadFd}, EPERM},
    {"setns", {kBadFd}, EPERM},
    {"unshare", {CLONE_NEWUSER}, EPERM},
    {"unshare", {CLONE_NEWNS | CLONE_FS}, EPERM},
    {"unshare", {0x80}, EPERM},  // CLONE_NEWTIME
    {"unshare", {CLONE_FILES | kHigh}, EPERM},
    {"clone", {CLONE_NEWUSER | SIGCHLD}, EPERM},
    {"clone", {CLONE_NEWNET | SIGCHLD | kHigh}, EPERM},
    {"clone", {CLONE_NEWCGROUP | CLONE_NEWIPC}, EPERM},
    // Arguments
    {"socket", {38, SOCK_SEQPACKET, 0}, EAFNOSUPPORT},  // AF_ALG
    {"socket", {38 | kHigh, SOCK_SEQPACKET, 0}, EAFNOSUPPORT},
    {"socket", {40, SOCK_STREAM, 0}, EAFNOSUPPORT},  // AF_VSOCK
    {"socket", {AF_PACKET, SOCK_DGRAM, 0}, EAFNOSUPPORT},
    {"socket", {AF_INET, SOCK_RAW, 0}, EPERM},
    {"socket", {AF_INET | kHigh, SOCK_RAW | kHigh, 0}, EPERM},
    {"socket", {AF_INET6, SOCK_RAW | SOCK_CLOEXEC, 0}, EPERM},
    {"socket", {AF_INET, SOCK_PACKET, 0}, EPERM},
    {"socket", {AF_INET, SOCK_STREAM, 132}, EPROTONOSUPPORT},  // SCTP
    {"socket", {AF_INET, SOCK_DGRAM, 1}, EPROTONOSUPPORT},     // ICMP
    {"socket", {AF_NETLINK, SOCK_RAW, 9}, EPROTONOSUPPORT},    // NETLINK_AUDIT
    {"socketpair", {AF_INET, SOCK_STREAM, 0, 0}, EAFNOSUPPORT},
    {"ioctl", {kBadFd, TIOCSTI}, EPERM},
    {"ioctl", {kBadFd, TIOCSTI | kHigh}, EPERM},
    {"ioctl", {kBadFd, TIOCLINUX}, EPERM},
    {"ioctl", {kBadFd, TIOCSETD}, EPERM},
    {"ioctl", {kBadFd, TIOCCONS}, EPERM},
    {"personality", {PER_LINUX32}, EPERM},
    {"personality", {READ_IMPLIES_EXEC}, EPERM},
    {"personality", {ADDR_NO_RANDOMIZE | MMAP_PAGE_ZERO}, EPERM},
    {"prctl", {PR_SET_MM}, EPERM},
    {"prctl", {PR_SET_MM | kHigh}, EPERM},
    {"prctl", {PR_SET_SPECULATION_CTRL}, EPERM},
    {"prctl", {PR_SCHED_CORE}, EINVAL},
    {"prctl", {67}, EINVAL},  // PR_SET_MEMORY_MERGE
    {"seccomp", {SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER}, EPERM},
    {"seccomp", {SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | kHigh}, EPERM},
    {"chmod", {0, 04755}, EPERM},
    {"fchmod", {kBadFd, 02755}, EPERM},
    {"fchmod", {kBadFd, 0xffffffff'ffff0000 | 04755}, EPERM},
    {"fchmodat", {kBadFd, 0, 06000}, EPERM},
    {"fchmodat2", {kBadFd, 0, 04000}, EPERM},
    {"open", {0, O_CREAT, 04755}, EPERM},
    {"openat", {kBadFd, 0, O_CREAT | O_WRONLY, 02755}, EPERM},
    {"openat", {kBadFd, 0, O_TMPFILE | O_RDWR, 04755}, EPERM},
    {"openat", {kBadFd, 0, O_CREAT | kHigh, 04755 | kHigh}, EPERM},
    {"creat", {0, 04755}, EPERM},
    {"mkdir", {0, 02755}, EPERM},
    {"mkdirat", {kBadFd, 0, 04755}, EPERM},
    {"mknod", {0, S_IFCHR | 0666, 0x103}, EPERM},
    {"mknodat", {kBadFd, 0, S_IFBLK | 0666, 0x103}, EPERM},
    {"mknodat", {kBadFd, 0, S_IFREG | 04755}, EPERM},
    {"mmap", {0, 4096, 0, MAP_HUGETLB | MAP_PRIVATE | MAP_ANONYMOUS, kBadFd, 0}, ENOMEM},
    {"memfd_create", {0, MFD_HUGETLB}, ENOMEM},
    {"madvise", {0, 0, MADV_MERGEABLE}, EINVAL},
    {"sched_setscheduler", {0, SCHED_FIFO}, EPERM},
    {"sched_setscheduler", {0, SCHED_RR | SCHED_RESET_ON_FORK | kHigh}, EPERM},
    {"sched_setattr", {}, EPERM},
    {"ioprio_set", {1, 0, 1 << 13}, EPERM},
    {"move_pages", {1}, EPERM},
    {"migrate_pages", {1}, EPERM},
};

constexpr Probe kLetThrough[] = {
    {"openat", {kBadFd, 0, O_RDONLY, 07777}, kAllowed},  // a mode is rubbish where nothing is created
    {"openat", {kBadFd, 0, O_DIRECTORY | O_RDONLY, 07777}, kAllowed},
    {"openat", {kBadFd, 0, O_CREAT | O_WRONLY, 0666}, kAllowed},
    {"mknod", {0, S_IFIFO | 0600}, kAllowed},
    {"mknod", {0, 0600}, kAllowed},
    {"chmod", {0, 01777}, kAllowed},
    {"socket", {AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0}, kAllowed},
    {"socket", {AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 6}, kAllowed},
    {"socket", {AF_INET, SOCK_DGRAM, 17}, kAllowed},
    {"socket", {AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0}, kAllowed},
    {"socketpair", {AF_UNIX, SOCK_STREAM}, kAllowed},
    {"ioctl", {kBadFd, TCGETS}, kAllowed},
    {"personality", {0xffffffff}, kAllowed},
    {"personality", {ADDR_NO_RANDOMIZE}, kAllowed},
    {"clone", {CLONE_VM | CLONE_THREAD | CLONE_FS | 0x80}, kAllowed},
    {"unshare", {CLONE_FILES | CLONE_FS}, kAllowed},
    {"seccomp", {SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC}, kAllowed},
    {"sched_setscheduler", {0, SCHED_BATCH | SCHED_RESET_ON_FORK}, kAllowed},
    {"ioprio_set", {1, 0, 3 << 13}, kAllowed},
    {"mmap", {0, 4096, 0, MAP_PRIVATE | MAP_ANONYMOUS}, kAllowed},
    {"madvise", {0, 0, MADV_DONTNEED}, kAllowed},
    {"prctl", {PR_SET_NAME}, kAllowed},
    // What the sandbox's init needs
    {"waitid", {}, kAllowed},
    {"wait4", {}, kAllowed},
    {"clone", {SIGCHLD}, kAllowed},
    {"vfork", {}, kAllowed},
    {"execve", {}, kAllowed},
    {"read", {}, kAllowed},
    {"write", {}, kAllowed},
    {"poll", {}, kAllowed},
    {"ppoll", {}, kAllowed},
    {"sendmsg", {}, kAllowed},
    {"recvmsg", {}, kAllowed},
    {"statfs", {}, kAllowed},
    {"fstatfs", {}, kAllowed},
    {"kill", {}, kAllowed},
    {"exit_group", {}, kAllowed},
    {"prctl", {PR_SET_PDEATHSIG}, kAllowed},
};

std::string describe(const Probe& probe) {
  return fmt::format("{}({:#x}, {:#x}, {:#x}, {:#x})", probe.name, probe.arguments[0], probe.arguments[1],
                     probe.arguments[2], probe.arguments[3]);
}

seccomp_data call_of(const Probe& probe) {
  seccomp_data call{};
  call.arch = AUDIT_ARCH_X86_64;
  call.nr = static_cast<int>(find_syscall(x86_64_syscalls(), probe.name)->number);
  std::ranges::copy(probe.arguments, call.args);
  return call;
}

bool install() {
  const auto program = container_profile().program;
  const sock_fprog filter{static_cast<unsigned short>(program.size()), const_cast<sock_filter*>(program.data())};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

enum class Filter : std::uint8_t { on, off };

struct ChildResult {
  int status;          // waitpid(2)
  std::string output;  // of its stdout and stderr
};

// Runs `body` in a child process; its return value is the exit status.
ChildResult in_child(Filter filter, const std::function<int()>& body) {
  auto pipe = make_pipe();
  EXPECT_TRUE(pipe);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::dup2(pipe->write.get(), 1) < 0 || ::dup2(pipe->write.get(), 2) < 0) ::_exit(99);
    if (filter == Filter::on && !install()) ::_exit(98);
    ::_exit(body());
  }
  pipe->write.reset();
  ChildResult result{};
  result.output = read_all(pipe->read.get(), 1 << 20).value_or("");
  EXPECT_EQ(::waitpid(child, &result.status, 0), child);
  return result;
}

// The errno of each refused probe, made for real. 0 where it succeeded.
std::vector<int> real_answers(Filter filter) {
  constexpr std::size_t kCount = std::size(kRefused);
  std::vector<int> answers(kCount, -1);
  const auto child = in_child(filter, [] {
    std::array<int, kCount> errors{};
    const pid_t self = ::getpid();
    for (std::size_t i = 0; i < kCount; ++i) {
      const seccomp_data call = call_of(kRefused[i]);
      errno = 0;
      const long result =
          ::syscall(call.nr, call.args[0], call.args[1], call.args[2], call.args[3], call.args[4], call.args[5]);
      errors[i] = result < 0 ? errno : 0;
      if (::getpid() != self) ::_exit(0);  // a clone got through: this is its child
    }
    return ::write(1, errors.data(), sizeof errors) == sizeof errors ? 0 : 97;
  });
  EXPECT_EQ(child.status, 0);
  EXPECT_EQ(child.output.size(), kCount * sizeof(int));
  if (child.output.size() == kCount * sizeof(int))
    std::memcpy(answers.data(), child.output.data(), child.output.size());
  return answers;
}

TEST(ContainerFilter, AnswersAsTheGoldenTablesSay) {
  const auto program = container_profile().program;
  for (const Probe& probe : kRefused) {
    EXPECT_EQ(evaluate_filter(program, call_of(probe)), SECCOMP_RET_ERRNO | static_cast<unsigned>(probe.expected))
        << describe(probe);
  }
  for (const Probe& probe : kLetThrough) {
    EXPECT_EQ(evaluate_filter(program, call_of(probe)), SECCOMP_RET_ALLOW) << describe(probe);
  }
}

TEST(ContainerFilter, RefusesOtherEntriesWholly) {
  const auto program = container_profile().program;
  for (std::uint32_t number = 0; number < 1024; ++number) {
    seccomp_data call{};
    call.arch = AUDIT_ARCH_X86_64;
    call.nr = static_cast<int>(number | kX32Bit);
    EXPECT_EQ(evaluate_filter(program, call), SECCOMP_RET_ERRNO | ENOSYS) << "x32 " << number;
    call.nr = static_cast<int>(number);
    for (const std::uint32_t machine : std::initializer_list<std::uint32_t>{AUDIT_ARCH_I386, AUDIT_ARCH_AARCH64}) {
      call.arch = machine;
      EXPECT_EQ(evaluate_filter(program, call), SECCOMP_RET_ERRNO | ENOSYS) << "machine " << machine << ", " << number;
    }
  }
  seccomp_data call{};
  call.arch = AUDIT_ARCH_X86_64;
  for (const int number : {471, 0x3fffffff, -1, -2}) {
    call.nr = number;
    EXPECT_EQ(evaluate_filter(program, call), SECCOMP_RET_ERRNO | ENOSYS) << number;
  }
}

TEST(ContainerFilter, TheKernelGivesTheSameAnswers) {
  const auto answers = real_answers(Filter::on);
  for (std::size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i], kRefused[i].expected) << describe(kRefused[i]);
}

// The control: without the filter many of the same calls are answered otherwise.
TEST(ContainerFilter, WithoutItTheAnswersDiffer) {
  std::size_t different = 0;
  const auto answers = real_answers(Filter::off);
  for (std::size_t i = 0; i < answers.size(); ++i) different += answers[i] != kRefused[i].expected;
  EXPECT_GE(different, 20u);
}

long enter_by_int80(long number) {
  long result;
  asm volatile("int $0x80" : "=a"(result) : "a"(number), "b"(0), "c"(0), "d"(0) : "memory", "r8", "r9", "r10", "r11");
  return result;
}

TEST(ContainerFilter, Int80IsRefusedByTheKernel) {
  constexpr long kGetpid = 20;  // i386
  const auto child = in_child(Filter::on, [] { return enter_by_int80(kGetpid) == -ENOSYS ? 0 : 1; });
  // A kernel that serves no 32-bit code at all makes it a fault.
  const bool faulted = WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGSEGV;
  EXPECT_TRUE(child.status == 0 || faulted) << child.status;
  const auto control = in_child(Filter::off, [] { return enter_by_int80(kGetpid) == ::getpid() ? 0 : 1; });
  EXPECT_EQ(WIFSIGNALED(control.status), faulted) << control.status;
}

TEST(ContainerFilter, X32NumbersAreRefusedByTheKernel) {
  const auto child = in_child(Filter::on, [] {
    for (long number = 0; number < 600; ++number) {
      if (::syscall(number | kX32Bit, 0, 0, 0, 0, 0, 0) != -1 || errno != ENOSYS) return 1;
    }
    return 0;
  });
  EXPECT_EQ(child.status, 0);
}

TEST(ContainerFilter, FilesInWrittenFoldersNeverBecomeSetuid) {
  char folder[] = "/tmp/belljar-filter-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/file";
  const auto attempt = [&path] {
    ::close(::open(path.c_str(), O_CREAT | O_WRONLY, 04755));
    ::close(::open(path.c_str(), O_CREAT | O_WRONLY, 0755));
    (void)::chmod(path.c_str(), 04755);
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return 1;
    return (status.st_mode & (S_ISUID | S_ISGID)) == 0 ? 0 : 2;
  };
  EXPECT_EQ(in_child(Filter::on, attempt).status, 0);
  EXPECT_EQ(WEXITSTATUS(in_child(Filter::off, attempt).status), 2);  // the control
  ::unlink(path.c_str());
  ::rmdir(folder);
}

struct Program {
  std::vector<const char*> command;
  std::string output;
};

// Runs where the program is installed.
TEST(ContainerFilter, OrdinaryProgramsRun) {
  const Program programs[] = {
      {{"/bin/sh", "-c", "echo a | cat; (exit 3) & wait $!; echo $?"}, "a\n3\n"},
      {{"/usr/bin/python3", "-c",
        "import threading, multiprocessing, asyncio, subprocess, socket\n"
        "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
        "with multiprocessing.get_context('fork').Pool(2) as p: print(p.map(abs, [-1, 2]), flush=True)\n"
        "async def main():\n"
        "  p = await asyncio.create_subprocess_exec('echo', 'child', stdout=-1); print((await p.communicate())[0])\n"
        "asyncio.run(main())\n"
        "print(subprocess.run(['true']).returncode, socket.getaddrinfo('127.0.0.1', 80)[0][4])\n"},
       "thread\n[1, 2]\nb'child\\n'\n0 ('127.0.0.1', 80)\n"},
      {{"/usr/bin/perl", "-e", "print `echo perl`; print fork() ? (wait() > 0) : ''"}, "perl\n1"},
      {{"/usr/bin/node", "-e",
        "require('fs').readFile('/dev/null', () => console.log('node', require('child_process').execSync('echo x') + "
        "''))"},
       "node x\n\n"},
      {{"/usr/bin/sqlite3", ":memory:", "select 6 * 7"}, "42\n"},
      {{"/bin/busybox", "sh", "-c", "echo busy | tr a-z A-Z"}, "BUSY\n"},
      {{"/usr/bin/git", "check-ref-format", "--branch", "main"}, "main\n"},
  };
  std::size_t run = 0;
  for (const Program& program : programs) {
    if (::access(program.command[0], X_OK) != 0) continue;
    const auto child = in_child(Filter::on, [&program] {
      std::vector<char*> arguments;
      for (const char* argument : program.command) arguments.push_back(const_cast<char*>(argument));
      arguments.push_back(nullptr);
      ::execv(arguments[0], arguments.data());
      return 127;
    });
    EXPECT_EQ(child.status, 0) << program.command[0] << ": " << child.output;
    EXPECT_EQ(child.output, program.output) << program.command[0];
    ++run;
  }
  EXPECT_GE(run, 2u);
}

}  // namespace
}  // namespace belljar
