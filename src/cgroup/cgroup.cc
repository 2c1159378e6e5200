#include "cgroup/cgroup.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include "cgroup/groups.h"
#include "cgroup/site.h"

namespace belljar {
namespace {

const CgroupSite& own_site() {
  static const CgroupSite kSite = find_site("/proc");
  return kSite;
}

}  // namespace

const CgroupSupport& cgroup_support() {
  return own_site().support;
}

bool host_has_only_cgroup_v2() {
  struct statfs status{};
  return ::statfs("/sys/fs/cgroup", &status) == 0 && status.f_type == CGROUP2_SUPER_MAGIC;
}

Result<std::unique_ptr<CgroupDir>> create_cgroups(const std::string& name, const Limits& limits) {
  return create_groups_at(own_site(), name, limits);
}

std::uint64_t sweep_cgroups(bool (*is_alive)(const std::string& name)) {
  return sweep_site(own_site(), is_alive);
}

}  // namespace belljar
