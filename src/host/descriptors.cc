#include "host/descriptors.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace belljar::host {

void close_all_but(std::initializer_list<int> keep) {
  std::array<int, 16> sorted{};
  const auto end = std::copy_n(keep.begin(), std::min(keep.size(), sorted.size()), sorted.begin());
  std::sort(sorted.begin(), end);
  unsigned next = 0;
  for (auto fd = sorted.begin(); fd != end; ++fd) {
    if (*fd < 0) continue;
    const auto kept = static_cast<unsigned>(*fd);
    if (kept > next) ::syscall(SYS_close_range, next, kept - 1, 0);
    next = kept + 1;
  }
  ::syscall(SYS_close_range, next, ~0U, 0);
}

long send_with_descriptors(int socket, std::span<const std::byte> message, std::span<const int> fds) {
  constexpr std::size_t kDescriptorsMax = 253;
  if (fds.size() > kDescriptorsMax) return -EINVAL;
  iovec data{const_cast<std::byte*>(message.data()), message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kDescriptorsMax)];
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    std::memset(control, 0, header.msg_controllen);
    cmsghdr* const part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
  }
  const ssize_t sent = ::sendmsg(socket, &header, MSG_NOSIGNAL);
  return sent < 0 ? -errno : sent;
}

}  // namespace belljar::host
