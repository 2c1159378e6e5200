// The groups of one sandbox at a given site: what stands behind CgroupDir.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cgroup/site.h"

namespace belljar {

// One of the sandbox's groups.
struct GroupFolder {
  std::string path;
  ControllerSet controllers;
  Fd entry;  // v1: "tasks", opened for writing; v2: the folder itself (O_PATH)
  Fd exit;   // v1: "tasks" of the caller's own group, where the caller may write there
};

// create_cgroups() below an explicit site. Null where the site has no bases.
Result<std::unique_ptr<CgroupDir>> create_groups_at(const CgroupSite& site, const std::string& name,
                                                    const Limits& limits);

// sweep_cgroups() below an explicit site.
std::uint64_t sweep_site(const CgroupSite& site, bool (*is_alive)(const std::string& name));

}  // namespace belljar
