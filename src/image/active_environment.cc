#include "image/active_environment.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "base/fd.h"
#include "image/path_trace.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr std::size_t kConfigBytesMax = 64 << 10;
constexpr int kBasesMax = 4;  // an environment made from an environment made from ...

// Mounting one of these would show far more than an interpreter.
constexpr std::array<std::string_view, 18> kTooMuch = {"/",     "/home", "/root", "/usr",   "/etc",     "/var",
                                                       "/opt",  "/srv",  "/mnt",  "/media", "/tmp",     "/run",
                                                       "/proc", "/sys",  "/dev",  "/boot",  "/var/tmp", "/var/lib"};

// Nothing of these can be mounted: they are the sandbox's own.
constexpr std::array<std::string_view, 7> kOwn = {"/proc", "/sys", "/dev", "/etc", "/run", "/boot", "/tmp/home"};

std::string_view without_trailing_slashes(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

// The folder that `path` lies in; "/" for what lies in the root.
std::string parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return "/";
  return std::string(path.substr(0, slash));
}

std::string_view name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string value_of(const EnvironmentLookup& lookup, const char* name) {
  const char* const value = lookup(name);
  return value == nullptr ? "" : value;
}

bool is_folder(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_program(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

// The path without links in it; empty if there is nothing.
std::string real_path(const std::string& path) {
  char buffer[PATH_MAX];
  return ::realpath(path.c_str(), buffer) == nullptr ? "" : std::string(buffer);
}

// True for what the image shows of the host anyway: /usr, and /lib and so on where they are folders of their own.
bool is_in_image(std::string_view real) {
  return std::ranges::any_of(std::array{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"},
                             [real](std::string_view folder) { return is_within(real, folder); });
}

// Why a folder is not to be mounted; empty if it may be.
std::string too_much(std::string_view real, const EnvironmentLookup& lookup) {
  if (std::ranges::find(kTooMuch, real) != kTooMuch.end()) return "holds more than an interpreter";
  for (const std::string_view own : kOwn) {
    if (is_within(real, own)) return fmt::format("lies in {}, which a sandbox has of its own", own);
  }
  const std::string home = real_path(value_of(lookup, "HOME"));
  if (!home.empty() && home != "/" && is_within(home, real)) return "holds your home folder";
  for (const char* const part : {"/.local", "/.local/share", "/.config", "/.cache"}) {
    if (!home.empty() && real == home + part) return "holds data of many programs";
  }
  if (is_within(real, "/home") && parent_of(real) == "/home") return "is a home folder";
  return {};
}

// The value of `key` in a pyvenv.cfg ("key = value" lines); empty if there is none.
std::string config_value(std::string_view content, std::string_view key) {
  while (!content.empty()) {
    std::string_view line = content.substr(0, content.find('\n'));
    content.remove_prefix(std::min(line.size() + 1, content.size()));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const auto trimmed = [](std::string_view text) {
      const std::size_t first = text.find_first_not_of(" \t\r");
      if (first == std::string_view::npos) return std::string_view();
      return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
    };
    if (trimmed(line.substr(0, equals)) == key) return std::string(trimmed(line.substr(equals + 1)));
  }
  return {};
}

// The first word of a version file, such as "3.12.1"; empty if there is no such file.
std::string first_word(const std::string& path) {
  const auto content = read_file_at(AT_FDCWD, path.c_str(), kConfigBytesMax);
  if (!content) return {};
  const std::size_t start = content->find_first_not_of(" \t\r\n");
  if (start == std::string::npos) return {};
  return content->substr(start, content->find_first_of(" \t\r\n:", start) - start);
}

// ---------------------------------------------------------------------------------------------- interpreters on PATH

// Programs whose shims start ROOT/versions/VERSION/bin/NAME, where the shim is ROOT/shims/NAME.
struct ShimFamily {
  std::string_view program;  // what the names of its programs begin with
  const char* version_variable;
  const char* version_file;
};
constexpr std::array<ShimFamily, 4> kShimFamilies = {{{"python", "PYENV_VERSION", ".python-version"},
                                                      {"pip", "PYENV_VERSION", ".python-version"},
                                                      {"node", "NODENV_VERSION", ".node-version"},
                                                      {"perl", "PLENV_VERSION", ".perl-version"}}};

// The version that a shim would start, in its own order: the variable, the nearest version file, the global one.
std::string chosen_version(const ShimFamily& family, const std::string& root, const EnvironmentLookup& lookup) {
  if (std::string version = value_of(lookup, family.version_variable); !version.empty()) {
    return version.substr(0, version.find(':'));
  }
  char working_folder[PATH_MAX];
  if (::getcwd(working_folder, sizeof working_folder) != nullptr) {
    for (std::string folder = working_folder; folder.size() > 1; folder = parent_of(folder)) {
      if (std::string version = first_word(folder + '/' + family.version_file); !version.empty()) return version;
    }
  }
  return first_word(root + "/version");
}

// The folder that `version` names: itself, or the newest that it begins ("3.12" means "3.12.4").
std::string newest_version(const std::string& versions, const std::string& version) {
  if (is_folder(versions + '/' + version)) return version;
  std::string newest;
  DIR* const stream = ::opendir(versions.c_str());
  if (stream == nullptr) return version;
  while (const dirent* entry = ::readdir(stream)) {  // NOLINT(concurrency-mt-unsafe): one stream, one thread
    if (!std::string_view(entry->d_name).starts_with(version + '.')) continue;
    if (newest.empty() || ::strverscmp(newest.c_str(), entry->d_name) < 0) newest = entry->d_name;
  }
  ::closedir(stream);
  return newest.empty() ? version : newest;
}

// The real prefix behind a shim; empty if the shim would start the system's program, or is of an unknown kind.
std::string prefix_behind_shim(std::string_view program, const std::string& root, const EnvironmentLookup& lookup) {
  const auto family = std::ranges::find_if(
      kShimFamilies, [program](const ShimFamily& candidate) { return program.starts_with(candidate.program); });
  if (family == kShimFamilies.end()) return {};
  const std::string version = chosen_version(*family, root, lookup);
  if (version.empty() || version == "system" || version.find("..") != std::string::npos) return {};
  const std::string prefix = fmt::format("{}/versions/{}", root, newest_version(root + "/versions", version));
  return is_program(fmt::format("{}/bin/{}", prefix, program)) ? prefix : "";
}

// The prefix of an executable: the virtual environment that it stands in, or where it is really installed.
std::string prefix_of(const std::string& executable) {
  std::string own = parent_of(parent_of(executable));
  if (::access((own + "/pyvenv.cfg").c_str(), F_OK) == 0) return own;
  const std::string real = real_path(executable);
  if (real.empty() || name_of(parent_of(real)) != "bin") return {};
  return parent_of(parent_of(real));
}

std::optional<OutsideInterpreter> outside(std::string_view program, const std::string& executable,
                                          const std::string& prefix, const char* found_by,
                                          const EnvironmentLookup& lookup) {
  const std::string real = real_path(prefix);
  if (real.empty() || is_in_image(real) || !too_much(real, lookup).empty()) return std::nullopt;
  return OutsideInterpreter{
      .program = std::string(program), .path = executable, .prefix = prefix, .found_by = found_by};
}

}  // namespace

std::optional<OutsideInterpreter> find_outside_interpreter(std::string_view program, const EnvironmentLookup& lookup) {
  for (const char* const variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix(without_trailing_slashes(value_of(lookup, variable)));
    if (!prefix.starts_with('/')) continue;
    const std::string executable = fmt::format("{}/bin/{}", prefix, program);
    if (!is_program(executable)) continue;
    if (auto found = outside(program, executable, prefix, variable, lookup)) return found;
  }
  const std::string search = value_of(lookup, "PATH");
  for (std::string_view rest = search; !rest.empty();) {
    const std::string folder(without_trailing_slashes(rest.substr(0, rest.find(':'))));
    rest.remove_prefix(
        std::min(rest.find(':') == std::string_view::npos ? rest.size() : rest.find(':') + 1, rest.size()));
    if (!folder.starts_with('/')) continue;
    std::string executable = fmt::format("{}/{}", folder, program);
    if (!is_program(executable)) continue;
    std::string prefix;
    if (name_of(folder) == "shims") {
      prefix = prefix_behind_shim(program, parent_of(folder), lookup);
      if (prefix.empty()) continue;  // the shim would go on to the next one on PATH
      executable = fmt::format("{}/bin/{}", prefix, program);
    } else {
      prefix = prefix_of(executable);
    }
    return prefix.empty() ? std::nullopt : outside(program, executable, prefix, "PATH", lookup);
  }
  return std::nullopt;
}

std::string outside_interpreter_hint(const OutsideInterpreter& interpreter) {
  return fmt::format("your {} is {}, which lies outside /usr and is not in the sandbox; to use it, add --venv {}",
                     interpreter.program, interpreter.path, interpreter.prefix);
}

// ------------------------------------------------------------------------------------------------------------- --venv

namespace {

class VenvResolver {
 public:
  VenvResolver(int root_fd, const EnvironmentLookup& lookup) : root_fd_(root_fd), lookup_(lookup) {}

  Result<VenvPlan> resolve(const std::string& path);

 private:
  Result<std::string> add_prefix(const std::string& path, std::string_view what);
  Result<void> add_base(const std::string& prefix);
  PathTrace follow(const std::string& path);
  void drop_what_is_covered();

  const int root_fd_;
  const EnvironmentLookup& lookup_;
  VenvPlan plan_;
};

// Remembers the links on the way, since a program inside must be able to go the same way.
PathTrace VenvResolver::follow(const std::string& path) {
  PathTrace trace = trace_path(root_fd_, path);
  if (trace.end != TraceEnd::found) return trace;
  for (const TraceNode& node : trace.nodes) {
    if (!node.link_text.empty()) plan_.links.push_back({.path = '/' + node.path, .text = node.link_text});
  }
  return trace;
}

// Puts a folder on the list, and returns its path without links.
Result<std::string> VenvResolver::add_prefix(const std::string& path, std::string_view what) {
  const PathTrace trace = follow(path);
  if (trace.end != TraceEnd::found) {
    return fail(ErrorCode::bad_mount, fmt::format("{} {} does not exist", what, path));
  }
  std::string real = trace.nodes.empty() ? "/" : '/' + trace.nodes.back().path;
  if (!is_folder(real)) return fail(ErrorCode::bad_mount, fmt::format("{} {} is not a folder", what, path));
  if (is_in_image(real) && std::ranges::find(kTooMuch, real) == kTooMuch.end()) return real;
  if (const std::string reason = too_much(real, lookup_); !reason.empty()) {
    return fail(ErrorCode::bad_mount, fmt::format("{} {} can't be mounted: it {}", what, path, reason));
  }
  plan_.folders.push_back(real);
  return real;
}

bool is_interpreter_name(std::string_view name) {
  return name.starts_with("python") || name.starts_with("pypy") || name.starts_with("graalpy");
}

// Finds the interpreter that an environment was made from. Where it is one of the image's own, nothing is to be done.
Result<void> VenvResolver::add_base(const std::string& prefix) {
  std::string current = prefix;
  for (int depth = 0; depth < kBasesMax; ++depth) {
    const auto config = read_file_at(AT_FDCWD, (current + "/pyvenv.cfg").c_str(), kConfigBytesMax);
    if (!config) return {};
    std::vector<std::string> executables = {current + "/bin/python3", current + "/bin/python"};
    for (const char* const key : {"executable", "base-executable"}) executables.push_back(config_value(*config, key));
    if (const std::string home = config_value(*config, "home"); !home.empty()) {
      for (const char* const name : {"/python3", "/python"}) executables.push_back(home + name);
    }
    std::string base;
    for (const std::string& executable : executables) {
      if (!executable.starts_with('/')) continue;
      const PathTrace trace = follow(executable);
      if (trace.end != TraceEnd::found || trace.nodes.empty()) continue;
      const std::string real = '/' + trace.nodes.back().path;
      if (is_in_image(real) || is_within(real, current) || name_of(parent_of(real)) != "bin") continue;
      // An environment's files may be a program's own work: they may not name any other folder with a bin in it.
      if (!is_interpreter_name(name_of(real))) continue;
      base = parent_of(parent_of(real));
      TRY_VOID(add_prefix(base, "the base interpreter's folder"));
    }
    if (base.empty()) return {};
    current = base;
  }
  return {};
}

// Leaves each folder and link once, without those that are visible through another folder or through /usr.
void VenvResolver::drop_what_is_covered() {
  std::ranges::sort(plan_.folders);  // an outer folder comes before its inner ones
  std::vector<std::string> kept;
  for (std::string& folder : plan_.folders) {
    const auto covers = [&folder](const std::string& outer) { return is_within(folder, outer); };
    if (std::ranges::none_of(kept, covers)) kept.push_back(std::move(folder));
  }
  plan_.folders = std::move(kept);
  std::ranges::sort(plan_.links, {}, &VenvLink::path);
  const auto same = [](const VenvLink& a, const VenvLink& b) { return a.path == b.path; };
  plan_.links.erase(std::unique(plan_.links.begin(), plan_.links.end(), same), plan_.links.end());
  std::erase_if(plan_.links, [this](const VenvLink& link) {
    return is_in_image(link.path) || is_within(link.path, "/etc") ||
           std::ranges::any_of(plan_.folders, [&](const std::string& folder) { return is_within(link.path, folder); });
  });
}

Result<VenvPlan> VenvResolver::resolve(const std::string& path) {
  const std::string real = TRY(add_prefix(path, "--venv"));
  plan_.path_folder = path + "/bin";
  if (!is_folder(real + "/bin")) {
    return fail(
        ErrorCode::bad_mount,
        fmt::format("--venv {} has no bin folder: it wants a virtual environment or an interpreter's prefix", path));
  }
  if (::access((real + "/pyvenv.cfg").c_str(), F_OK) == 0) plan_.virtual_env = path;
  TRY_VOID(add_base(real));
  drop_what_is_covered();
  return std::move(plan_);
}

}  // namespace

Result<VenvPlan> resolve_venv(std::string_view path, const EnvironmentLookup& lookup) {
  if (path.empty()) return fail(ErrorCode::bad_mount, "--venv wants a folder");
  if (path.find('\0') != std::string_view::npos) return fail(ErrorCode::bad_mount, "--venv holds a NUL byte");
  std::string absolute(path);
  if (!path.starts_with('/')) {
    char working_folder[PATH_MAX];
    if (::getcwd(working_folder, sizeof working_folder) == nullptr) {
      return fail(ErrorCode::bad_mount, fmt::format("--venv {} is relative, and the working folder is gone", path));
    }
    absolute = fmt::format("{}/{}", working_folder, path);
  }
  // "." and ".." are taken out as the kernel reads them, so that PATH and VIRTUAL_ENV look as a person would write
  // them.
  if (absolute.find("/.") != std::string::npos || absolute.find("//") != std::string::npos) {
    bool has_dots = absolute.find("//") != std::string::npos;
    for (std::size_t start = 0; start < absolute.size();) {
      const std::size_t end = std::min(absolute.find('/', start), absolute.size());
      const std::string_view component = std::string_view(absolute).substr(start, end - start);
      has_dots = has_dots || component == "." || component == "..";
      start = end + 1;
    }
    if (const std::string real = has_dots ? real_path(absolute) : ""; !real.empty()) absolute = real;
  }
  absolute = without_trailing_slashes(absolute);
  const auto root = open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY);
  if (!root) return fail(ErrorCode::bad_mount, fmt::format("/ can't be opened: {}", errno_text(root.error().value)));
  return VenvResolver(root->get(), lookup).resolve(absolute);
}

}  // namespace belljar
