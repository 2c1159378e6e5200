#include "tiers/container/walls.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "host/privilege.h"
#include "spec/errors.h"
#include "spec/names.h"

namespace belljar::container {
namespace {

struct NeededCapability {
  int number;
  const char* name;
};
constexpr NeededCapability kNeededCapabilities[] = {
    {CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
    {CAP_SETUID, "CAP_SETUID"},
    {CAP_SETGID, "CAP_SETGID"},
    {CAP_CHOWN, "CAP_CHOWN"},
    {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
    {CAP_KILL, "CAP_KILL"},
};

constexpr const char* kNotRoot = "the caller is not root";

// What takes away HostFacts::why_not_root.
const char* to_be_root(const HostFacts& facts) {
  return facts.why_not_root == kNotRoot ? "run as root" : "run as the host's root, with all its capabilities";
}

std::string to_have_cgroups(const HostFacts& facts) {
  constexpr const char* kWritable =
      "have the cgroup file system mounted writable (a container: its cgroup namespace with /sys/fs/cgroup read-write)";
  if (facts.privilege == Privilege::root) return kWritable;
  if (facts.cgroups.scope_helps) return "run it by `systemd-run --user --scope -p Delegate=yes`, or as root";
  return fmt::format("{}, or where a cgroup is delegated to this user", to_be_root(facts));
}

// Limits that need a cgroup are held in a weaker way without one; the others need nothing.
WallReport limit_state(std::string_view name, const HostFacts& facts) {
  const CgroupSupport& groups = facts.cgroups;
  const auto state = [&](bool held, const char* substitute) {
    if (held) return WallReport{std::string(name), WallState::enforced, "", ""};
    return WallReport{std::string(name), WallState::weaker, fmt::format("{}; held by {}", groups.why_not, substitute),
                      to_have_cgroups(facts)};
  };
  if (name == "memory")
    return state(groups.memory && groups.swap,
                 "RLIMIT_DATA of each process and a sampled kill of the whole tree, which see no kernel memory");
  if (name == "cpus") return state(groups.cpu, "stopping the whole tree for part of the time");
  if (name == "swap") return state(groups.swap, "counting swap as memory");
  if (name == "cpu_time") return state(groups.cpu_time, "adding up what /proc shows of each process");
  if (name == "tasks") return state(groups.tasks, "RLIMIT_NPROC in the sandbox's user namespace");
  const auto rate = [&](bool held, const char* why) {
    if (held) return state(true, "");
    return WallReport{std::string(name), WallState::missing, why,
                      fmt::format("{} a host whose cgroup v2 has the io controller",
                                  facts.privilege == Privilege::root ? "use" : "run as root on")};
  };
  if (name == "fuel") {
    return WallReport{"fuel", WallState::missing, "native code is not counted", "run a module, with --isolation wasm"};
  }
  if (name == "read_rate") return rate(groups.read_rate, "no control group slows reading here");
  if (name == "write_rate") {
    return rate(groups.write_rate, groups.read_rate ? "cgroup v1 does not slow writing that goes through the page cache"
                                                    : "no control group slows writing here");
  }
  return state(true, "");
}

// A wall that does not depend on limits.
WallReport wall_state(std::string_view name, const HostFacts& facts) {
  const std::string& who = facts.why_not_root;
  const bool is_user = facts.privilege == Privilege::user;
  const auto weaker = [&](std::string why, std::string remedy) {
    return WallReport{std::string(name), WallState::weaker, std::move(why), std::move(remedy)};
  };
  if (name == "uid_range" && is_user) {
    return weaker(who + ": the sandbox shares the caller's uid on the host, and so its per-user kernel quotas",
                  to_be_root(facts));
  }
  if (name == "ownership" && is_user) {
    return weaker(who + ": system files appear to belong to nobody", to_be_root(facts));
  }
  if (name == "groups" && is_user && facts.has_supplementary_groups) {
    return weaker(who + ": the caller's supplementary groups can't be dropped",
                  fmt::format("{}, or as a user without supplementary groups", to_be_root(facts)));
  }
  if (name == "landlock" && facts.landlock_abi == 0) {
    return {std::string(name), WallState::missing, "this kernel does not offer Landlock",
            "use Linux 5.13 or newer with landlock in the lsm= list"};
  }
  return {std::string(name), WallState::enforced, "", ""};
}

bool accepts_weaker(const SandboxSpec& spec, std::string_view limit) {
  return std::ranges::find(spec.weaker_accepted, limit) != spec.weaker_accepted.end();
}

}  // namespace

CallerPrivilege caller_privilege() {
  if (::geteuid() != 0) return {Privilege::user, kNotRoot};
  if (!host::is_root_of_host()) return {Privilege::user, "root here is root of a user namespace only"};
  for (const NeededCapability& needed : kNeededCapabilities) {
    if (!host::has_capability(needed.number)) return {Privilege::user, fmt::format("root lacks {} here", needed.name)};
  }
  return {Privilege::root, ""};
}

HostFacts host_facts(const CallerPrivilege& caller) {
  HostFacts facts;
  facts.privilege = caller.privilege;
  facts.why_not_root = caller.why_not_root;
  facts.landlock_abi = host::landlock_abi();
  facts.cgroups = cgroup_support();
  if (facts.privilege == Privilege::user) {
    gid_t groups[256];
    const int count = ::getgroups(256, groups);
    const gid_t own = ::getegid();
    facts.has_supplementary_groups =
        count < 0 || std::any_of(groups, groups + std::max(count, 0), [own](gid_t group) { return group != own; });
  }
  return facts;
}

std::vector<WallReport> assess_walls(const HostFacts& facts) {
  std::vector<WallReport> walls;
  for (const NamedRow& row : wall_rows()) walls.push_back(wall_state(row.name, facts));
  for (const LimitRow& row : limit_rows()) walls.push_back(limit_state(row.name, facts));
  return walls;
}

void leave_out_unlimited(const Limits& limits, std::vector<WallReport>* walls) {
  std::erase_if(*walls, [&](const WallReport& wall) {
    const auto row = std::ranges::find_if(limit_rows(), [&](const LimitRow& each) { return each.name == wall.name; });
    return row != limit_rows().end() && is_unlimited(*row, (limits.*row->field).value);
  });
}

void mark_uncounted_mounts(const SandboxSpec& spec, std::vector<WallReport>* walls) {
  const auto mount = std::ranges::find(spec.mounts, MountAccess::read_write, &MountSpec::access);
  const auto wall = std::ranges::find(*walls, "mount_size", &WallReport::name);
  if (mount == spec.mounts.end() || wall == walls->end()) return;
  wall->state = WallState::missing;
  wall->why = fmt::format("what is written to {} goes to the host's disk, and is not counted", mount->target);
  wall->remedy = "write to /tmp and take results out with --collect";
}

Result<void> check_demands(const std::vector<WallReport>& walls, const SandboxSpec& spec) {
  const auto find = [&](std::string_view name) {
    return std::ranges::find_if(walls, [&](const WallReport& wall) { return wall.name == name; });
  };
  const auto refuse = [](const WallReport& wall, std::string_view demand) {
    return fail(ErrorCode::cannot_enforce, fmt::format("{} can't be enforced in full on this host: {}; to get it: {}",
                                                       demand, wall.why, wall.remedy));
  };
  for (const LimitRow& row : limit_rows()) {
    if ((spec.limits.*row.field).source != LimitSource::named) continue;
    const auto wall = find(row.name);
    if (wall == walls.end() || wall->state == WallState::enforced) continue;
    const bool is_accepted = wall->state == WallState::weaker && accepts_weaker(spec, row.name);
    if (!is_accepted) return refuse(*wall, fmt::format("--{}", row.flag));
  }
  const bool is_all_required = std::ranges::find(spec.required, kRequireAll) != spec.required.end();
  for (const WallReport& wall : walls) {
    const bool is_required = is_all_required || std::ranges::find(spec.required, wall.name) != spec.required.end();
    if (is_required && wall.state != WallState::enforced) return refuse(wall, fmt::format("--require {}", wall.name));
  }
  return {};
}

Result<void> check_own_binary(const HostFacts& facts, const char* binary) {
  if (facts.landlock_abi > 0 || facts.privilege == Privilege::root) return {};
  struct stat status{};
  if (::stat(binary, &status) == 0 && status.st_uid != ::geteuid() && ::access(binary, W_OK) != 0) return {};
  return fail(
      ErrorCode::host_unsupported,
      "this kernel has no Landlock, and without it a program could change belljar's own file, which is yours; have "
      "root own the file, or enable Landlock (lsm=landlock,...)");
}

Isolation to_isolation(const std::vector<WallReport>& walls) {
  Isolation isolation;
  isolation.tier = "container";
  for (const WallReport& wall : walls) {
    switch (wall.state) {
      case WallState::enforced:
        isolation.enforced.push_back(wall.name);
        break;
      case WallState::weaker:
        isolation.weaker.push_back({wall.name, wall.why});
        break;
      case WallState::missing:
        isolation.missing.push_back({wall.name, wall.why});
        break;
    }
  }
  return isolation;
}

}  // namespace belljar::container
