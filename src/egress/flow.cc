#include "egress/flow.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace belljar::egress {
namespace {

constexpr std::uint64_t kShareBytes = std::uint64_t{4} << 20;

bool is_for_later(int error) {
  return error == EAGAIN || error == EINTR;
}

// Takes bytes that were looked at out of the source's queue. They are there, and are not copied.
bool drop(int source_fd, std::span<char> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::recv(source_fd, bytes.data(), bytes.size(), MSG_TRUNC);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

void prepare_for_flow(int socket_fd) {
  const int on = 1;
  ::setsockopt(socket_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket_fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
}

std::uint64_t Flow::pump(int source_fd, int target_fd, FlowBuffer& buffer, std::uint64_t most) {
  std::uint64_t moved = 0;
  if (state_ == State::ended || state_ == State::failed) return moved;
  state_ = State::waits_for_source;
  while (moved < kShareBytes) {
    const std::uint64_t left = std::max<std::uint64_t>(most - moved, 1);  // one byte shows whether there is more
    const std::span<char> room = buffer.bytes().first(std::min<std::uint64_t>(buffer.bytes().size(), left));
    const ssize_t count = ::recv(source_fd, room.data(), room.size(), MSG_PEEK);
    if (count == 0) state_ = State::ended;
    if (count < 0 && !is_for_later(errno)) state_ = State::failed;
    if (count > 0 && moved == most) state_ = State::at_limit;
    if (count <= 0 || moved == most) return moved;
    const std::span<char> seen = room.first(static_cast<std::size_t>(count));
    const ssize_t taken = ::send(target_fd, seen.data(), seen.size(), MSG_NOSIGNAL);
    if (taken < 0) {
      state_ = is_for_later(errno) ? State::waits_for_target : State::failed;
      return moved;
    }
    moved += static_cast<std::uint64_t>(taken);
    if (!drop(source_fd, seen.first(static_cast<std::size_t>(taken)))) {
      state_ = State::failed;
      return moved;
    }
    if (taken < count) {
      state_ = State::waits_for_target;
      return moved;
    }
    if (seen.size() < room.size()) return moved;  // there is no more, or its coming wakes the poller
  }
  return moved;
}

}  // namespace belljar::egress
