#include "supervisor/streams.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace belljar {
namespace {

constexpr std::size_t kChunkBytes = 65536;
// What may wait for a slow reader before the program is made to wait too.
constexpr std::size_t kPendingBytesMax = std::size_t{1} << 20;

void make_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

}  // namespace

OutputStream::OutputStream(int source_fd, int sink_fd, RunIo::Form form, bool capture, std::uint64_t limit)
    : source_fd_(source_fd), sink_fd_(sink_fd), form_(form), capture_(capture), limit_(limit), at_end_(source_fd < 0) {
  if (!at_end_) make_nonblocking(source_fd);
}

pollfd OutputStream::source_poll() const {
  const bool wanted = !at_end_ && pending_.size() < kPendingBytesMax;
  return {wanted ? source_fd_ : -1, POLLIN, 0};
}

pollfd OutputStream::sink_poll() const {
  return {pending_.empty() ? -1 : sink_fd_, POLLOUT, 0};
}

void OutputStream::read_available() {
  char buffer[kChunkBytes];
  const ssize_t count = ::read(source_fd_, buffer, sizeof buffer);
  if (count > 0) {
    stream_.bytes_total += static_cast<std::uint64_t>(count);
    keep({buffer, static_cast<std::size_t>(count)});
  } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    end();
  }
}

void OutputStream::keep(std::string_view chunk) {
  if (stream_.truncated) return;
  std::string joined = std::move(unfinished_);
  joined += chunk;
  unfinished_.clear();
  const std::uint64_t room = limit_ - kept_;
  std::string_view fitting = joined;
  if (joined.size() > room) {
    stream_.truncated = true;
    fitting = utf8_prefix(joined, static_cast<std::size_t>(room));
  } else {
    fitting = fitting.substr(0, utf8_cut(joined));
    unfinished_ = joined.substr(fitting.size());
  }
  pass_on(fitting);
}

void OutputStream::pass_on(std::string_view bytes) {
  kept_ += bytes.size();
  if (capture_) stream_.bytes += bytes;
  if (sink_fd_ < 0) return;
  if (form_ == RunIo::Form::terminal_safe) {
    neutraliser_.feed(bytes, pending_);
  } else {
    pending_ += bytes;
  }
}

void OutputStream::end() {
  at_end_ = true;
  if (!stream_.truncated) pass_on(std::exchange(unfinished_, {}));
  if (sink_fd_ >= 0 && form_ == RunIo::Form::terminal_safe) neutraliser_.finish(pending_);
}

void OutputStream::write_pending() {
  // POLLOUT on a pipe promises room for PIPE_BUF bytes (pipe(7)): no more at once, or a blocking descriptor might
  // block.
  const ssize_t count = ::write(sink_fd_, pending_.data(), std::min<std::size_t>(pending_.size(), PIPE_BUF));
  if (count > 0) {
    pending_.erase(0, static_cast<std::size_t>(count));
  } else if (count < 0 && errno != EAGAIN && errno != EINTR) {
    sink_errno_ = errno;
    sink_fd_ = -1;
    pending_.clear();
  }
}

CapturedStream OutputStream::take() {
  return std::move(stream_);
}

InputStream::InputStream(int source_fd, Fd* sink) : source_fd_(source_fd), sink_(sink) {
  if (source_fd_ < 0) {
    close_sink();
  } else {
    make_nonblocking(sink_->get());
  }
}

pollfd InputStream::source_poll() const {
  const bool wanted = sink_->is_open() && pending_.empty();
  return {wanted ? source_fd_ : -1, POLLIN, 0};
}

// Without anything to write it still waits for the program to close its end (POLLERR).
pollfd InputStream::sink_poll() const {
  return {sink_->get(), static_cast<short>(pending_.empty() ? 0 : POLLOUT), 0};
}

void InputStream::read_available() {
  char buffer[kChunkBytes];
  const ssize_t count = ::read(source_fd_, buffer, sizeof buffer);
  if (count > 0) {
    pending_.assign(buffer, static_cast<std::size_t>(count));
  } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    close_sink();
  }
}

void InputStream::write_pending() {
  // Reported without anything to write: the program has closed its end, and would be reported for ever.
  if (pending_.empty()) return close_sink();
  const ssize_t count = ::write(sink_->get(), pending_.data(), pending_.size());
  if (count > 0) {
    pending_.erase(0, static_cast<std::size_t>(count));
  } else if (count < 0 && errno != EAGAIN && errno != EINTR) {
    close_sink();
  }
}

void InputStream::close_sink() {
  source_fd_ = -1;
  pending_.clear();
  sink_->reset();
}

}  // namespace belljar
