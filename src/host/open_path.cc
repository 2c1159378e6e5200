#include "host/open_path.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

namespace belljar::host {
namespace {

constexpr std::uint64_t kBeneath = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

SysResult<Fd> open_with(int folder_fd, const char* path, int flags, unsigned mode, std::uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.mode = mode;
  how.resolve = resolve;
  while (true) {
    const long fd = ::syscall(SYS_openat2, folder_fd, path, &how, sizeof how);
    if (fd >= 0) return Fd(static_cast<int>(fd));
    if (errno != EINTR && errno != EAGAIN) return std::unexpected(Errno{errno});
  }
}

}  // namespace

SysResult<Fd> open_without_links(const char* path, int flags) {
  return open_with(AT_FDCWD, path, flags, 0, RESOLVE_NO_SYMLINKS);
}

SysResult<Fd> open_beneath(int folder_fd, const char* path, int flags, unsigned mode) {
  return open_with(folder_fd, path, flags, mode, kBeneath);
}

SysResult<Fd> open_in_root(int root_fd, const char* path, int flags) {
  return open_with(root_fd, path, flags, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

SysResult<Fd> open_on_same_mount(int folder_fd, const char* path, int flags) {
  return open_with(folder_fd, path, flags, 0, kBeneath | RESOLVE_NO_XDEV);
}

SysResult<std::string> path_of(int fd) {
  std::array<char, PATH_MAX> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  if (length < 0) return std::unexpected(Errno{errno});
  const auto size = static_cast<std::size_t>(length);
  if (size == path.size() || path[0] != '/') return std::unexpected(Errno{ENOENT});
  return std::string(path.data(), size);
}

}  // namespace belljar::host
