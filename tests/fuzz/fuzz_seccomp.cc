// Any text as a seccomp policy: the parser must hold, and what it takes must compile to a filter that the kernel would
// take, and that answers as the rows say.
#include <linux/audit.h>
#include <linux/seccomp.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "seccomp/compiler.h"
#include "seccomp/evaluator.h"
#include "seccomp/policy.h"

namespace {

constexpr int kRandomCalls = 64;

void check(const belljar::Policy& policy, std::span<const sock_filter> program, const seccomp_data& call) {
  const auto answer = belljar::evaluate_filter(program, call);
  if (!answer || *answer != belljar::evaluate_policy(policy, call)) std::abort();
}

// Calls at and beside the values that the rows name.
void check_row(const belljar::Policy& policy, std::span<const sock_filter> program, const belljar::PolicyRow& row,
               std::mt19937_64& random) {
  seccomp_data call{};
  call.arch = policy.table->audit_arch;
  call.nr = static_cast<int>(row.syscall->number);
  check(policy, program, call);
  for (const belljar::Condition& condition : row.conditions) {
    for (const std::uint64_t value : condition.values) {
      call.args[condition.argument.position] = value;
      check(policy, program, call);
      call.args[condition.argument.position] = value | (random() & ~condition.mask);
      check(policy, program, call);
      call.args[condition.argument.position] ^= std::uint64_t{1} << (random() % 64);
      check(policy, program, call);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto policy = belljar::parse_policy({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!policy) {
    if (policy.error().message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const auto program = belljar::compile_policy(*policy);
  if (!program) return 0;
  if (program->empty() || program->size() > BPF_MAXINSNS) std::abort();
  std::mt19937_64 random(size);
  // Each row checks all rows above it too, so long policies are sampled.
  const std::size_t step = 1 + policy->rows.size() / 64;
  for (std::size_t i = 0; i < policy->rows.size(); i += step) check_row(*policy, *program, policy->rows[i], random);
  for (int i = 0; i < kRandomCalls; ++i) {
    seccomp_data call{};
    call.arch = i % 8 == 0 ? AUDIT_ARCH_I386 : AUDIT_ARCH_X86_64;
    call.nr = static_cast<int>(i % 4 == 0 ? random() : random() % 512);
    check(*policy, *program, call);
  }
  return 0;
}
