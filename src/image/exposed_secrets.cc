#include "image/exposed_secrets.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "base/fd.h"

namespace belljar {
namespace {

constexpr std::size_t kHeadBytes = 64 << 10;

enum class Suspicion { none, name, if_private_key };

Suspicion suspicion_of(std::string_view name) {
  constexpr std::array<std::string_view, 15> kNames = {
      ".env",     ".netrc",     ".npmrc", ".pypirc",     ".pgpass", ".git-credentials", ".htpasswd", "id_rsa",
      "id_ecdsa", "id_ed25519", "id_dsa", "credentials", "secrets", "wallet.dat",       "shadow"};
  constexpr std::array<std::string_view, 6> kStarts = {".env.",   "credentials.",  "secrets.",
                                                       "secret.", "client_secret", "service-account"};
  constexpr std::array<std::string_view, 4> kEnds = {".kdbx", ".p12", ".pfx", ".jks"};
  constexpr std::array<std::string_view, 3> kKeyEnds = {".pem", ".key", ".ppk"};
  // Source files that handle credentials are no credentials.
  constexpr std::array<std::string_view, 16> kSources = {".py", ".pyi", ".pyc", ".js", ".ts",   ".mjs", ".cjs", ".map",
                                                         ".go", ".rb",  ".rs",  ".h",  ".html", ".md",  ".pm",  ".txt"};
  const auto ends = [name](std::string_view end) { return name.ends_with(end); };
  const auto starts = [name](std::string_view start) { return name.starts_with(start); };
  if (std::ranges::find(kNames, name) != kNames.end() || std::ranges::any_of(kEnds, ends)) return Suspicion::name;
  if (std::ranges::any_of(kStarts, starts) && std::ranges::none_of(kSources, ends)) return Suspicion::name;
  if (std::ranges::any_of(kKeyEnds, ends)) return Suspicion::if_private_key;
  return Suspicion::none;
}

bool holds_private_key(int fd) {
  std::string head(kHeadBytes, '\0');
  const ssize_t count = ::pread(fd, head.data(), head.size(), 0);
  if (count <= 0) return false;
  head.resize(static_cast<std::size_t>(count));
  return head.find("PRIVATE KEY") != std::string::npos || head.starts_with("PuTTY-User-Key-File");
}

bool is_exposed(int folder_fd, const char* name) {
  const Suspicion suspicion = suspicion_of(name);
  if (suspicion == Suspicion::none) return false;
  const auto file = open_at(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  struct stat status;
  if (!file || ::fstat(file->get(), &status) != 0) return false;
  if (!S_ISREG(status.st_mode) || (status.st_mode & S_IROTH) == 0 || status.st_size == 0) return false;
  return suspicion == Suspicion::name || holds_private_key(file->get());
}

// Looks at one folder: its secrets go to `found`, its folders to `todo`.
void look_into(const std::string& folder, std::vector<std::string>& found, std::vector<std::string>& todo) {
  auto opened = open_at(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  struct stat status;
  if (!opened || ::fstat(opened->get(), &status) != 0 || (status.st_mode & S_IXOTH) == 0) return;
  DIR* const stream = ::fdopendir(opened->get());
  if (stream == nullptr) return;
  const int fd = opened->release();
  while (const dirent* entry = ::readdir(stream)) {  // NOLINT(concurrency-mt-unsafe): one stream, one thread
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    unsigned char type = entry->d_type;
    if (type == DT_UNKNOWN && ::fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
      type = static_cast<unsigned char>(IFTODT(status.st_mode));
    }
    std::string path = folder + '/' + entry->d_name;
    if (type == DT_DIR) {
      if (name != "test" && name != "tests") todo.push_back(std::move(path));
    } else if (type == DT_REG && is_exposed(fd, entry->d_name)) {
      found.push_back(std::move(path));
    }
  }
  ::closedir(stream);
}

}  // namespace

ExposedSecrets find_exposed_secrets(const std::string& folder, std::chrono::milliseconds time_max) {
  const auto deadline = std::chrono::steady_clock::now() + time_max;
  ExposedSecrets secrets;
  std::vector<std::string> todo = {folder};
  while (!todo.empty()) {
    if (std::chrono::steady_clock::now() >= deadline || secrets.paths.size() > kExposedSecretsMax) {
      secrets.coverage = Coverage::partial;
      break;
    }
    const std::string next = std::move(todo.back());
    todo.pop_back();
    look_into(next, secrets.paths, todo);
  }
  std::ranges::sort(secrets.paths);
  if (secrets.paths.size() > kExposedSecretsMax) secrets.paths.resize(kExposedSecretsMax);
  return secrets;
}

}  // namespace belljar
