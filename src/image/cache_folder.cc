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

std::unexpected<Error> refuse(const std::string& path, const std::string& reason) {
  return fail(ErrorCode::host_unsupported, fmt::format("the cache folder {} {}", path, reason));
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
  auto opened = open_at(AT_FDCWD, path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!opened && opened.error().value == ENOENT) {
    make_parents(path);
    const mode_t mode = host::is_root_of_host() ? 0755 : 0700;
    if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) {
      return refuse(path, fmt::format("can't be made ({}); {}", errno_text(errno),
                                      host::is_root_of_host() ? "mount a writable folder there"
                                                              : "set XDG_CACHE_HOME to a folder that you can write"));
    }
    opened = open_at(AT_FDCWD, path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW);
  }
  if (!opened) {
    const int error = opened.error().value;
    if (error == ELOOP || error == ENOTDIR) return refuse(path, "is not a folder (a link is not followed)");
    return refuse(path, fmt::format("can't be opened: {}", errno_text(error)));
  }
  if (!is_private_folder(opened->get())) {
    return refuse(path, "belongs to another user or can be written by others; remove it, or chown and chmod it");
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

void remove_tree(int parent_fd, const char* name) {
  if (::unlinkat(parent_fd, name, 0) == 0 || errno == ENOENT) return;
  {
    auto folder = open_at(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!folder) return;
    DIR* const stream = ::fdopendir(folder->get());
    if (stream == nullptr) return;
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
  ::unlinkat(parent_fd, name, AT_REMOVEDIR);
}

}  // namespace belljar
