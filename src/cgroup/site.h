// The place on this host below which Belljar makes its groups, and what can be held there.
#pragma once

#include <string>
#include <vector>

#include "cgroup/cgroup.h"
#include "cgroup/layout.h"

namespace belljar {

// Belljar's groups lie in `parent`/belljar/NAME.
struct GroupBase {
  std::string parent;  // an existing group, by its absolute path
  ControllerSet controllers;

  std::string folder() const { return parent + "/belljar"; }
};

// On cgroup v2, a group with processes in it can't hand memory and pids to its children (the rule of no internal
// processes). Where `parent` is the caller's own group, the caller first moves itself into a child of it.
enum class ParentUse { as_is, leave_first };

// Where it moves itself to, below `parent`. Found there by a later look, it isn't left again.
inline constexpr const char* kSupervisorGroup = "/belljar-supervisor";

// How memory is kept from going to swap: by a limit file, or because there is none; else it isn't.
enum class SwapControl { limited, host_has_no_swap, none };

struct CgroupSite {
  CgroupSupport support;
  SwapControl swap_control = SwapControl::none;
  std::vector<GroupBase> bases;  // one for each hierarchy: up to five on v1 (memory first), at most one on v2
  ParentUse parent_use = ParentUse::as_is;
};

// `proc_folder` is "/proc", or a test's. Reads and tests permissions; changes nothing.
CgroupSite find_site(const std::string& proc_folder);

// The processes in the group that may be moved by the caller without asking anyone: itself and its descendants. False
// when the group holds any other.
bool holds_only_own_processes(const std::string& group);

}  // namespace belljar
