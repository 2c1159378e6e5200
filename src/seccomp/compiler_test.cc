#include "seccomp/compiler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "seccomp/evaluator.h"
#include "seccomp/filter.h"
#include "seccomp/test_policies.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr int kRandomPolicies = 150;
constexpr std::size_t kOracleRulesMax = 20;  // libseccomp takes minutes for many rules that overlap
constexpr std::size_t kOracleRulesMaxOfRandom = 1;
constexpr int kCallsPerPolicy = 2000;

std::string describe(const seccomp_data& call) {
  return fmt::format("number {} machine {:#x} arguments {:#x} {:#x} {:#x} {:#x} {:#x} {:#x}", call.nr, call.arch,
                     call.args[0], call.args[1], call.args[2], call.args[3], call.args[4], call.args[5]);
}

std::vector<sock_filter> compiled(const Policy& policy) {
  auto program = compile_policy(policy);
  if (!program) {
    ADD_FAILURE() << program.error().message;
    return {};
  }
  return std::move(*program);
}

Policy parsed(const std::string& text) {
  auto policy = parse_policy(text, "p");
  if (!policy) {
    ADD_FAILURE() << policy.error().message << "\n" << text;
    std::abort();
  }
  return std::move(*policy);
}

// libseccomp's filter for the same policy; SCMP_ACT_* are the kernel's values.
class Oracle {
 public:
  explicit Oracle(const Policy& policy) : context_(::seccomp_init(policy.other_known.action.seccomp_value())) {
    EXPECT_NE(context_, nullptr);
    EXPECT_EQ(::seccomp_attr_set(context_, SCMP_FLTATR_ACT_BADARCH, policy.other_entry.action.seccomp_value()), 0);
    for (const PolicyRow& row : policy.rows) add(row);
  }
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;
  ~Oracle() { ::seccomp_release(context_); }

  std::vector<sock_filter> program() const {
    Fd file(::memfd_create("filter", MFD_CLOEXEC));
    EXPECT_EQ(::seccomp_export_bpf(context_, file.get()), 0);
    EXPECT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
    const auto bytes = read_all(file.get(), 1 << 20);
    std::vector<sock_filter> result(bytes ? bytes->size() / sizeof(sock_filter) : 0);
    if (!result.empty()) std::memcpy(result.data(), bytes->data(), result.size() * sizeof(sock_filter));
    return result;
  }

 private:
  // A set becomes a rule for each combination of values, as libseccomp has no sets.
  void add(const PolicyRow& row) {
    std::vector<std::vector<scmp_arg_cmp>> rules = {{}};
    for (const Condition& condition : row.conditions) {
      std::vector<std::vector<scmp_arg_cmp>> longer;
      for (const auto& rule : rules) {
        for (const std::uint64_t value : condition.values) {
          longer.push_back(rule);
          longer.back().push_back(comparison(condition, value));
        }
      }
      rules = std::move(longer);
    }
    for (const auto& rule : rules) {
      EXPECT_EQ(
          ::seccomp_rule_add_exact_array(context_, row.action.seccomp_value(), static_cast<int>(row.syscall->number),
                                         static_cast<unsigned>(rule.size()), rule.data()),
          0)
          << row.syscall->name;
    }
  }

  // libseccomp has no masked inequality: random policies and the profile use != and not-in with one full-width value.
  static scmp_arg_cmp comparison(const Condition& condition, std::uint64_t value) {
    if (condition.membership == Membership::in)
      return {condition.argument.position, SCMP_CMP_MASKED_EQ, condition.mask, value};
    EXPECT_EQ(condition.mask, ~std::uint64_t{0});
    EXPECT_EQ(condition.values.size(), 1u);
    return {condition.argument.position, SCMP_CMP_NE, value, 0};
  }

  scmp_filter_ctx context_;
};

bool oracle_can_say(const PolicyRow& row, const Policy& policy, std::size_t rules_max) {
  if (row.action == policy.other_known.action) return false;  // libseccomp refuses such a rule
  std::uint32_t positions = 0;
  std::size_t rules = 1;
  for (const Condition& condition : row.conditions) {
    const std::uint32_t bit = 1u << condition.argument.position;
    if ((positions & bit) != 0) return false;  // one comparison for each argument
    positions |= bit;
    if (condition.membership == Membership::not_in && (condition.values.size() > 1 || ~condition.mask != 0)) {
      return false;
    }
    rules *= condition.values.size();
  }
  return rules <= rules_max;
}

void expect_same_answers(const Policy& policy, std::span<const sock_filter> ours, std::span<const sock_filter> theirs,
                         std::mt19937_64& random, int calls) {
  for (int i = 0; i < calls; ++i) {
    const seccomp_data call = random_call(policy, random);
    const auto answer = evaluate_filter(ours, call);
    ASSERT_EQ(answer, std::optional(evaluate_policy(policy, call))) << describe(call);
    if (theirs.empty()) continue;
    ASSERT_EQ(answer, evaluate_filter(theirs, call)) << describe(call);
  }
}

TEST(Compiler, AgreesWithTheRowsReadDirectly) {
  std::mt19937_64 random(1);
  const auto program = compiled(container_policy());
  expect_same_answers(container_policy(), program, {}, random, 300000);
}

TEST(Compiler, AgreesWithTheRowsOfRandomPolicies) {
  std::mt19937_64 random(6);
  for (int round = 0; round < kRandomPolicies; ++round) {
    const std::string text = random_policy_text(random, 4);
    const Policy policy = parsed(text);
    expect_same_answers(policy, compiled(policy), {}, random, kCallsPerPolicy);
    if (HasFatalFailure()) FAIL() << text;
  }
}

TEST(Compiler, AgreesWithLibseccompOnRandomPolicies) {
  std::mt19937_64 random(2);
  for (int round = 0; round < kRandomPolicies; ++round) {
    const std::string text = random_policy_text(random, 1);
    Policy policy = parsed(text);
    std::erase_if(policy.rows,
                  [&policy](const PolicyRow& row) { return !oracle_can_say(row, policy, kOracleRulesMaxOfRandom); });
    ASSERT_GT(policy.rows.size(), 50u);
    const auto theirs = Oracle(policy).program();
    ASSERT_FALSE(theirs.empty());
    expect_same_answers(policy, compiled(policy), theirs, random, kCallsPerPolicy);
    if (HasFatalFailure()) FAIL() << text;
  }
}

// libseccomp does not try rows in order, so each row of the profile is compared alone.
TEST(Compiler, AgreesWithLibseccompOnEachRowOfTheProfile) {
  std::mt19937_64 random(3);
  std::size_t compared = 0;
  const Action refuse{ActionKind::error, ENOSYS};
  for (const PolicyRow& row : container_policy().rows) {
    if (row.conditions.empty()) continue;
    Policy alone{"alone", container_policy().table, {refuse, ""}, {refuse, ""}, {refuse, ""}, {row}};
    if (!oracle_can_say(row, alone, kOracleRulesMax)) continue;
    const auto theirs = Oracle(alone).program();
    ASSERT_FALSE(theirs.empty());
    expect_same_answers(alone, compiled(alone), theirs, random, 3000);
    if (HasFatalFailure()) FAIL() << row.syscall->name << " if " << row.condition_text;
    ++compared;
  }
  EXPECT_GE(compared, 30u);
}

TEST(Compiler, LongJumpsAreBridged) {
  std::string text(kPolicyHead);
  for (const char* name : {"socket", "openat", "prctl", "clone", "ioctl"}) {
    const Syscall* syscall = find_syscall(x86_64_syscalls(), name);
    const std::string argument(syscall->arguments.substr(0, syscall->arguments.find(':')));
    for (int row = 0; row < 16; ++row) {
      text += fmt::format("errno {} {} if {} in {{", row % 2 == 0 ? "EPERM" : "EAGAIN", name, argument);
      for (int value = 0; value < 16; ++value)
        text += fmt::format("{}{}", value == 0 ? "" : ", ", 100 + 16 * row + value);
      text += "}: x\n";
    }
  }
  const Policy policy = parsed(text);
  const auto program = compiled(policy);
  EXPECT_GT(program.size(), 2000u);
  std::mt19937_64 random(4);
  expect_same_answers(policy, program, {}, random, 50000);
}

TEST(Compiler, RefusesWhatTheKernelWouldNotTake) {
  std::string text(kPolicyHead);
  for (const Syscall& syscall : x86_64_syscalls().syscalls) {
    if (!syscall.arguments.starts_with("path:64")) continue;
    for (int row = 0; row < 16; ++row) {
      text += fmt::format("allow {} if path not in {{", syscall.name);
      for (int value = 0; value < 16; ++value)
        text += fmt::format("{}{}", value == 0 ? "" : ", ", (16 * row + value) * 0x1'0000'0001);
      text += "}: x\n";
    }
  }
  const auto program = compile_policy(parsed(text));
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code, ErrorCode::bad_policy);
  EXPECT_THAT(program.error().message, testing::HasSubstr("more than 4096 instructions"));
}

TEST(Compiler, AnEmptyPolicyAnswersWithItsFallbacks) {
  const Policy policy = parsed("policy p\ndefault trap: d\nunknown trap: u\nforeign kill: f\n");
  const auto program = compiled(policy);
  std::mt19937_64 random(5);
  expect_same_answers(policy, program, {}, random, 10000);
}

TEST(Compiler, RowsWithoutConditionsAreInTheKernelsBitmap) {
  const auto& policy = container_policy();
  const auto program = compiled(policy);
  const auto rows = rows_by_syscall(policy);
  std::size_t allowed = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_FALSE(rows[i].empty());
    const auto answer = constant_answer(program, policy.table->audit_arch, policy.table->syscalls[i].number);
    EXPECT_EQ(answer.has_value(), rows[i].front()->conditions.empty()) << policy.table->syscalls[i].name;
    allowed += answer == SECCOMP_RET_ALLOW;
  }
  EXPECT_GE(allowed, 250u);
}

TEST(Compiler, TheBuiltProfileIsThePolicys) {
  const auto program = compiled(container_policy());
  const auto& profile = container_profile();
  ASSERT_EQ(profile.program.size(), program.size());
  EXPECT_EQ(std::memcmp(profile.program.data(), program.data(), program.size() * sizeof(sock_filter)), 0);
  EXPECT_EQ(profile.name, "container");
  EXPECT_EQ(profile.rules.size(), container_policy().rows.size() + 3);
  for (const SyscallRule& rule : profile.rules) EXPECT_FALSE(rule.reason.empty()) << rule.syscall;
}

TEST(Evaluator, RefusesProgramsThatTheKernelWouldRefuse) {
  const seccomp_data call{};
  const auto answer = [&call](std::vector<sock_filter> program) { return evaluate_filter(program, call); };
  EXPECT_FALSE(answer({}));
  EXPECT_FALSE(answer({{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0}}));                               // falls off the end
  EXPECT_FALSE(answer({{BPF_LD | BPF_W | BPF_ABS, 0, 0, 64}, {BPF_RET | BPF_K, 0, 0, 1}}));  // beyond the data
  EXPECT_FALSE(answer({{BPF_LD | BPF_W | BPF_ABS, 0, 0, 2}, {BPF_RET | BPF_K, 0, 0, 1}}));   // not aligned
  EXPECT_FALSE(answer({{BPF_JMP | BPF_JA, 0, 0, 7}, {BPF_RET | BPF_K, 0, 0, 1}}));           // jumps out
  EXPECT_FALSE(answer({{BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 0}, {BPF_RET | BPF_K, 0, 0, 1}}));  // no X register
  EXPECT_EQ(answer({{BPF_JMP | BPF_JGT | BPF_K, 0, 1, 0}, {BPF_RET | BPF_K, 0, 0, 1}, {BPF_RET | BPF_K, 0, 0, 2}}), 2u);
}

}  // namespace
}  // namespace belljar
