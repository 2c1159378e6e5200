// Compiled seccomp filters. seccomp(2).
#pragma once

#include <linux/filter.h>

#include <span>
#include <string_view>

namespace belljar {

// One row of a policy, for doctor and the docs.
struct SyscallRule {
  std::string_view syscall;
  std::string_view action;  // as written in the policy: "allow", "allow if ...", "errno ENOSYS"
  std::string_view reason;
};

// A policy compiled at build time.
struct CompiledProfile {
  std::string_view name;
  std::span<const sock_filter> program;  // for SECCOMP_SET_MODE_FILTER
  std::span<const SyscallRule> rules;
};

// The container tier's profile (profiles/container.policy).
const CompiledProfile& container_profile();

// For the process that reads images (profiles/unpack.policy).
const CompiledProfile& unpack_profile();

}  // namespace belljar
