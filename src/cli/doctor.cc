#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "base/json.h"
#include "belljar/belljar.h"
#include "cgroup/cgroup.h"
#include "cli/execute.h"
#include "image/active_environment.h"
#include "image/exposed_secrets.h"
#include "seccomp/filter.h"
#include "tiers/tier.h"

namespace belljar {
namespace {

struct TierReport {
  std::string name;
  const CompiledProfile* host_calls = nullptr;  // where it is a short list: what of the host's kernel is in reach
  std::vector<WallReport> walls;
  std::string why_not;  // empty: a sandbox was started and ended
  bool is_left_out = false;
};

struct Report {
  std::string kernel;
  std::string cgroups;
  std::vector<TierReport> tiers;
  std::vector<std::string> hints;
};

// A wall counts for nothing on a host where no sandbox starts: so one is started.
std::string try_out(SandboxSpec spec) {
  spec.stdin_source = StdinSource::none;
  const Result<Outcome> outcome = run(spec);
  if (!outcome) return outcome.error().message;
  return outcome->status == RunStatus::ok ? "" : outcome->reason;
}

std::string describe_cgroups() {
  const CgroupSupport& support = cgroup_support();
  switch (support.version) {
    case CgroupSupport::Version::none:
      return "none: " + support.why_not;
    case CgroupSupport::Version::v1:
      return "v1";
    case CgroupSupport::Version::v2:
      return "v2";
  }
  return "unknown";
}

std::vector<std::string> find_hints() {
  std::vector<std::string> hints;
  const auto lookup = [](const char* name) { return std::getenv(name); };
  for (const char* program : {"python3", "node", "perl"}) {
    if (const auto outside = find_outside_interpreter(program, lookup))
      hints.push_back(outside_interpreter_hint(*outside));
  }
  const ExposedSecrets secrets = find_exposed_secrets("/usr/local", std::chrono::milliseconds(500));
  for (const std::string& path : secrets.paths) {
    hints.push_back(fmt::format(
        "{} looks like a secret, and every sandbox can read it: hide it (--hide {}) or make it unreadable for others",
        path, path));
  }
  return hints;
}

// Where no sandbox starts, no wall stands.
TierReport examine_tier(const Tier& tier) {
  TierReport report{.name = std::string(tier.name()), .walls = tier.probe()};
  const Result<SandboxSpec> trial = tier.trial();
  report.is_left_out = !trial;
  if (trial && tier.name() == "kernel") report.host_calls = &kernel_profile();
  report.why_not = trial ? try_out(*trial) : trial.error().message;
  if (report.why_not.empty()) return report;
  for (WallReport& wall : report.walls) {
    wall = {wall.name, WallState::missing, "no sandbox starts here: " + report.why_not, "see the line of the tier"};
  }
  return report;
}

Report examine() {
  Report report;
  utsname system{};
  ::uname(&system);
  report.kernel = fmt::format("{} {}", system.sysname, system.release);
  report.cgroups = describe_cgroups();
  for (const Tier* tier : tiers()) report.tiers.push_back(examine_tier(*tier));
  report.hints = find_hints();
  return report;
}

const char* state_name(WallState state) {
  switch (state) {
    case WallState::enforced:
      return "enforced";
    case WallState::weaker:
      return "weaker";
    case WallState::missing:
      return "missing";
  }
  return "unknown";
}

// The rows that let something pass.
std::vector<SyscallRule> allowed_calls(const CompiledProfile& profile) {
  std::vector<SyscallRule> allowed;
  std::ranges::copy_if(profile.rules, std::back_inserter(allowed),
                       [](const SyscallRule& rule) { return rule.action.starts_with("allow"); });
  return allowed;
}

std::string host_calls_text(const CompiledProfile& profile) {
  const std::vector<SyscallRule> allowed = allowed_calls(profile);
  std::string text = fmt::format(
      "  of the host kernel, the program has these {} system calls (* with some arguments only):\n", allowed.size());
  for (const SyscallRule& rule : allowed) {
    text += fmt::format("    {:<14}{} {}\n", rule.syscall, rule.action == "allow" ? ' ' : '*', rule.reason);
  }
  return text;
}

std::string text_of(const Report& report) {
  std::string text = fmt::format("kernel {}, cgroups {}, {}\n", report.kernel, report.cgroups,
                                 ::geteuid() == 0 ? "as root" : "as an ordinary user");
  for (const TierReport& tier : report.tiers) {
    if (tier.why_not.empty()) {
      text += fmt::format("\ntier {}: works (a sandbox was started)\n", tier.name);
    } else {
      text += fmt::format("\ntier {}: {}: {}\n", tier.name, tier.is_left_out ? "not installed" : "does not work",
                          tier.why_not);
    }
    if (tier.is_left_out) continue;
    for (const WallReport& wall : tier.walls) {
      text += fmt::format("  {:<9} {}\n", state_name(wall.state), wall.name);
      if (wall.state == WallState::enforced || !tier.why_not.empty()) continue;
      text += fmt::format("            why: {}\n            to get it: {}\n", wall.why, wall.remedy);
    }
    if (tier.host_calls != nullptr) text += host_calls_text(*tier.host_calls);
  }
  text += fmt::format(
      "\nseccomp: {} rules compiled to {} instructions (docs/generated/seccomp-container.md has each with its "
      "reason)\n",
      container_profile().rules.size(), container_profile().program.size());
  for (const std::string& hint : report.hints) text += fmt::format("hint: {}\n", hint);
  return text;
}

std::string json_of(const Report& report) {
  Json tiers_json = Json::array();
  for (const TierReport& tier : report.tiers) {
    Json walls = Json::array();
    for (const WallReport& wall : tier.walls) {
      walls.push_back(
          {{"name", wall.name}, {"state", state_name(wall.state)}, {"why", wall.why}, {"remedy", wall.remedy}});
    }
    tiers_json.push_back({{"name", tier.name},
                          {"works", tier.why_not.empty()},
                          {"installed", !tier.is_left_out},
                          {"why_not", tier.why_not},
                          {"walls", walls}});
    if (tier.host_calls == nullptr) continue;
    Json& calls = tiers_json.back()["host_calls"] = Json::array();
    for (const SyscallRule& rule : allowed_calls(*tier.host_calls)) {
      calls.push_back({{"call", rule.syscall}, {"rule", rule.action}, {"reason", rule.reason}});
    }
  }
  const Json all = {{"kernel", report.kernel},
                    {"cgroups", report.cgroups},
                    {"root", ::geteuid() == 0},
                    {"tiers", tiers_json},
                    {"hints", report.hints}};
  return dump_json(all) + "\n";
}

}  // namespace

int run_doctor(bool json) {
  const Report report = examine();
  const int printed = print(json ? json_of(report) : text_of(report));
  if (printed != 0) return printed;
  for (const TierReport& tier : report.tiers) {
    if (!tier.why_not.empty() && !tier.is_left_out) return 1;
  }
  return 0;
}

}  // namespace belljar
