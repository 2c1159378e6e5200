#include "spec/sandbox_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <set>

#include "base/utf8.h"
#include "spec/checks.h"
#include "spec/errors.h"
#include "spec/names.h"

namespace belljar {
namespace {

std::unexpected<Error> bad(std::string_view where, std::string_view what) {
  return fail(ErrorCode::bad_value, fmt::format("{}: {}", where, what));
}

// These hold kernel interfaces, of which the sandbox has its own.
constexpr std::string_view kReservedFolders[] = {"/proc", "/dev", "/sys"};

bool is_within(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

Result<void> check_limits(const Limits& limits) {
  for (const LimitRow& row : limit_rows()) {
    const std::uint64_t value = (limits.*row.field).value;
    if (value < row.least || value > row.most) {
      return bad(row.name, fmt::format("{} is out of range; it must be from {} to {}", format_limit(row.unit, value),
                                       format_limit(row.unit, row.least), format_limit(row.unit, row.most)));
    }
  }
  return {};
}

Result<void> check_program(const SandboxSpec& spec) {
  const bool is_named_by_image = spec.script.empty() && spec.command.empty() && !spec.image.empty();
  if (is_named_by_image) return {};
  if (spec.script.empty() == spec.command.empty()) {
    return fail(ErrorCode::usage, spec.script.empty()
                                      ? "there is nothing to run: neither a script nor a command"
                                      : "there is a script and a command to run; only one of them can be");
  }
  if (!spec.script.empty()) TRY_VOID(check_path(spec.script, "script"));
  if (!spec.command.empty() && spec.command[0].empty()) return bad("command", "the program's name is empty");
  for (const std::string& argument : spec.command) TRY_VOID(check_argument(argument, "command"));
  for (const std::string& argument : spec.script_arguments) TRY_VOID(check_argument(argument, "script argument"));
  return {};
}

Result<void> check_mounts(const std::vector<MountSpec>& mounts) {
  std::set<std::string> targets;
  for (const MountSpec& mount : mounts) {
    const MountSpec checked = TRY(checked_mount(mount, "mount"));
    if (!targets.insert(checked.target).second)
      return bad("mount", fmt::format("two mounts at {}", quote(checked.target)));
  }
  return {};
}

Result<void> check_workspace(const SandboxSpec& spec) {
  if (spec.workspace.empty()) return {};
  TRY_VOID(check_path(spec.workspace, "workspace"));
  const auto is_in_its_place = [](const MountSpec& mount) { return mount.target == kWorkspaceTarget; };
  if (std::ranges::none_of(spec.mounts, is_in_its_place)) return {};
  return bad("mount", fmt::format("{} is the workspace's place; mount at another", kWorkspaceTarget));
}

// Said before anything of the secrets themselves: whoever mends that would only be refused the next time.
Result<void> check_network(const SandboxSpec& spec) {
  const auto row = std::ranges::find(tier_rows(), spec.tier, &TierRow::name);
  if (spec.secrets.empty() || row == tier_rows().end() || row->network == TierNetwork::by_name) return {};
  return fail(ErrorCode::usage,
              fmt::format("--secret: the {} tier has no network yet; use --isolation container", spec.tier));
}

Result<void> check_secrets(const SandboxSpec& spec) {
  TRY_VOID(check_network(spec));
  std::set<std::string> names;
  for (SecretRule secret : spec.secrets) {
    TRY_VOID(check_secret_rule(secret, "secret"));
    const auto has_name = [&](const EnvironmentVariable& variable) { return variable.name == secret.name; };
    if (names.insert(secret.name).second && std::ranges::none_of(spec.environment, has_name)) continue;
    return bad("secret", fmt::format("{} is set twice; a variable is a secret or has a value", one_line(secret.name)));
  }
  return check_secret_rules(spec.secrets, spec.allow, "secret");
}

Result<void> check_optional_inside_path(const std::string& path, std::string_view where) {
  if (!path.empty()) TRY(normal_inside_path(path, where));
  return {};
}

}  // namespace

Result<void> check_argument(std::string_view text, std::string_view where) {
  if (text.find('\0') != std::string_view::npos) return bad(where, "a NUL byte can't be passed to a program");
  if (text.size() > kArgumentBytesMax) {
    return bad(where, fmt::format("longer than the {} bytes that the kernel takes in one piece", kArgumentBytesMax));
  }
  return {};
}

Result<void> check_path(std::string_view path, std::string_view where) {
  if (path.empty()) return bad(where, "the path is empty");
  if (path.find('\0') != std::string_view::npos) return bad(where, "a path can't hold a NUL byte");
  if (path.size() >= PATH_MAX) return bad(where, fmt::format("a path has at most {} bytes", PATH_MAX - 1));
  return {};
}

Result<std::string> normal_inside_path(std::string_view path, std::string_view where) {
  TRY_VOID(check_path(path, where));
  if (path[0] != '/') return bad(where, fmt::format("{} must be an absolute path, such as /data", quote(path)));
  std::string normal;
  while (!path.empty()) {
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(part.size());
    if (part == "..") return bad(where, "a path inside the sandbox can't have .. in it");
    if (part.empty() || part == ".") continue;
    normal += '/';
    normal += part;
  }
  return normal.empty() ? "/" : normal;
}

Result<void> check_environment_name(std::string_view name, std::string_view where) {
  const auto is_good = [](char c) { return c > 0x20 && c < 0x7F && c != '='; };
  if (name.empty()) return bad(where, "the variable's name is empty; write NAME=VALUE");
  if (!std::all_of(name.begin(), name.end(), is_good)) {
    return bad(where, fmt::format("{} can't be a variable's name; use letters, digits and _", quote(name)));
  }
  return {};
}

Result<void> check_environment_variable(const EnvironmentVariable& variable, std::string_view where) {
  TRY_VOID(check_environment_name(variable.name, where));
  TRY_VOID(check_argument(variable.value, where));
  if (variable.name.size() + 1 + variable.value.size() > kArgumentBytesMax) {
    return bad(where, fmt::format("{}: name and value together are longer than the {} bytes that the kernel takes",
                                  one_line(variable.name), kArgumentBytesMax));
  }
  return {};
}

Result<std::string> checked_hidden_path(std::string_view path, std::string_view where) {
  const auto normal = normal_inside_path(path, where);
  if (!normal) return normal;
  if (*normal == "/") return bad(where, "the whole image can't be hidden");
  for (const std::string_view own : {"/proc", "/dev", "/dev/shm", "/sys", "/tmp"}) {
    if (*normal != own) continue;
    return bad(where, fmt::format("{}: this folder is the sandbox's own, and there is nothing of the host in it; hide "
                                  "what is in the image or a mount",
                                  own));
  }
  return normal;
}

Result<MountSpec> checked_mount(MountSpec mount, std::string_view where) {
  TRY_VOID(check_path(mount.source, fmt::format("{}: the folder or file on the host", where)));
  mount.target = TRY(normal_inside_path(mount.target, fmt::format("{}: the place inside", where)));
  if (mount.target == "/")
    return bad(where, "the root folder of the sandbox can't be replaced; mount at a folder such as /data");
  for (const std::string_view folder : kReservedFolders) {
    if (is_within(mount.target, folder)) {
      return bad(where, fmt::format("{}: nothing can be mounted at or below {}; mount at a folder such as /data",
                                    quote(mount.target), folder));
    }
  }
  return mount;
}

bool is_image_name(std::string_view name) {
  constexpr std::size_t kBytesMax = 128;
  const auto is_alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const auto is_good = [&](char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-' || c == ':'; };
  return !name.empty() && name.size() <= kBytesMax && is_alphanumeric(name[0]) &&
         std::all_of(name.begin(), name.end(), is_good);
}

Result<void> check_image_name(std::string_view name, std::string_view where) {
  if (is_image_name(name)) return {};
  return bad(where,
             fmt::format("{} can't be the name of an image; use letters, digits and . _ - :, such as python:3.11",
                         quote(name)));
}

bool is_image_path(std::string_view reference) {
  return reference.starts_with('.') || reference.find('/') != std::string_view::npos;
}

Result<void> check_image_reference(std::string_view reference, std::string_view where) {
  return is_image_path(reference) ? check_path(reference, where) : check_image_name(reference, where);
}

bool has_wildcard(std::string_view text) {
  return text.find_first_of("*?[\\") != std::string_view::npos;
}

Result<CollectSpec> checked_collect(CollectSpec collect, std::string_view where) {
  collect.source = TRY(normal_inside_path(collect.source, fmt::format("{}: the files inside", where)));
  TRY_VOID(check_path(collect.destination, fmt::format("{}: the folder on the host", where)));
  for (const std::string_view folder : kReservedFolders) {
    if (is_within(collect.source, folder))
      return bad(where, fmt::format("{}: nothing is collected from {}", quote(collect.source), folder));
  }
  const std::string_view first = std::string_view(collect.source).substr(1, collect.source.find('/', 1) - 1);
  if (!first.empty() && !has_wildcard(first)) return collect;
  return bad(where, fmt::format("{}: name the folder that holds the files, such as /out or '/tmp/*.png'",
                                quote(collect.source)));
}

Result<void> check_profile_name(std::string_view name, std::string_view where) {
  constexpr std::size_t kNameBytesMax = 64;
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  if (!name.empty() && name.size() <= kNameBytesMax && name[0] != '.' && name[0] != '-' &&
      std::ranges::all_of(name, is_allowed)) {
    return {};
  }
  return fail(ErrorCode::bad_value, fmt::format("{}: {} is not a profile's name; write at most 64 letters, digits and "
                                                ". _ -, such as data-analysis",
                                                where, quote(name)));
}

Result<void> check_tier(std::string_view name, std::string_view where) {
  if (name == kAutoTier) return {};
  std::vector<std::string_view> known;
  for (const TierRow& row : tier_rows()) {
    if (row.name == name) return {};
    known.push_back(row.name);
  }
  return bad(where, fmt::format("this version has no tier {}; {}", quote(name), name_hint(name, known)));
}

Result<void> check_required(std::string_view name, std::string_view where) {
  if (name == kRequireAll) return {};
  const auto& known = requirable_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  return bad(where, fmt::format("there is no wall or limit {}; {}", quote(name), name_hint(name, known)));
}

Result<void> check_limit_name(std::string_view name, std::string_view where) {
  std::vector<std::string_view> known;
  for (const LimitRow& row : limit_rows()) {
    if (row.name == name) return {};
    known.push_back(row.name);
  }
  return bad(where, fmt::format("there is no limit {}; {}", quote(name), name_hint(name, known)));
}

// A limit that is off holds nothing.
Result<void> check_requirements(const SandboxSpec& spec) {
  for (const std::string& name : spec.required) {
    TRY_VOID(check_required(name, "require"));
    for (const LimitRow& row : limit_rows()) {
      if (row.name != name || !is_unlimited(row, (spec.limits.*row.field).value)) continue;
      return bad("require",
                 fmt::format("the limit {} is off, so there is nothing to hold; set it with --{}", row.name, row.flag));
    }
  }
  return {};
}

Result<void> validate(const SandboxSpec& spec) {
  TRY_VOID(check_program(spec));
  TRY_VOID(check_tier(spec.tier, "tier"));
  if (!spec.image.empty()) TRY_VOID(check_image_reference(spec.image, "image"));
  TRY_VOID(check_limits(spec.limits));
  for (const auto& variable : spec.environment) TRY_VOID(check_environment_variable(variable, "environment"));
  TRY_VOID(check_mounts(spec.mounts));
  TRY_VOID(check_workspace(spec));
  for (const CollectSpec& collect : spec.collect) TRY(checked_collect(collect, "collect"));
  for (EgressRule rule : spec.allow) TRY_VOID(check_egress_rule(rule, "allow"));
  TRY_VOID(check_egress_rules(spec.allow, "allow"));
  TRY_VOID(check_secrets(spec));
  for (const std::string& path : spec.hidden_paths) TRY(checked_hidden_path(path, "hide"));
  if (!spec.venv.empty()) TRY_VOID(check_path(spec.venv, "venv"));
  TRY_VOID(check_optional_inside_path(spec.workdir, "workdir"));
  TRY_VOID(check_requirements(spec));
  for (const std::string& name : spec.weaker_accepted) TRY_VOID(check_limit_name(name, "accept_weaker"));
  return {};
}

}  // namespace belljar
