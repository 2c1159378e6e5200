#include "cgroup/site.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/fd.h"
#include "cgroup/group_folder.h"

namespace belljar {
namespace {

constexpr std::size_t kProcFileBytesMax = 4 * 1024 * 1024;
constexpr Controller kHeld[] = {Controller::memory, Controller::cpu, Controller::pids};

bool exists(const std::string& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), F_OK, AT_EACCESS) == 0;
}

// Also false on a read-only mount.
bool may_write(const std::string& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

// Whether the caller can make groups in `group`/belljar: an existing belljar counts by its own owner, so that an
// administrator can hand one to a user.
bool may_make_groups(const std::string& group) {
  return may_write(group + "/belljar") || (errno == ENOENT && may_write(group));
}

ControllerSet controllers_in(const std::string& group, const char* file) {
  std::string text = read_control_text((group + "/" + file));
  if (text.ends_with('\n')) text.pop_back();
  return parse_controllers(text, ' ');
}

// /proc/swaps has a heading line and one for each swap area (proc_swaps(5)); it is missing in kernels built without
// swap.
SwapControl control_without_limit(const std::string& proc_folder) {
  const std::string text = read_control_text((proc_folder + "/swaps"));
  return std::count(text.begin(), text.end(), '\n') > 1 ? SwapControl::none : SwapControl::host_has_no_swap;
}

CgroupSite find_v1_site(const CgroupLayout& layout, const std::string& proc_folder) {
  CgroupSite site;
  for (std::size_t i = 0; i < kControllerCount; ++i) {
    const std::string& group = layout.v1_groups[i];
    if (group.empty() || !may_make_groups(group)) continue;
    auto base = std::find_if(site.bases.begin(), site.bases.end(), [&](const auto& b) { return b.parent == group; });
    if (base == site.bases.end()) base = site.bases.insert(base, GroupBase{group, {}});
    base->controllers.add(static_cast<Controller>(i));
  }
  const std::string& memory_group = layout.v1_group(Controller::memory);
  site.swap_control =
      exists(memory_group + "/memory.memsw.limit_in_bytes") ? SwapControl::limited : control_without_limit(proc_folder);
  return site;
}

// Whether groups below `group` get a memory.swap.max: the root group itself has none, so one of its children is asked.
bool has_swap_limit(const std::string& group) {
  if (exists(group + "/memory.swap.max")) return true;
  DIR* folder = ::opendir(group.c_str());
  if (folder == nullptr) return false;
  bool found = false;
  bool asked = false;
  while (const dirent* entry = asked ? nullptr : ::readdir(folder)) {
    const std::string child = group + "/" + entry->d_name;
    if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || !exists(child + "/memory.max")) continue;
    asked = true;
    found = exists(child + "/memory.swap.max");
  }
  ::closedir(folder);
  return asked ? found : true;  // nobody to ask: every kernel built with swap has it since 4.5
}

// What groups below `group` could be held by.
CgroupSite judge_v2_parent(const std::string& group, const CgroupLayout& layout) {
  CgroupSite site;
  // Moving a process asks for write access to cgroup.procs of the nearest group above both places.
  if (!may_make_groups(group) || !may_write(group + "/cgroup.procs")) return site;
  const ControllerSet offered = controllers_in(group, "cgroup.controllers");
  const ControllerSet enabled = controllers_in(group, "cgroup.subtree_control");
  bool can_enable = may_write(group + "/cgroup.subtree_control");
  // The root group has no cgroup.type, and alone may have both processes and controllers for its children.
  if (can_enable && exists(group + "/cgroup.type") && !group_processes(group).empty()) {
    can_enable = group == layout.v2_group && !group.ends_with(kSupervisorGroup) && holds_only_own_processes(group);
    if (can_enable) site.parent_use = ParentUse::leave_first;
  }
  GroupBase base{group, {}};
  for (const Controller controller : kHeld) {
    if (enabled.has(controller) || (can_enable && offered.has(controller))) base.controllers.add(controller);
  }
  if (enabled.has(Controller::io) || (can_enable && offered.has(Controller::io))) base.controllers.add(Controller::io);
  if (base.controllers.size() > 0) site.bases.push_back(base);
  return site;
}

int held_count(const CgroupSite& site) {
  int count = 0;
  for (const GroupBase& base : site.bases) {
    for (const Controller controller : kHeld) count += base.controllers.has(controller) ? 1 : 0;
  }
  return count;
}

// The nearest group at or above the caller's own that can have children with the most of the three controllers: so the
// limits of all groups further up still hold for the sandbox.
CgroupSite find_v2_site(const CgroupLayout& layout, const std::string& proc_folder) {
  CgroupSite best;
  int best_size = 0;
  std::string group = layout.v2_group;
  while (!group.empty()) {
    CgroupSite site = judge_v2_parent(group, layout);
    const int size = held_count(site);
    if (size > best_size) {
      best = std::move(site);
      best_size = size;
    }
    if (group == layout.v2_mount || best_size == std::ssize(kHeld)) break;
    group.resize(group.rfind('/'));
  }
  if (!best.bases.empty()) {
    best.swap_control =
        has_swap_limit(best.bases.front().parent) ? SwapControl::limited : control_without_limit(proc_folder);
  }
  return best;
}

// Accounting can be turned off when the kernel starts: cgroup.memory=nokmem,nosocket (kernel-parameters.txt).
bool counts_kernel_memory(const std::string& proc_folder) {
  const std::string text = read_control_text(proc_folder + "/cmdline");
  const std::size_t at = text.find("cgroup.memory=");
  if (at == std::string::npos) return true;
  const std::string options = text.substr(at, text.find_first_of(" \n", at) - at);
  return options.find("nokmem") == std::string::npos && options.find("nosocket") == std::string::npos;
}

// Whether this user has a systemd manager that would hand out a group of its own (systemd.resource-control(5)).
bool has_user_manager(const CgroupLayout& layout) {
  const unsigned uid = ::geteuid();
  return uid != 0 && !layout.v2_mount.empty() &&
         may_write(fmt::format("{}/user.slice/user-{}.slice/user@{}.service", layout.v2_mount, uid, uid));
}

std::string explain(const CgroupSite& site, const CgroupLayout& layout) {
  const CgroupSupport& support = site.support;
  if (support.memory && support.cpu && support.tasks) {
    return support.kernel_memory ? "" : "kernel memory isn't counted: the kernel was started with cgroup.memory=";
  }
  std::string text;
  if (support.version == CgroupSupport::Version::none) {
    const bool seen = !layout.v2_group.empty() ||
                      std::any_of(layout.v1_groups.begin(), layout.v1_groups.end(), [](auto& g) { return !g.empty(); });
    text = seen                      ? "this user may make no control group that would hold memory, cpu or pids"
           : layout.read_only_mounts ? "the cgroup file systems are mounted read-only here, as in a container"
                                     : "no mounted cgroup file system shows this process's own group";
  } else {
    text = "no control group that this user may use offers";
    if (!support.memory) text += " memory";
    if (!support.cpu) text += " cpu";
    if (!support.tasks) text += " pids";
  }
  if (support.scope_helps) text += "; start it with `systemd-run --user --scope -p Delegate=yes`";
  return text;
}

}  // namespace

bool holds_only_own_processes(const std::string& group) {
  const pid_t self = ::getpid();
  for (const pid_t member : group_processes(group)) {
    pid_t pid = member;
    while (pid != self) {
      const std::string text = read_control_text(fmt::format("/proc/{}/status", pid));
      const std::size_t at = text.find("\nPPid:\t");
      pid = at == std::string::npos ? 0 : static_cast<pid_t>(std::strtol(text.c_str() + at + 7, nullptr, 10));
      if (pid == 0) break;
    }
    if (pid != self) return false;
  }
  return true;
}

CgroupSite find_site(const std::string& proc_folder) {
  const auto mountinfo = read_file_at(AT_FDCWD, (proc_folder + "/self/mountinfo").c_str(), kProcFileBytesMax);
  const auto own_groups = read_file_at(AT_FDCWD, (proc_folder + "/self/cgroup").c_str(), kProcFileBytesMax);
  const CgroupLayout layout = find_layout(mountinfo.value_or(std::string()), own_groups.value_or(std::string()));

  CgroupSite site = find_v1_site(layout, proc_folder);
  CgroupSupport::Version version = CgroupSupport::Version::v1;
  // A controller is on one version at a time: on hybrid hosts, whichever has more of ours.
  if (held_count(site) < std::ssize(kHeld)) {
    CgroupSite v2_site = find_v2_site(layout, proc_folder);
    if (held_count(v2_site) >= held_count(site)) {
      site = std::move(v2_site);
      version = CgroupSupport::Version::v2;
    }
  }
  CgroupSupport& support = site.support;
  if (held_count(site) == 0) {
    site.bases.clear();
    support = {};
  } else {
    support.version = version;
  }
  for (const GroupBase& base : site.bases) {
    support.memory |= base.controllers.has(Controller::memory);
    support.cpu |= base.controllers.has(Controller::cpu);
    support.tasks |= base.controllers.has(Controller::pids);
    support.read_rate |= base.controllers.has(Controller::io) || base.controllers.has(Controller::blkio);
    support.write_rate |= base.controllers.has(Controller::io);
    support.cpu_time |= version == CgroupSupport::Version::v2 || base.controllers.has(Controller::cpuacct);
  }
  support.swap = support.memory && site.swap_control != SwapControl::none;
  support.kernel_memory = support.memory && counts_kernel_memory(proc_folder);
  support.scope_helps = held_count(site) < std::ssize(kHeld) && has_user_manager(layout);
  support.why_not = explain(site, layout);
  return site;
}

}  // namespace belljar
