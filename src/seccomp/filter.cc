#include "seccomp/filter.h"

#include "seccomp/evaluator.h"

namespace belljar {

const SyscallRule* refusing_rule(const CompiledProfile& profile, const seccomp_data& call) {
  const auto answer = evaluate_filter(profile.explaining_program, call);
  if (!answer || (*answer & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ERRNO) return nullptr;
  const std::uint32_t position = *answer & SECCOMP_RET_DATA;
  return position < profile.rules.size() ? &profile.rules[position] : nullptr;
}

}  // namespace belljar
