#include "tiers/wasm/plan_run.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "spec/errors.h"
#include "spec/interpreter.h"
#include "tiers/container/container.h"
#include "tiers/refused_limits.h"

namespace belljar::wasm {
namespace {

std::unexpected<Error> refuse(std::string_view what, std::string_view why) {
  return fail(ErrorCode::usage, fmt::format("{}: the wasm tier {}", what, why));
}

// The folder by which a module reaches what is mounted at `mount`.
Result<std::string> folder_of(const MountSpec& mount) {
  struct stat status{};
  const bool is_file = ::stat(mount.source.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
  if (!is_file) return mount.target;
  std::string folder = mount.target.substr(0, mount.target.rfind('/'));
  if (!folder.empty()) return folder;
  return fail(
      ErrorCode::bad_mount,
      fmt::format("--mount {}:{}: the wasm tier hands folders over, and the root folder is not; mount it in one, "
                  "such as /data{}",
                  mount.source, mount.target, mount.target));
}

}  // namespace

Result<void> check_spec(const SandboxSpec& spec) {
  if (!spec.allow.empty()) return refuse("--allow", "gives a module no network; use --isolation container");
  if (!spec.workspace.empty())
    return refuse("--workspace", "has no overlays; --mount DIR:/data:rw, or --isolation container");
  if (!spec.image.empty()) return refuse("--image", "runs a module without any system around it; leave it out");
  if (!spec.venv.empty()) return refuse("--venv", "can't load modules of native code; use --isolation container");
  if (!spec.hidden_paths.empty()) return refuse("--hide", "shows nothing but what is mounted; leave it out");
  if (!spec.workdir.empty())
    return refuse("--workdir", "has no working folder, for WASI has none; give absolute paths");
  if (spec.terminal) return refuse("--tty", "has no terminals, for WASI has none; use pipes");
  if (spec.traces_calls) return refuse("--strace", "has no system calls, for WASI has none; use --isolation kernel");
  if (!spec.command.empty()) return refuse("-- COMMAND", "runs a file of this host: belljar run --isolation wasm FILE");
  return check_refused_limits("wasm", spec.limits);
}

Result<RunJob> plan_run(const SandboxSpec& spec) {
  RunJob job{.memory_bytes = spec.limits.memory.value, .variables = container::environment_of(spec)};
  if (!is_unlimited(limit_row("fuel"), spec.limits.fuel.value)) job.fuel = spec.limits.fuel.value;
  const auto add = [&](std::string folder) {
    if (std::ranges::find(job.folders, folder) == job.folders.end()) job.folders.push_back(std::move(folder));
  };
  add("/tmp");
  for (const CollectSpec& collect : spec.collect) add(collect.source.substr(0, collect.source.find('/', 1)));
  for (const MountSpec& mount : spec.mounts) add(TRY(folder_of(mount)));
  const std::string name = script_name(spec.script);
  job.arguments.push_back(name.substr(name.rfind('/') + 1));
  job.arguments.insert(job.arguments.end(), spec.script_arguments.begin(), spec.script_arguments.end());
  return job;
}

}  // namespace belljar::wasm
