#include "seccomp/test_policies.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/audit.h>

#include <cstdlib>

#include "base/fd.h"

namespace belljar {
namespace {

constexpr std::size_t kPolicyBytesMax = 1024 * 1024;
constexpr int kRowPercent = 50;

using Random = std::mt19937_64;

std::uint64_t below(Random& random, std::uint64_t bound) {
  return random() % bound;
}

// Few bits, at both ends of both words, so that values meet often.
std::uint64_t random_bits(Random& random, int width) {
  std::uint64_t value = 0;
  for (std::uint64_t count = below(random, 4); count > 0; --count) {
    static constexpr int kBits[] = {0, 1, 11, 15, 16, 31, 32, 33, 62, 63};
    const int bit = kBits[below(random, std::size(kBits))];
    if (bit < width) value |= std::uint64_t{1} << bit;
  }
  return value;
}

std::string random_condition(Random& random, std::string_view argument) {
  const std::size_t colon = argument.find(':');
  const std::string_view bits = argument.substr(colon + 1);
  const int width = bits == "16" ? 16 : bits == "32" ? 32 : 64;
  std::string text(argument.substr(0, colon));
  std::uint64_t mask = ~std::uint64_t{0};
  if (below(random, 2) == 0) {
    mask = random_bits(random, width);
    if (mask == 0) mask = 1;
    text += fmt::format(" & {:#x}", mask);
  }
  const auto value = [&] { return random_bits(random, width) & mask; };
  switch (below(random, 3)) {
    case 0:
      return text + fmt::format(" == {:#x}", value());
    case 1:
      return text + fmt::format(" != {:#x}", value());
    default:
      return text + fmt::format(" in {{{:#x}, {:#x}, {}}}", value(), value(), value());
  }
}

// Empty where chance gave no condition.
std::string random_conditions(Random& random, const Syscall& syscall) {
  std::string text;
  std::string_view rest = syscall.arguments;
  while (!rest.empty()) {  // each argument at most once, as libseccomp has it
    const std::string_view argument = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), argument.size() + 1));
    if (below(random, 2) == 0) continue;
    text += (text.empty() ? " if " : " and ") + random_condition(random, argument);
  }
  return text;
}

std::string random_rows(Random& random, const Syscall& syscall, int rows_max) {
  static constexpr const char* kActions[] = {"allow", "errno EPERM", "errno EAFNOSUPPORT", "trap", "kill"};
  std::string rows;
  for (int row = 0; row < rows_max; ++row) {
    const std::string conditions = random_conditions(random, syscall);
    rows += fmt::format("{} {}{}: because\n", kActions[below(random, std::size(kActions))], syscall.name, conditions);
    if (conditions.empty()) break;
  }
  return rows;
}

}  // namespace

const Policy& container_policy() {
  static const Policy kPolicy = [] {
    const auto text = read_file_at(AT_FDCWD, BELLJAR_CONTAINER_POLICY, kPolicyBytesMax);
    if (!text) std::abort();
    auto parsed = parse_policy(*text, BELLJAR_CONTAINER_POLICY);
    if (!parsed) {
      fmt::print(stderr, "{}\n", parsed.error().message);
      std::abort();
    }
    return std::move(*parsed);
  }();
  return kPolicy;
}

std::string random_policy_text(Random& random, int rows_max) {
  std::string text(kPolicyHead);
  for (const Syscall& syscall : x86_64_syscalls().syscalls) {
    if (below(random, 100) < kRowPercent) text += random_rows(random, syscall, rows_max);
  }
  return text;
}

seccomp_data random_call(const Policy& policy, Random& random) {
  seccomp_data call{};
  call.arch = below(random, 20) == 0 ? AUDIT_ARCH_I386 : AUDIT_ARCH_X86_64;
  call.instruction_pointer = random();
  for (auto& argument : call.args) argument = below(random, 4) == 0 ? random() : random_bits(random, 64);
  const PolicyRow* row = policy.rows.empty() ? nullptr : &policy.rows[below(random, policy.rows.size())];
  std::uint32_t number = row != nullptr ? row->syscall->number : 0;
  switch (below(random, 16)) {
    case 0:
      number = static_cast<std::uint32_t>(random());
      break;
    case 1:
      number = static_cast<std::uint32_t>(below(random, 512));
      break;
    case 2:
      number |= 0x40000000;
      break;
    default:
      break;
  }
  call.nr = static_cast<int>(number);
  if (row == nullptr) return call;
  for (const Condition& condition : row->conditions) {
    if (below(random, 8) == 0) continue;
    const std::uint64_t value = condition.values[below(random, condition.values.size())];
    auto& argument = call.args[condition.argument.position];
    argument = value | (below(random, 2) == 0 ? argument & ~condition.mask : 0);
    if (below(random, 4) == 0) argument ^= std::uint64_t{1} << below(random, 64);
  }
  return call;
}

}  // namespace belljar
