#include "base/fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace belljar {

void Fd::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

SysResult<Fd> open_at(int folder_fd, const char* path, int flags, unsigned mode) {
  int fd;
  do {
    fd = ::openat(folder_fd, path, flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return std::unexpected(Errno{errno});
  return Fd(fd);
}

SysResult<Pipe> make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return std::unexpected(Errno{errno});
  return Pipe{Fd(fds[0]), Fd(fds[1])};
}

SysResult<std::string> read_all(int fd, std::size_t bytes_max) {
  std::string content;
  char buffer[16384];
  while (true) {
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count < 0) {
      if (errno == EINTR) continue;
      return std::unexpected(Errno{errno});
    }
    if (count == 0) return content;
    if (content.size() + static_cast<std::size_t>(count) > bytes_max) return std::unexpected(Errno{EFBIG});
    content.append(buffer, static_cast<std::size_t>(count));
  }
}

SysResult<std::string> read_file_at(int folder_fd, const char* path, std::size_t bytes_max) {
  const Fd file = TRY(open_at(folder_fd, path, O_RDONLY));
  return read_all(file.get(), bytes_max);
}

SysResult<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return std::unexpected(Errno{errno});
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

SysResult<void> write_control_file(int folder_fd, const char* path, std::string_view bytes) {
  const Fd file = TRY(open_at(folder_fd, path, O_WRONLY));
  if (::write(file.get(), bytes.data(), bytes.size()) < 0) return std::unexpected(Errno{errno});
  return {};
}

}  // namespace belljar
