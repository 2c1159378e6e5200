// The two filters of the kernel tier, taken apart: which calls pass at all, and with which arguments.
#include <asm/ioctls.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <set>
#include <string>
#include <vector>

#include "seccomp/evaluator.h"
#include "seccomp/filter.h"
#include "seccomp/syscall_table.h"

namespace belljar {
namespace {

using ::testing::ElementsAreArray;
using ::testing::Le;
using ::testing::SizeIs;

constexpr std::uint32_t kNumbers = 1024;

seccomp_data call_of(std::uint32_t number, std::initializer_list<std::uint64_t> arguments = {}) {
  seccomp_data call{};
  call.arch = AUDIT_ARCH_X86_64;
  call.nr = static_cast<int>(number);
  std::size_t at = 0;
  for (const std::uint64_t argument : arguments) call.args[at++] = argument;
  return call;
}

bool passes(const CompiledProfile& profile, std::uint32_t number, std::initializer_list<std::uint64_t> arguments = {}) {
  const auto answer = evaluate_filter(profile.program, call_of(number, arguments));
  EXPECT_TRUE(answer.has_value());
  EXPECT_TRUE(answer == SECCOMP_RET_ALLOW || answer == SECCOMP_RET_KILL_PROCESS) << number;
  return answer == SECCOMP_RET_ALLOW;
}

// Where the filter looks at an argument, the answer is not constant: such a number counts as one that may pass.
std::set<std::string> may_pass(const CompiledProfile& profile) {
  std::set<std::string> names;
  for (std::uint32_t number = 0; number < kNumbers; ++number) {
    const auto answer = constant_answer(profile.program, AUDIT_ARCH_X86_64, number);
    if (answer == SECCOMP_RET_KILL_PROCESS) continue;
    std::string name = "number " + std::to_string(number);
    for (const Syscall& row : x86_64_syscalls().syscalls) {
      if (row.number == number) name = row.name;
    }
    names.insert(name);
  }
  return names;
}

void expect_other_entries_killed(const CompiledProfile& profile) {
  constexpr std::uint32_t kX32Bit = 0x4000'0000;
  for (std::uint32_t number = 0; number < kNumbers; ++number) {
    EXPECT_FALSE(passes(profile, number | kX32Bit)) << number;
    seccomp_data call = call_of(number);
    call.arch = AUDIT_ARCH_I386;
    EXPECT_EQ(evaluate_filter(profile.program, call), SECCOMP_RET_KILL_PROCESS) << number;
  }
}

TEST(KernelFilter, LetsFewCallsPass) {
  const std::set<std::string> names = may_pass(kernel_profile());
  EXPECT_THAT(names, SizeIs(Le(25U)));
  const std::set<std::string> expected = {
      "clock_gettime", "clone",  "exit",   "exit_group",      "futex",        "madvise",     "membarrier",  "mmap",
      "mprotect",      "mremap", "munmap", "restart_syscall", "rt_sigreturn", "sched_yield", "sigaltstack", "tgkill"};
  EXPECT_THAT(names, ElementsAreArray(expected));
  expect_other_entries_killed(kernel_profile());
}

TEST(KernelFilter, LooksAtArguments) {
  const CompiledProfile& profile = kernel_profile();
  constexpr std::uint64_t kNone = ~0ULL;
  EXPECT_TRUE(passes(profile, SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, kNone, 0}));
  EXPECT_TRUE(passes(profile, SYS_mmap, {0, 4096, PROT_READ, MAP_SHARED | MAP_FIXED, 3, 0}));
  EXPECT_TRUE(passes(profile, SYS_mmap, {0, 4096, PROT_READ, MAP_SHARED, 5, 0}));
  EXPECT_FALSE(passes(profile, SYS_mmap, {0, 4096, PROT_READ, MAP_SHARED, 6, 0}));
  EXPECT_FALSE(passes(profile, SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, kNone, 0}));
  EXPECT_FALSE(passes(profile, SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, kNone, 0}));
  constexpr std::uint64_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                                    CLONE_PARENT_SETTID | CLONE_CHILD_SETTID;
  constexpr std::uint64_t kProcess = SIGCHLD | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID;
  for (const std::uint64_t flags : {kThread, kProcess}) {
    EXPECT_TRUE(passes(profile, SYS_clone, {flags}));
    for (const std::uint64_t more : {CLONE_NEWUSER, CLONE_NEWNS, CLONE_PARENT, CLONE_VFORK, CLONE_PTRACE}) {
      EXPECT_FALSE(passes(profile, SYS_clone, {flags | more})) << more;
    }
  }
  EXPECT_FALSE(passes(profile, SYS_clone, {SIGCHLD}));
  EXPECT_TRUE(passes(profile, SYS_futex, {0, FUTEX_WAIT}));
  EXPECT_FALSE(passes(profile, SYS_futex, {0, FUTEX_LOCK_PI}));
  EXPECT_TRUE(passes(profile, SYS_madvise, {0, 4096, MADV_DONTNEED}));
  EXPECT_FALSE(passes(profile, SYS_madvise, {0, 4096, MADV_MERGEABLE}));
  EXPECT_TRUE(passes(profile, SYS_tgkill, {1, 1, 62}));
  EXPECT_FALSE(passes(profile, SYS_tgkill, {1, 1, SIGKILL}));
  EXPECT_FALSE(passes(profile, SYS_membarrier, {MEMBARRIER_CMD_GLOBAL}));
}

TEST(BrokerFilter, LetsFewCallsPass) {
  const std::set<std::string> expected = {"brk",
                                          "clock_gettime",
                                          "close",
                                          "exit",
                                          "exit_group",
                                          "fcntl",
                                          "fstat",
                                          "futex",
                                          "getdents64",
                                          "getpid",
                                          "getrandom",
                                          "ioctl",
                                          "kill",
                                          "lseek",
                                          "madvise",
                                          "mmap",
                                          "mprotect",
                                          "mremap",
                                          "munmap",
                                          "newfstatat",
                                          "openat",
                                          "pread64",
                                          "read",
                                          "readlinkat",
                                          "recvfrom",
                                          "restart_syscall",
                                          "rseq",
                                          "rt_sigaction",
                                          "rt_sigprocmask",
                                          "rt_sigtimedwait",
                                          "sched_getaffinity",
                                          "sched_yield",
                                          "sendmsg",
                                          "set_robust_list",
                                          "wait4",
                                          "write"};
  EXPECT_THAT(may_pass(broker_profile()), ElementsAreArray(expected));
  expect_other_entries_killed(broker_profile());
}

TEST(BrokerFilter, LooksAtArguments) {
  const CompiledProfile& profile = broker_profile();
  for (const std::uint64_t flags : {O_RDONLY | O_CLOEXEC, O_PATH | O_DIRECTORY | O_NOFOLLOW}) {
    EXPECT_TRUE(passes(profile, SYS_openat, {3, 0, flags}));
  }
  for (const std::uint64_t flags : {O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_TMPFILE | O_WRONLY}) {
    EXPECT_FALSE(passes(profile, SYS_openat, {3, 0, flags})) << flags;
  }
  EXPECT_TRUE(passes(profile, SYS_ioctl, {0, TIOCGWINSZ}));
  for (const std::uint64_t request : {TIOCSTI, TIOCSCTTY, TCSETS, TIOCLINUX}) {
    EXPECT_FALSE(passes(profile, SYS_ioctl, {0, request})) << request;
  }
  EXPECT_TRUE(passes(profile, SYS_fcntl, {0, F_SETFD}));
  for (const std::uint64_t command : {F_SETFL, F_DUPFD, F_SETOWN}) {
    EXPECT_FALSE(passes(profile, SYS_fcntl, {0, command})) << command;
  }
  EXPECT_FALSE(passes(profile, SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC}));
  EXPECT_FALSE(passes(profile, SYS_mprotect, {0, 4096, PROT_EXEC}));
}

}  // namespace
}  // namespace belljar
