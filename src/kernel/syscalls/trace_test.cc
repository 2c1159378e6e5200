#include "kernel/syscalls/trace.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <string>

#include "kernel/base/hosted.h"
#include "kernel/syscalls/call_hosted.h"

namespace belljar::kernel {

namespace {
std::string last_line;
}

void trace_line(std::string_view line) {
  last_line = line;
}

namespace {

template <typename... Arguments>
std::string traced(std::uint64_t number, const SyscallResult& result, Arguments... arguments) {
  trace_call(number, SyscallArguments{{as_argument(arguments)...}}, &result);
  return last_line;
}

TEST(Trace, PathsAndFlagsHaveNames) {
  HostedKernel kernel;
  EXPECT_EQ(traced(SYS_openat, 3, AT_FDCWD, "/etc/passwd", O_RDONLY | O_CLOEXEC, 0),
            "[1] openat(AT_FDCWD, \"/etc/passwd\", O_CLOEXEC, 00) = 3");
  EXPECT_EQ(traced(SYS_open, error(ENOENT), "/none", O_RDONLY, 0), "[1] open(\"/none\", O_RDONLY, 00) = -1 ENOENT");
  EXPECT_EQ(traced(SYS_mmap, 0x7f00'0000'0000, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            "[1] mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0x0) = 0x7f0000000000");
  EXPECT_EQ(traced(SYS_kill, 0, 7, SIGTERM), "[1] kill(7, SIGTERM) = 0");
}

TEST(Trace, BytesAreCutAndEscaped) {
  HostedKernel kernel;
  EXPECT_EQ(traced(SYS_write, 5, 1, "a\n\"\x01z", 5), "[1] write(1, \"a\\n\\\"\\x01z\", 5) = 5");
  const std::string text(50, 'x');
  EXPECT_EQ(traced(SYS_read, 50, 0, text.c_str(), 100), "[1] read(0, \"" + std::string(32, 'x') + "\"..., 100) = 50");
  EXPECT_EQ(traced(SYS_read, error(EAGAIN), 0, 0, 100), "[1] read(0, NULL, 100) = -1 EAGAIN");
}

TEST(Trace, WrongAddressesAreNumbers) {
  HostedKernel kernel;
  EXPECT_EQ(traced(SYS_chdir, error(EFAULT), 0x10000), "[1] chdir(0x10000) = -1 EFAULT");
}

TEST(Trace, UnknownCallsAreNumbers) {
  HostedKernel kernel;
  EXPECT_EQ(traced(999, error(ENOSYS)), "[1] syscall_999(0x0, 0x0, 0x0, 0x0, 0x0, 0x0) = -1 ENOSYS");
}

TEST(Trace, CallsThatDoNotComeBackAreToldBefore) {
  HostedKernel kernel;
  EXPECT_TRUE(is_traced_before(SYS_exit_group));
  EXPECT_FALSE(is_traced_before(SYS_read));
  trace_call(SYS_exit_group, SyscallArguments{{3}}, nullptr);
  EXPECT_EQ(last_line, "[1] exit_group(3)");
}

}  // namespace
}  // namespace belljar::kernel
