#include "files/nameless_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

namespace belljar {

SysResult<Fd> make_nameless_file(int folder_fd, unsigned mode) {
  auto file = open_at(folder_fd, ".", O_TMPFILE | O_WRONLY, mode);
  if (!file && file.error().value == EISDIR) return std::unexpected(Errno{EOPNOTSUPP});
  return file;
}

SysResult<void> link_nameless_file(int file_fd, int folder_fd, const std::string& name) {
  const std::string path = fmt::format("/proc/self/fd/{}", file_fd);
  if (::linkat(AT_FDCWD, path.c_str(), folder_fd, name.c_str(), AT_SYMLINK_FOLLOW) == 0) return {};
  return std::unexpected(Errno{errno});
}

}  // namespace belljar
