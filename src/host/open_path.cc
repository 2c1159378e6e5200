#include "host/open_path.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace belljar::host {

SysResult<Fd> open_without_links(const char* path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_NO_SYMLINKS;
  while (true) {
    const long fd = ::syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    if (fd >= 0) return Fd(static_cast<int>(fd));
    if (errno != EINTR && errno != EAGAIN) return std::unexpected(Errno{errno});
  }
}

}  // namespace belljar::host
