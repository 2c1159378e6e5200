#include "image/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "host/privilege.h"
#include "image/host_image.h"
#include "spec/errors.h"

namespace belljar {
namespace {

constexpr const char* kRootCache = "/var/cache/belljar";

// mkdir -p, all but the last component with the umask's mode.
void make_parents(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    ::mkdir(path.substr(0, slash).c_str(), 0755);  // what could not be made shows when the last one is made
  }
}

std::unexpected<Error> refuse(const PrivateFolder& kind, const std::string& path, const std::string& reason) {
  return fail(ErrorCode::host_unsupported, fmt::format("{} {} {}", kind.what, path, reason));
}

// A folder whose own mode keeps its owner out is opened up first.
SysResult<Fd> open_for_removal(int parent_fd, const char* name) {
  constexpr int kFlags = O_DIRECTORY | O_NOFOLLOW;
  auto folder = open_at(parent_fd, name, O_RDONLY | kFlags);
  if (!folder && folder.error().value == EACCES) {
    const Fd closed = TRY(open_at(parent_fd, name, O_PATH | kFlags));
    ::chmod(fmt::format("/proc/self/fd/{}", closed.get()).c_str(), 0700);
    return open_at(parent_fd, name, O_RDONLY | kFlags);
  }
  if (folder) ::fchmod(folder->get(), 0700);
  return folder;
}

}  // namespace

Result<std::string> cache_folder() {
  if (host::is_root_of_host()) return kRootCache;
  const char* const cache_home = std::getenv("XDG_CACHE_HOME");  // NOLINT(concurrency-mt-unsafe): nobody calls setenv
  if (cache_home != nullptr && cache_home[0] == '/') return std::string(cache_home) + "/belljar";
  const char* const home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe)
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache/belljar";
  return fail(ErrorCode::host_unsupported, "no place for the cache: set HOME or XDG_CACHE_HOME to an absolute path");
}

bool is_private_folder(int folder_fd) {
  struct stat status;
  return ::fstat(folder_fd, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

Result<Fd> open_cache_folder(const std::string& path) {
  const bool is_root = host::is_root_of_host();
  return open_private_folder(
      path, {.what = "the cache folder",
             .remedy = is_root ? "mount a writable folder there" : "set XDG_CACHE_HOME to a folder that you can write",
             .mode = is_root ? 0755U : 0700U});
}

Result<Fd> open_private_folder(const std::string& path, const PrivateFolder& kind) {
  constexpr int kFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW;
  auto opened = open_at(AT_FDCWD, path.c_str(), kFlags);
  if (!opened && opened.error().value == ENOENT) {
    make_parents(path);
    if (::mkdir(path.c_str(), kind.mode) != 0 && errno != EEXIST) {
      return refuse(kind, path, fmt::format("can't be made ({}); {}", errno_text(errno), kind.remedy));
    }
    opened = open_at(AT_FDCWD, path.c_str(), kFlags);
  }
  if (!opened) {
    const int error = opened.error().value;
    if (error == ELOOP || error == ENOTDIR) return refuse(kind, path, "is not a folder (a link is not followed)");
    return refuse(kind, path, fmt::format("can't be opened ({}); {}", errno_text(error), kind.remedy));
  }
  if (!is_private_folder(opened->get())) {
    return refuse(kind, path, "belongs to another user or can be written by others; remove it, or chown and chmod it");
  }
  return std::move(*opened);
}

SysResult<Fd> open_beneath(int root_fd, const std::string& path, int flags) {
  Fd folder;
  std::size_t start = 0;
  while (true) {
    const int from = folder.is_open() ? folder.get() : root_fd;
    const std::size_t slash = path.find('/', start);
    if (slash == std::string::npos) return open_at(from, path.c_str() + start, flags | O_NOFOLLOW);
    const std::string component = path.substr(start, slash - start);
    auto next = open_at(from, component.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW);
    if (!next) return next;
    folder = std::move(*next);
    start = slash + 1;
  }
}

bool remove_tree(int parent_fd, const char* name) {
  if (::unlinkat(parent_fd, name, 0) == 0 || errno == ENOENT) return true;
  {
    auto folder = open_for_removal(parent_fd, name);
    if (!folder) return false;
    DIR* const stream = ::fdopendir(folder->get());
    if (stream == nullptr) return false;
    const int fd = folder->release();
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(stream)) {  // NOLINT(concurrency-mt-unsafe): one stream, one thread
      if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) {
        names.emplace_back(entry->d_name);
      }
    }
    for (const std::string& child : names) remove_tree(fd, child.c_str());
    ::closedir(stream);
  }
  return ::unlinkat(parent_fd, name, AT_REMOVEDIR) == 0;
}

}  // namespace belljar
