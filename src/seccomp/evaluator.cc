#include "seccomp/evaluator.h"

#include <cstddef>
#include <cstring>

namespace belljar {
namespace {

// The words of seccomp_data that a run may read.
enum class Visible : std::uint8_t { all, machine_and_number };

std::optional<std::uint32_t> jump_offset(const sock_filter& instruction, std::uint32_t a) {
  const std::uint32_t k = instruction.k;
  switch (BPF_OP(instruction.code)) {
    case BPF_JA:
      return k;
    case BPF_JEQ:
      return a == k ? instruction.jt : instruction.jf;
    case BPF_JGT:
      return a > k ? instruction.jt : instruction.jf;
    case BPF_JGE:
      return a >= k ? instruction.jt : instruction.jf;
    case BPF_JSET:
      return (a & k) != 0 ? instruction.jt : instruction.jf;
    default:
      return std::nullopt;
  }
}

std::optional<std::uint32_t> run(std::span<const sock_filter> program, const seccomp_data& call, Visible visible) {
  std::uint32_t a = 0;
  for (std::size_t position = 0; position < program.size(); ++position) {
    const sock_filter& instruction = program[position];
    switch (instruction.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (instruction.k % 4 != 0 || instruction.k > sizeof call - 4) return std::nullopt;
        if (visible == Visible::machine_and_number && instruction.k != offsetof(seccomp_data, nr) &&
            instruction.k != offsetof(seccomp_data, arch)) {
          return std::nullopt;
        }
        std::memcpy(&a, reinterpret_cast<const char*>(&call) + instruction.k, sizeof a);
        continue;
      case BPF_ALU | BPF_AND | BPF_K:
        a &= instruction.k;
        continue;
      case BPF_RET | BPF_K:
        return instruction.k;
      default:
        break;
    }
    if (BPF_CLASS(instruction.code) != BPF_JMP || BPF_SRC(instruction.code) != BPF_K) return std::nullopt;
    const auto offset = jump_offset(instruction, a);
    if (!offset) return std::nullopt;
    position += *offset;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint32_t> evaluate_filter(std::span<const sock_filter> program, const seccomp_data& call) {
  return run(program, call, Visible::all);
}

std::optional<std::uint32_t> constant_answer(std::span<const sock_filter> program, std::uint32_t audit_arch,
                                             std::uint32_t number) {
  seccomp_data call{};
  call.nr = static_cast<int>(number);
  call.arch = audit_arch;
  return run(program, call, Visible::machine_and_number);
}

}  // namespace belljar
