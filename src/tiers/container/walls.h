// The container tier's walls and limits: what each is called, and how far this host holds it for this caller.
#pragma once

#include <vector>

#include "cgroup/cgroup.h"
#include "spec/outcome.h"
#include "spec/sandbox_spec.h"
#include "tiers/container/plan.h"
#include "tiers/tier.h"

namespace belljar::container {

// What the walls depend on.
struct HostFacts {
  Privilege privilege = Privilege::user;
  std::string why_not_root;  // Privilege::user: the caller is not root, or lacks a capability
  int landlock_abi = 0;
  bool has_supplementary_groups = false;  // Privilege::user: groups that can't be dropped
  CgroupSupport cgroups;
};

struct CallerPrivilege {
  Privilege privilege = Privilege::user;
  std::string why_not_root;
};

CallerPrivilege caller_privilege();
HostFacts host_facts(const CallerPrivilege& caller);

// Every wall and limit with its state on this host.
std::vector<WallReport> assess_walls(const HostFacts& facts);

// Takes limits out that the caller set to no limit: they are neither held nor missing.
void leave_out_unlimited(const Limits& limits, std::vector<WallReport>* walls);

// Says of `mount_size` that it is missing where a mount may be written to.
void mark_uncounted_mounts(const SandboxSpec& spec, std::vector<WallReport>* walls);

// Refuses what the caller demanded and `walls` don't hold in full: limits that the caller named, and spec.required.
Result<void> check_demands(const std::vector<WallReport>& walls, const SandboxSpec& spec);

// Refuses where the program could change the file that Belljar runs from: an unprivileged caller's own binary, on a
// kernel without Landlock. A script there can name /proc/self/exe as its interpreter (CVE-2019-5736). `binary` is a
// path.
Result<void> check_own_binary(const HostFacts& facts, const char* binary = "/proc/self/exe");

Isolation to_isolation(const std::vector<WallReport>& walls);

}  // namespace belljar::container
