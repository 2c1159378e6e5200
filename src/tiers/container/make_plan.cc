#include "tiers/container/make_plan.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>

#include "host/open_path.h"
#include "host/privilege.h"
#include "host/redirect.h"
#include "image/active_environment.h"
#include "spec/errors.h"
#include "spec/interpreter.h"
#include "tiers/container/readable.h"
#include "tiers/container/sockets.h"
#include "tiers/container/trust.h"

namespace belljar::container {
namespace {

constexpr std::uint64_t kScriptBytesMax = 16 * kMiB;
constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
constexpr std::uint64_t kQuiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

// Places of the sandbox that a caller's mount may not cover: they are walls, or hold the sandbox together.
constexpr const char* kReservedTargets[] = {"/",       "/proc",     "/sys",   "/dev",     "/etc", "/usr",
                                            "/tmp",    "/tmp/home", "/bin",   "/sbin",    "/lib", "/lib64",
                                            "/.empty", "/.empty.d", "/.proc", "/.belljar"};
constexpr const char* kReservedTrees[] = {"/.belljar/", "/proc/", "/sys/", "/dev/",
                                          "/bin/",      "/sbin/", "/lib/", "/lib64/"};

Result<PlannedMount> image_mount(Fd source, std::string path, std::string target, std::uint64_t attributes) {
  PlannedMount mount;
  mount.source = std::move(path);
  mount.target = std::move(target);
  mount.opened = std::move(source);
  mount.attributes = attributes;
  struct stat status{};
  if (::fstat(mount.opened.get(), &status) != 0) {
    return fail(ErrorCode::host_unsupported, fmt::format("can't look at {}: {}", mount.source, errno_text(errno)));
  }
  mount.device = status.st_dev;
  mount.inode = status.st_ino;
  return mount;
}

constexpr std::uint64_t kPlain = MOUNT_ATTR_RDONLY | kQuiet;

Result<void> plan_dev(HostImage& image, StartPlan* plan) {
  if (!image.dev.is_open() && plan->privilege == Privilege::root) {
    return fail(
        ErrorCode::host_unsupported,
        fmt::format("{}: no device nodes could be made and opened beside it, for the sandbox's /dev; it takes "
                    "CAP_MKNOD and a file system that has nodes: mount one, such as a tmpfs, on the cache folder",
                    image.etc_path));
  }
  if (!image.dev.is_open()) return {};
  plan->dev_is_mounted = true;
  plan->mounts.push_back(TRY(image_mount(std::move(image.dev), image.dev_path, "/dev",
                                         MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)));
  plan->mounts.back().must_allow_devices = image.forbids_devices;
  return {};
}

Result<void> plan_host_image(HostImage& image, StartPlan* plan) {
  plan->folders = {"/usr", "/etc"};
  plan->mounts.push_back(TRY(image_mount(std::move(image.usr), "/usr", "/usr", kPlain)));
  plan->mounts.push_back(TRY(image_mount(std::move(image.etc), image.etc_path, "/etc", kPlain | MOUNT_ATTR_NOEXEC)));
  if (image.var.is_open()) {
    plan->mounts.push_back(TRY(image_mount(std::move(image.var), image.var_path, "/var", kPlain | MOUNT_ATTR_NOEXEC)));
  }
  for (const RootEntry& entry : image.root_entries) {
    if (!entry.link_target.empty()) {
      plan->root_links.push_back({"/" + entry.name, entry.link_target});
      continue;
    }
    const std::string path = "/" + entry.name;
    auto folder = open_at(AT_FDCWD, path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW);
    if (!folder) {
      return fail(ErrorCode::host_unsupported,
                  fmt::format("can't open {}: {}", path, errno_text(folder.error().value)));
    }
    plan->mounts.push_back(TRY(image_mount(std::move(*folder), path, path, kPlain)));
  }
  return {};
}

// The root itself stays the sandbox's own, so that places that the image lacks can be made in it.
Result<void> plan_loaded_image(const LoadedImage& image, StartPlan* plan) {
  for (const ImagePart& part : image.record.parts) {
    std::string target = "/" + part.name;
    if (part.kind == ImagePart::Kind::link) {
      plan->root_links.push_back({std::move(target), part.target});
      continue;
    }
    if (part.kind == ImagePart::Kind::empty_folder) {
      plan->folders.push_back(std::move(target));
      continue;
    }
    auto opened = open_at(image.root.get(), part.name.c_str(), O_PATH | O_NOFOLLOW);
    if (!opened) {
      return fail(ErrorCode::bad_image, fmt::format("{}{}: {}; load the image again", image.root_path, target,
                                                    errno_text(opened.error().value)));
    }
    PlannedMount mount = TRY(image_mount(std::move(*opened), image.root_path + target, target, kPlain));
    mount.is_folder = part.kind == ImagePart::Kind::folder;
    plan->mounts.push_back(std::move(mount));
  }
  return {};
}

// In place of an image.
Result<void> plan_own_files(OwnProgram& own, StartPlan* plan) {
  for (SandboxFile& file : own.files) {
    PlannedMount mount = TRY(image_mount(std::move(file.opened), file.path, file.target, kPlain));
    mount.is_folder = false;
    plan->mounts.push_back(std::move(mount));
  }
  plan->system = "nothing but Belljar's own program";
  return {};
}

// Where `path` lies at or below `folder`.
bool is_within(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

bool is_reserved_target(std::string_view target, std::string_view script_folder) {
  return (!script_folder.empty() && is_within(target, script_folder)) ||
         std::ranges::any_of(kReservedTargets, [&](std::string_view reserved) { return target == reserved; }) ||
         std::ranges::any_of(kReservedTrees, [&](std::string_view tree) { return target.starts_with(tree); });
}

// Links in a mount's source are not followed. The folder that holds one may have been an earlier sandbox's to write in,
// and then the link leads where that sandbox's program wants.
std::string link_in_path(const std::string& source) {
  std::array<char, PATH_MAX> resolved{};
  const std::string_view other = ::realpath(source.c_str(), resolved.data()) == nullptr ? "" : resolved.data();
  return fmt::format("a part of this path is a symbolic link, which a program may have made; {}",
                     other.empty() ? "name the folder itself" : fmt::format("if {} is meant, name that", other));
}

Result<PlannedMount> plan_caller_mount(const MountSpec& spec, const HostFacts& facts, std::string_view script_folder) {
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::bad_mount, fmt::format("--mount {}:{}: {}", spec.source, spec.target, why));
  };
  if (is_reserved_target(spec.target, script_folder)) {
    return refuse("this place inside is Belljar's own; choose another, such as /data");
  }
  auto opened = host::open_without_links(spec.source.c_str(), O_PATH);
  if (!opened && opened.error().value == ELOOP) return refuse(link_in_path(spec.source));
  if (!opened) return refuse(errno_text(opened.error().value));
  auto path = host::path_of(opened->get());
  if (!path)
    return refuse(fmt::format("can't tell where it is: {}; is /proc mounted?", errno_text(path.error().value)));
  PlannedMount mount = TRY(image_mount(std::move(*opened), std::move(*path), spec.target, kQuiet));
  struct stat status{};
  if (::fstat(mount.opened.get(), &status) != 0) return refuse(errno_text(errno));
  mount.is_folder = S_ISDIR(status.st_mode);
  if (!mount.is_folder && !S_ISREG(status.st_mode)) {
    return refuse("only folders and regular files can be mounted; a socket, device or pipe would be a way out");
  }
  if (facts.privilege == Privilege::user && facts.has_supplementary_groups) {
    TRY_VOID(check_readable_without_groups(mount.source));
  }
  mount.is_caller_mount = true;
  mount.changes_allowed = spec.access == MountAccess::read_write;
  if (!mount.changes_allowed) mount.attributes |= MOUNT_ATTR_RDONLY;
  return mount;
}

// Owners other than the folder's own stay strangers inside.
Result<PlannedMount> plan_workspace(const std::string& source, const HostFacts& facts, std::string_view script_folder) {
  const MountSpec spec{source, kWorkspaceTarget, MountAccess::read_only};
  auto planned = plan_caller_mount(spec, facts, script_folder);
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::bad_workspace, fmt::format("--workspace {}: {}", source, why));
  };
  if (!planned) {
    std::string_view why = planned.error().message;
    const std::string flag = fmt::format("--mount {}:{}: ", source, kWorkspaceTarget);
    if (why.starts_with(flag)) why.remove_prefix(flag.size());
    return refuse(why);
  }
  if (!planned->is_folder) return refuse("this is a file; give the folder that it is in");
  struct stat status{};
  if (::fstat(planned->opened.get(), &status) != 0) return refuse(errno_text(errno));
  planned->is_workspace = true;
  planned->changes_allowed = true;
  planned->owner_uid = status.st_uid;
  planned->owner_gid = status.st_gid;
  return planned;
}

Result<void> plan_socket_covers(StartPlan* plan) {
  for (const PlannedMount& mount : plan->mounts) {
    // A workspace shows no socket's service: an overlayfs has inodes of its own.
    if (!mount.is_caller_mount || !mount.is_folder || mount.is_workspace) continue;
    const auto sockets = sockets_below(mount.opened.get());
    if (!sockets) return fail(sockets.error().code, fmt::format("{}: {}", mount.source, sockets.error().message));
    for (const std::string& path : *sockets) plan->sockets.push_back(fmt::format("{}/{}", mount.target, path));
  }
  return {};
}

Result<void> plan_mounts(const SandboxSpec& spec, const HostFacts& facts, StartPlan* plan) {
  if (!spec.workspace.empty()) {
    plan->mounts.push_back(TRY(plan_workspace(spec.workspace, facts, plan->script_folder)));
  }
  for (const MountSpec& mount : spec.mounts) {
    plan->mounts.push_back(TRY(plan_caller_mount(mount, facts, plan->script_folder)));
  }
  TRY_VOID(plan_socket_covers(plan));
  const std::size_t other_files = 2 * 4 + 1;  // to enter and leave at most four hierarchies, and the script
  if (plan->mounts.size() + other_files > kPassedFdsMax) {
    return fail(ErrorCode::bad_mount,
                fmt::format("{} mounts are too many; at most {} fit", spec.mounts.size(),
                            kPassedFdsMax - other_files - (plan->mounts.size() - spec.mounts.size())));
  }
  return {};
}

// The writable places that the caller wants files from, besides /tmp.
Result<void> plan_own_folders(const SandboxSpec& spec, StartPlan* plan) {
  for (const CollectSpec& collect : spec.collect) {
    const std::string place = collect.source.substr(0, collect.source.find('/', 1));
    if (place == "/tmp") continue;
    const bool is_image =
        is_reserved_target(place, plan->script_folder) ||
        std::ranges::any_of(
            plan->mounts, [&](const PlannedMount& mount) { return !mount.is_caller_mount && mount.target == place; }) ||
        std::ranges::any_of(plan->root_links, [&](const RootLink& link) { return link.name == place; });
    const auto mount = std::ranges::find_if(plan->mounts, [&](const PlannedMount& each) {
      return each.is_caller_mount && is_within(collect.source, each.target);
    });
    if (is_image || mount != plan->mounts.end()) {
      return fail(
          ErrorCode::bad_collect,
          fmt::format(
              "--collect {}:{}: {}", collect.source, collect.destination,
              is_image ? fmt::format("{} belongs to the read-only image; files are collected from /tmp "
                                     "or from a new folder, such as /out",
                                     place)
              : mount->is_workspace
                  ? fmt::format("{} is the workspace, whose changes are kept: see belljar changes", mount->target)
                  : fmt::format("{} is mounted from the host, so the files are there already", mount->target)));
    }
    if (std::ranges::find(plan->own_folders, place) == plan->own_folders.end()) plan->own_folders.push_back(place);
  }
  if (plan->own_folders.size() <= kOwnFoldersMax) return {};
  return fail(ErrorCode::bad_collect, fmt::format("--collect: {} new folders below the root are too many; at most {}",
                                                  plan->own_folders.size(), kOwnFoldersMax));
}

// Opens the script as the caller and reads its first bytes.
Result<std::string> open_script(const SandboxSpec& spec, std::uint64_t bytes_max, StartPlan* plan) {
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::bad_script, fmt::format("{}: {}", spec.script, why));
  };
  auto script = open_at(AT_FDCWD, spec.script.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!script) {
    return refuse(script.error().value == ENOENT ? "no such script; give the path of a file on this host"
                                                 : errno_text(script.error().value));
  }
  struct stat status{};
  if (::fstat(script->get(), &status) != 0) return refuse(errno_text(errno));
  if (S_ISDIR(status.st_mode)) return refuse("this is a folder; give the path of a script");
  if (!S_ISREG(status.st_mode)) return refuse("this is not a regular file; give the path of a script");
  if (static_cast<std::uint64_t>(status.st_size) > bytes_max) {
    return refuse(fmt::format("a script of {} is too large (at most {}); --mount the data it holds",
                              format_limit(LimitUnit::bytes, static_cast<std::uint64_t>(status.st_size)),
                              format_limit(LimitUnit::bytes, bytes_max)));
  }
  std::array<char, 256> head{};
  const ssize_t count = ::pread(script->get(), head.data(), head.size(), 0);
  if (count < 0) return refuse(errno_text(errno));
  plan->script = std::move(*script);
  return std::string(head.data(), static_cast<std::size_t>(count));
}

// An image may have an /app of its own.
Result<std::string> choose_script_folder(const LoadedImage* loaded) {
  if (loaded == nullptr) return kScriptFolder;
  for (const char* const folder : {kScriptFolder, "/script"}) {
    const std::string_view name = folder + 1;
    if (std::ranges::find(loaded->record.parts, name, &ImagePart::name) == loaded->record.parts.end()) return folder;
  }
  return fail(ErrorCode::bad_script,
              "the image has both /app and /script, where a script would go; --mount it, and run a command");
}

// Where the caller names no program, it is the image's.
Result<void> plan_command(const SandboxSpec& spec, const LoadedImage* loaded, StartPlan* plan) {
  plan->arguments = spec.command;
  if (!plan->arguments.empty() || loaded == nullptr) return {};
  const ImageConfig& config = loaded->record.config;
  plan->arguments = config.entrypoint;
  plan->arguments.insert(plan->arguments.end(), config.command.begin(), config.command.end());
  if (!plan->arguments.empty() && !plan->arguments.front().empty()) return {};
  return fail(ErrorCode::usage,
              fmt::format("there is nothing to run, and the image {} names no program; write belljar run --image {} -- "
                          "COMMAND [ARGS]",
                          spec.image, spec.image));
}

Result<void> plan_program(const SandboxSpec& spec, const LoadedImage* loaded, StartPlan* plan) {
  if (spec.script.empty()) return plan_command(spec, loaded, plan);
  const std::string head = TRY(open_script(spec, kScriptBytesMax, plan));
  const ScriptRule rule = loaded == nullptr ? ScriptRule::extension_first : ScriptRule::hash_bang_first;
  const std::string name = script_name(spec.script);
  plan->arguments = TRY(choose_interpreter(name, head, rule));
  plan->script_folder = TRY(choose_script_folder(loaded));
  plan->folders.push_back(plan->script_folder);
  plan->script_target = fmt::format("{}/{}", plan->script_folder, name.substr(name.rfind('/') + 1));
  plan->arguments.push_back(plan->script_target);
  plan->arguments.insert(plan->arguments.end(), spec.script_arguments.begin(), spec.script_arguments.end());
  return {};
}

Result<void> plan_own_program(const SandboxSpec& spec, const OwnProgram& own, StartPlan* plan) {
  plan->arguments = own.arguments;
  plan->exec_paths.push_back(own.program);
  if (spec.script.empty()) return {};
  TRY(open_script(spec, own.script_bytes_max, plan));
  plan->folders.push_back(plan->script_folder);
  plan->script_target = script_target(spec);
  return {};
}

std::string time_zone() {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlink("/etc/localtime", target.data(), target.size() - 1);
  const std::string_view path(target.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  constexpr std::string_view kFolder = "/zoneinfo/";
  const std::size_t found = path.find(kFolder);
  return found == std::string_view::npos ? "UTC" : std::string(path.substr(found + kFolder.size()));
}

void set_variable(std::vector<EnvironmentVariable>* environment, std::string name, std::string value) {
  const auto found = std::ranges::find_if(*environment, [&](const auto& variable) { return variable.name == name; });
  if (found != environment->end()) {
    found->value = std::move(value);
  } else {
    environment->push_back({std::move(name), std::move(value)});
  }
}

// Names are asked of the egress process, which listens where resolvers look when a file names no server; the files are
// for those that want one.
void plan_network_files(const SandboxSpec& spec, const LoadedImage* loaded, StartPlan* plan) {
  if (spec.allow.empty()) return;
  if (loaded == nullptr) {
    plan->cover_files.push_back({"/etc/nsswitch.conf",
                                 "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n"
                                 "protocols: files\nservices: files\nethers: files\nrpc: files\n"});
  } else {
    const auto servers = host::open_beneath(loaded->root.get(), "etc/resolv.conf", O_PATH | O_NOFOLLOW);
    struct stat status{};
    if (!servers || ::fstat(servers->get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  }
  plan->cover_files.push_back({"/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n"});
}

// Programs that know proxies learn from one why a host was refused. Only what leaves the sandbox is meant.
void add_proxy_variables(std::vector<EnvironmentVariable>* environment) {
  const std::string proxy = fmt::format("http://127.0.0.1:{}", host::kProxyPort);
  constexpr const char* kInside = "localhost,127.0.0.1,127.0.0.0/8,::1,[::1],sandbox";
  for (const char* name : {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"}) {
    environment->push_back({name, proxy});
  }
  for (const char* name : {"no_proxy", "NO_PROXY"}) environment->push_back({name, kInside});
}

std::vector<EnvironmentVariable> default_environment() {
  return {{"PATH", kDefaultPath}, {"HOME", kHome}, {"LANG", "C.UTF-8"}, {"TZ", time_zone()}};
}

std::vector<std::string> to_texts(const std::vector<EnvironmentVariable>& environment) {
  std::vector<std::string> texts;
  for (const EnvironmentVariable& variable : environment) {
    texts.push_back(fmt::format("{}={}", variable.name, variable.value));
  }
  return texts;
}

enum class Trust { of_image, with_authority };

// PATH, HOME, LANG, TZ, what the image has, and what the caller named; nothing of the caller's own environment.
Result<void> plan_environment(const SandboxSpec& spec, const LoadedImage* loaded, Trust trust, StartPlan* plan) {
  std::vector<EnvironmentVariable> environment = default_environment();
  if (!spec.allow.empty()) add_proxy_variables(&environment);
  if (loaded != nullptr) {
    if (!spec.venv.empty()) {
      return fail(ErrorCode::usage,
                  "--venv is for the host's interpreters, which an image does not have; leave one out");
    }
    for (const EnvironmentVariable& variable : loaded->record.config.environment)
      set_variable(&environment, variable.name, variable.value);
  }
  if (!spec.venv.empty()) {
    VenvPlan venv = TRY(resolve_venv(spec.venv, [](const char* name) { return std::getenv(name); }));
    for (VenvLink& link : venv.links) plan->root_links.push_back({std::move(link.path), std::move(link.text)});
    for (const std::string& folder : venv.folders) {
      auto opened = open_at(AT_FDCWD, folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW);
      if (!opened) {
        return fail(ErrorCode::bad_mount,
                    fmt::format("--venv {}: {}: {}", spec.venv, folder, errno_text(opened.error().value)));
      }
      PlannedMount mount = TRY(image_mount(std::move(*opened), folder, folder, kQuiet | MOUNT_ATTR_RDONLY));
      mount.is_caller_mount = true;
      plan->mounts.push_back(std::move(mount));
    }
    set_variable(&environment, "PATH", venv.path_folder + ":" + kDefaultPath);
    if (!venv.virtual_env.empty()) set_variable(&environment, "VIRTUAL_ENV", venv.virtual_env);
  }
  if (trust == Trust::with_authority) {
    for (const EnvironmentVariable& variable : trust_variables())
      set_variable(&environment, variable.name, variable.value);
  }
  for (const EnvironmentVariable& variable : spec.environment)
    set_variable(&environment, variable.name, variable.value);
  plan->environment = to_texts(environment);
  if (!plan->exec_paths.empty()) return {};
  const std::string& program = plan->arguments.front();
  if (program.find('/') != std::string::npos) {
    plan->exec_paths.push_back(program);
  } else {
    const auto path = std::ranges::find_if(environment, [](const auto& variable) { return variable.name == "PATH"; });
    std::string_view rest = path->value;
    while (true) {
      const std::size_t colon = rest.find(':');
      const std::string_view folder = rest.substr(0, colon);
      plan->exec_paths.push_back(fmt::format("{}/{}", folder.empty() ? "." : folder, program));
      if (colon == std::string_view::npos) break;
      rest.remove_prefix(colon + 1);
    }
  }
  return {};
}

// Raising a hard limit asks for CAP_SYS_RESOURCE (setrlimit(2)).
Result<void> check_open_files(const Limit& limit) {
  rlimit host{};
  const std::uint64_t wanted = limit.value;
  if (::getrlimit(RLIMIT_NOFILE, &host) != 0 || wanted <= host.rlim_max || host::has_capability(CAP_SYS_RESOURCE)) {
    return {};
  }
  if (limit.source == LimitSource::preset) {
    return fail(ErrorCode::cannot_enforce,
                fmt::format("the caller's limit on open files (ulimit -Hn) is {0}, and a program has {1} by default; "
                            "raise that limit, or give the program fewer with --open-files {0}",
                            host.rlim_max, wanted));
  }
  return fail(ErrorCode::cannot_enforce,
              fmt::format("--open-files {}: this process may have no more than {} (ulimit -Hn); ask for less, or raise "
                          "that",
                          wanted, host.rlim_max));
}

}  // namespace

std::vector<std::string> environment_of(const SandboxSpec& spec) {
  std::vector<EnvironmentVariable> environment = default_environment();
  for (const EnvironmentVariable& variable : spec.environment)
    set_variable(&environment, variable.name, variable.value);
  return to_texts(environment);
}

Result<StartPlan> make_plan(const SandboxSpec& spec, const HostFacts& facts, HostImage& host_image, LoadedImage* loaded,
                            std::string_view authority_pem, OwnProgram* own) {
  const Trust trust = authority_pem.empty() ? Trust::of_image : Trust::with_authority;
  StartPlan plan;
  plan.privilege = facts.privilege;
  plan.landlock_abi = facts.landlock_abi;
  if (own != nullptr) {
    TRY_VOID(plan_own_files(*own, &plan));
  } else if (loaded != nullptr) {
    TRY_VOID(plan_loaded_image(*loaded, &plan));
    plan.system = fmt::format("the image {}", spec.image);
    plan.working_folder = loaded->record.config.working_folder;
    if (spec.script.empty()) plan.script_folder.clear();
  } else {
    TRY_VOID(plan_host_image(host_image, &plan));
  }
  plan.folders.insert(plan.folders.end(), {"/dev", "/tmp"});
  TRY_VOID(plan_dev(host_image, &plan));
  TRY_VOID(own != nullptr ? plan_own_program(spec, *own, &plan) : plan_program(spec, loaded, &plan));
  plan_network_files(spec, loaded, &plan);
  if (own == nullptr) TRY_VOID(plan_environment(spec, loaded, trust, &plan));
  TRY_VOID(plan_mounts(spec, facts, &plan));
  if (trust == Trust::with_authority) plan_trust(authority_pem, &plan);
  TRY_VOID(plan_own_folders(spec, &plan));
  plan.hidden_paths = spec.hidden_paths;
  plan.tmp_size = std::to_string(spec.limits.tmp_size.value);
  plan.tmp_inodes = std::to_string(spec.limits.tmp_inodes.value);
  plan.terminal = spec.terminal;
  TRY_VOID(check_open_files(spec.limits.open_files));
  plan.open_files = spec.limits.open_files.value;
  if (!is_unlimited(limit_row("file_size"), spec.limits.file_size.value)) plan.file_size = spec.limits.file_size.value;
  if (!spec.workspace.empty()) plan.working_folder = kWorkspaceTarget;
  if (!spec.workdir.empty()) plan.working_folder = spec.workdir;
  if (plan.working_folder.empty()) plan.working_folder = kHome;
  return plan;
}

}  // namespace belljar::container
