#include "host/open_path.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace belljar::host {

namespace {

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
  return open_with(folder_fd, path, flags, mode, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

SysResult<Fd> open_in_root(int root_fd, const char* path, int flags) {
  return open_with(root_fd, path, flags, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

}  // namespace belljar::host
