// The container tier: namespaces, cgroups, seccomp and Landlock around a process tree. docs/container-tier.md.
#pragma once

#include "tiers/tier.h"

namespace belljar {

const Tier& container_tier();

namespace container {
struct UserKernel;
// Starts a sandbox of this tier whose program runs on a user-space kernel. `kernel`: its programs, opened.
Result<std::unique_ptr<RunningSandbox>> start_with_kernel(const SandboxSpec& spec, UserKernel kernel);
}  // namespace container

// True while the Belljar process that named these cgroups lives; for sweep_cgroups().
bool is_sandbox_owner_alive(const std::string& cgroup_name);

}  // namespace belljar
