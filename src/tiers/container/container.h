// The container tier: namespaces, cgroups, seccomp and Landlock around a process tree. docs/container-tier.md.
#pragma once

#include "tiers/tier.h"

namespace belljar {

const Tier& container_tier();

// True while the Belljar process that named these cgroups lives; for sweep_cgroups().
bool is_sandbox_owner_alive(const std::string& cgroup_name);

}  // namespace belljar
