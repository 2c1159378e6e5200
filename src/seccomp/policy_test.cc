#include "seccomp/policy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/socket.h>

#include <algorithm>
#include <set>

#include "seccomp/constants.h"
#include "seccomp/evaluator.h"
#include "seccomp/test_policies.h"
#include "spec/errors.h"

namespace belljar {
namespace {

using testing::HasSubstr;

// The message for a policy of the usual head and `rows`.
std::string error_of(const std::string& rows) {
  const auto policy = parse_policy(std::string(kPolicyHead) + rows, "p");
  if (policy) return "no error";
  EXPECT_EQ(policy.error().code, ErrorCode::bad_policy);
  EXPECT_EQ(policy.error().message.find('\n'), std::string::npos);
  return policy.error().message;
}

std::uint32_t decide(const std::string& rows, std::string_view name, std::uint64_t argument0,
                     std::uint64_t argument1 = 0) {
  const auto policy = parse_policy(std::string(kPolicyHead) + rows, "p");
  if (!policy) {
    ADD_FAILURE() << policy.error().message;
    return 0;
  }
  seccomp_data call{};
  call.arch = policy->table->audit_arch;
  call.nr = static_cast<int>(find_syscall(*policy->table, name)->number);
  call.args[0] = argument0;
  call.args[1] = argument1;
  return evaluate_policy(*policy, call);
}

constexpr std::uint32_t kEperm = SECCOMP_RET_ERRNO | EPERM;
constexpr std::uint32_t kDefault = SECCOMP_RET_ERRNO | ENOSYS;

TEST(Policy, TheFirstRowThatHoldsDecides) {
  const std::string rows = "errno EPERM socket if domain == AF_UNIX: a\nallow socket if domain in {1, AF_INET}: b\n";
  EXPECT_EQ(decide(rows, "socket", AF_UNIX), kEperm);
  EXPECT_EQ(decide(rows, "socket", AF_INET), SECCOMP_RET_ALLOW);
  EXPECT_EQ(decide(rows, "socket", AF_INET6), kDefault);
}

TEST(Policy, ConditionsLookAtTheBitsThatTheKernelLooksAt) {
  const std::string rows =
      "errno EPERM ioctl if command == TIOCSTI: a\nallow ioctl: b\nallow unshare if flags == 0: c\n";
  EXPECT_EQ(decide(rows, "ioctl", 0, 0x5412), kEperm);
  EXPECT_EQ(decide(rows, "ioctl", 0, 0x1'0000'5412), kEperm);
  EXPECT_EQ(decide(rows, "ioctl", 0, 0x5413), SECCOMP_RET_ALLOW);
  EXPECT_EQ(decide(rows, "unshare", 0), SECCOMP_RET_ALLOW);
  EXPECT_EQ(decide(rows, "unshare", 0x1'0000'0000), kDefault);
}

TEST(Policy, ValuesCombine) {
  const std::string rows = "allow unshare if flags & ~(0x10 | (CLONE_FS|010)) == 0x1: a\n";
  EXPECT_EQ(decide(rows, "unshare", 0x1), SECCOMP_RET_ALLOW);
  EXPECT_EQ(decide(rows, "unshare", 0x1 | 0x10 | CLONE_FS | 8), SECCOMP_RET_ALLOW);
  EXPECT_EQ(decide(rows, "unshare", 0x3), kDefault);
  EXPECT_EQ(decide(rows, "unshare", 0x8000'0000'0000'0001), kDefault);
}

TEST(Policy, NotInAndNotEqual) {
  EXPECT_EQ(decide("allow socket if domain not in {1, 2}: a\n", "socket", 2), kDefault);
  EXPECT_EQ(decide("allow socket if domain not in {1, 2}: a\n", "socket", 3), SECCOMP_RET_ALLOW);
  EXPECT_EQ(decide("allow socket if domain != 1 and type != 2: a\n", "socket", 2, 2), kDefault);
  EXPECT_EQ(decide("allow socket if domain != 1 and type != 2: a\n", "socket", 2, 3), SECCOMP_RET_ALLOW);
}

TEST(Policy, RowsGoOnWhereLinesBeginWithABlank) {
  const auto policy =
      parse_policy(std::string(kPolicyHead) + "# note\nallow read,\n  write\n  : because\n  of it\n", "p");
  ASSERT_TRUE(policy) << policy.error().message;
  ASSERT_EQ(policy->rows.size(), 2u);
  EXPECT_EQ(policy->rows[1].syscall->name, "write");
  EXPECT_EQ(policy->rows[1].reason, "because of it");
}

TEST(Policy, MessagesSayWhereWhatAndWhatWouldBeRight) {
  EXPECT_EQ(error_of("allow read\n"), "p:5: the row gives no reason; end it with ': why'");
  EXPECT_EQ(error_of("allow read:  \n"), "p:5: the row gives no reason; end it with ': why'");
  EXPECT_EQ(error_of("\n\nallow reed: x\n"),
            "p:7: expected a syscall that syscalls_x86_64.def lists, but found 'reed'");
  EXPECT_EQ(error_of("permit read: x\n"),
            "p:5: expected allow, errno, trap, kill, policy, default, unknown or foreign, but found 'permit'");
  EXPECT_EQ(error_of("errno EBOGUS read: x\n"), "p:5: expected the name of an errno such as EPERM, but found 'EBOGUS'");
  EXPECT_EQ(error_of("allow read if fd == 1: x\n"),
            "p:5: read has no argument 'fd'; its arguments are: none written down (add them to syscalls_x86_64.def)");
  EXPECT_THAT(error_of("allow socket if family == 1: x\n"),
              HasSubstr("its arguments are: domain:32 type:32 protocol:32"));
  EXPECT_THAT(error_of("allow socket if domain == AF_NOPE: x\n"), HasSubstr("a constant that constants.cc lists"));
  EXPECT_THAT(error_of("allow socket if domain & 1 | 2 == 0: x\n"), HasSubstr("a mask of several bits takes brackets"));
  EXPECT_THAT(error_of("allow socket if domain == 1 or type == 2: x\n"), HasSubstr("expected 'and'"));
  EXPECT_THAT(error_of("allow socket if : x\n"), HasSubstr("expected the name of an argument, but the row ends"));
  EXPECT_THAT(error_of("allow read write: x\n"), HasSubstr("expected ',', 'if', or ':'"));
  EXPECT_THAT(error_of("allow : x\n"), HasSubstr("expected a syscall"));
  EXPECT_THAT(error_of("allow read\xc3\xa9: x\n"), HasSubstr("p:5: byte 0xc3"));
  EXPECT_THAT(error_of("allow read: x\r\n"), HasSubstr("p:5: byte 0x0d"));
}

TEST(Policy, RefusesRowsThatCanNeverMatter) {
  EXPECT_THAT(error_of("allow read: x\nallow read: y\n"), HasSubstr("p:6: an earlier row decides every read"));
  EXPECT_THAT(error_of("allow read, read: x\n"), HasSubstr("an earlier row decides every read"));
  EXPECT_THAT(error_of("allow socket if domain == 0x100000000: x\n"),
              HasSubstr("can never be 0x100000000: it has 32 bits"));
  EXPECT_THAT(error_of("allow socket if type & 0xf == 0x10: x\n"), HasSubstr("can never be 0x10"));
  EXPECT_THAT(error_of("allow chmod if mode & 0x10000 == 0: x\n"),
              HasSubstr("the mask leaves nothing of chmod's mode"));
}

TEST(Policy, RefusesNumbersThatAreNotNumbers) {
  for (const char* number : {"0x", "09", "1a", "0xg", "18446744073709551616", "0x10000000000000000"}) {
    EXPECT_THAT(error_of(fmt::format("allow unshare if flags == {}: x\n", number)), HasSubstr("a 64-bit number"))
        << number;
  }
  EXPECT_EQ(decide("allow unshare if flags == 18446744073709551615: x\n", "unshare", ~0ull), SECCOMP_RET_ALLOW);
}

TEST(Policy, EveryPartIsBounded) {
  EXPECT_THAT(error_of(fmt::format("allow unshare if flags == {}1: x\n", std::string(9, '~'))),
              HasSubstr("nests at most 8 deep"));
  EXPECT_EQ(error_of(fmt::format("allow unshare if flags == {}1: x\n", std::string(8, '~'))), "no error");
  EXPECT_THAT(error_of(fmt::format("allow unshare if flags == {}: x\n", std::string(100000, '('))),
              HasSubstr("at most 4096 bytes"));
  std::string values = "0";
  for (int i = 1; i < 17; ++i) values += fmt::format(",{}", i);
  EXPECT_THAT(error_of(fmt::format("allow socket if domain in {{{}}}: x\n", values)), HasSubstr("at most 16 values"));
  std::string conditions = "domain == 0";
  for (int i = 1; i < 9; ++i) conditions += " and domain == 0";
  EXPECT_THAT(error_of(fmt::format("allow socket if {}: x\n", conditions)), HasSubstr("at most 8 conditions"));
  std::string rows;
  for (int i = 0; i < 17; ++i) rows += "allow socket if domain == 0: x\n";
  EXPECT_THAT(error_of(rows), HasSubstr("more than 16 rows"));
  EXPECT_THAT(error_of(std::string(300000, '\n')), HasSubstr("at most 262144 bytes"));
}

TEST(Policy, FallbacksAreSaidOnceAndNeverAllow) {
  EXPECT_THAT(error_of("default errno EPERM: x\n"), HasSubstr("this was said before"));
  EXPECT_THAT(error_of("policy again\n"), HasSubstr("has a name already"));
  const auto message = [](std::string_view text) {
    const auto policy = parse_policy(text, "p");
    return policy ? std::string("no error") : policy.error().message;
  };
  EXPECT_THAT(message(""), HasSubstr("the policy has no name"));
  EXPECT_THAT(message("policy a b\n"), HasSubstr("nothing after the name"));
  EXPECT_THAT(message("  policy a\n"), HasSubstr("starts in the first column"));
  EXPECT_THAT(message("policy a\ndefault allow: x\n"), HasSubstr("is refused"));
  EXPECT_THAT(message("policy a\n"), HasSubstr("add 'default"));
  EXPECT_THAT(message("policy a\ndefault kill: x\n"), HasSubstr("add 'unknown"));
  EXPECT_THAT(message("policy a\ndefault kill: x\nunknown trap: x\n"), HasSubstr("add 'foreign"));
}

TEST(SyscallTable, AgreesWithLibseccomp) {
  std::size_t compared = 0;
  for (const Syscall& syscall : x86_64_syscalls().syscalls) {
    const int number = ::seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, std::string(syscall.name).c_str());
    if (number < 0) continue;  // newer than the library
    EXPECT_EQ(static_cast<std::uint32_t>(number), syscall.number) << syscall.name;
    ++compared;
  }
  EXPECT_GE(compared, 350u);
}

TEST(SyscallTable, ArgumentsAreWellFormed) {
  for (const Syscall& syscall : x86_64_syscalls().syscalls) {
    std::string_view rest = syscall.arguments;
    for (std::size_t position = 0; !rest.empty(); ++position) {
      const std::string_view item = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), item.size() + 1));
      SyscallArgument argument{};
      ASSERT_TRUE(find_argument(syscall, item.substr(0, item.find(':')), argument)) << syscall.name;
      EXPECT_EQ(argument.position, position) << syscall.name << ": a name stands twice";
      EXPECT_LT(position, 6u) << syscall.name;
      EXPECT_EQ(fmt::format("{}", argument.width_bits), item.substr(item.find(':') + 1)) << syscall.name;
    }
  }
}

TEST(Constants, ErrnoNamesGoBothWays) {
  EXPECT_EQ(find_errno("EPERM"), EPERM);
  EXPECT_EQ(errno_name(EAFNOSUPPORT), "EAFNOSUPPORT");
  EXPECT_FALSE(find_errno(""));
  EXPECT_FALSE(find_errno("EPERMX"));
}

TEST(ContainerPolicy, HasARowForEverySyscall) {
  std::set<std::string_view> named;
  for (const PolicyRow& row : container_policy().rows) named.insert(row.syscall->name);
  for (const Syscall& syscall : x86_64_syscalls().syscalls) {
    EXPECT_TRUE(named.contains(syscall.name)) << syscall.name << " has no row in container.policy";
  }
}

}  // namespace
}  // namespace belljar
