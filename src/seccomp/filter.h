// Compiled seccomp filters. seccomp(2).
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <span>
#include <string_view>

namespace belljar {

// One row of a policy, for doctor and the docs.
struct SyscallRule {
  std::string_view syscall;
  std::string_view action;  // as written in the policy: "allow", "allow if ...", "errno ENOSYS"
  std::string_view reason;
  int error;  // the errno it answers with; 0 where it allows
};

// A policy compiled at build time.
struct CompiledProfile {
  std::string_view name;
  std::span<const sock_filter> program;  // for SECCOMP_SET_MODE_FILTER
  // The same, but that calls which it would refuse with EPERM or EAFNOSUPPORT are asked of the listener
  // (seccomp_unotify(2)). Other refusals are what programs are used to fall back from.
  std::span<const sock_filter> notifying_program;
  // Answers SECCOMP_RET_ERRNO with the position in `rules` of the row that refuses a call.
  std::span<const sock_filter> explaining_program;
  std::span<const SyscallRule> rules;
};

// The row by which the profile refuses a call; null where it does not.
const SyscallRule* refusing_rule(const CompiledProfile& profile, const seccomp_data& call);

// The container tier's profile (profiles/container.policy).
const CompiledProfile& container_profile();

// For the broker of a sandbox with a user-space kernel (profiles/broker.policy).
const CompiledProfile& broker_profile();

// For the process that relays a sandbox's connections (profiles/egress.policy).
const CompiledProfile& egress_profile();

// What guests of the user-space kernel can ask of the host (profiles/kernel.policy); the kernel's image puts a test for
// its own text before it.
const CompiledProfile& kernel_profile();

// For the process that reads images (profiles/unpack.policy).
const CompiledProfile& unpack_profile();

// For the process that runs a WebAssembly module, and the one that compiles it (profiles/wasm.policy,
// wasm_compile.policy).
const CompiledProfile& wasm_profile();
const CompiledProfile& wasm_compile_profile();

}  // namespace belljar
