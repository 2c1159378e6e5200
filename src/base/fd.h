// Fd: the owner of one file descriptor.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace belljar {

// Closes its descriptor when destroyed. Move-only. A default-made Fd owns nothing (get() is -1).
class [[nodiscard]] Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
};

// openat(2) with O_CLOEXEC added; retried on EINTR.
SysResult<Fd> open_at(int folder_fd, const char* path, int flags, unsigned mode = 0);

// pipe2(2) with O_CLOEXEC.
SysResult<Pipe> make_pipe();

// Reads to the end of file, at most `bytes_max` bytes; EFBIG if there is more.
SysResult<std::string> read_all(int fd, std::size_t bytes_max);

// open_at + read_all.
SysResult<std::string> read_file_at(int folder_fd, const char* path, std::size_t bytes_max);

// Writes all of `bytes`; retried on EINTR and short writes.
SysResult<void> write_all(int fd, std::string_view bytes);

// Opens an existing file (no O_CREAT) and writes `bytes` in one write(2), as kernel control files want it.
SysResult<void> write_control_file(int folder_fd, const char* path, std::string_view bytes);

}  // namespace belljar
