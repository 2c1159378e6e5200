#include "host/netlink.h"

#include <arpa/inet.h>
#include <endian.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace belljar::host {

std::byte* NetlinkMessages::take(std::size_t size) {
  const std::size_t aligned = NLMSG_ALIGN(size);
  if (aligned > memory_.size() - used_) {
    is_whole_ = false;
    return nullptr;
  }
  std::byte* const place = memory_.data() + used_;
  std::memset(place, 0, aligned);
  used_ += aligned;
  return place;
}

void NetlinkMessages::grow_message() {
  nlmsghdr header;
  std::memcpy(&header, memory_.data() + message_, sizeof header);
  header.nlmsg_len = static_cast<std::uint32_t>(used_ - message_);
  std::memcpy(memory_.data() + message_, &header, sizeof header);
}

void NetlinkMessages::begin(std::uint16_t type, std::uint16_t flags, const void* header, std::size_t header_size) {
  message_ = used_;
  std::byte* const place = take(NLMSG_HDRLEN + header_size);
  if (place == nullptr) return;
  nlmsghdr message{};
  message.nlmsg_type = type;
  message.nlmsg_flags = static_cast<std::uint16_t>(flags | NLM_F_REQUEST);
  message.nlmsg_seq = ++sequence_;
  std::memcpy(place, &message, sizeof message);
  std::memcpy(place + NLMSG_HDRLEN, header, header_size);
  grow_message();
}

void NetlinkMessages::attribute(std::uint16_t type, const void* value, std::size_t size) {
  std::byte* const place = take(NLA_HDRLEN + size);
  if (place == nullptr) return;
  const nlattr header{static_cast<std::uint16_t>(NLA_HDRLEN + size), type};
  std::memcpy(place, &header, sizeof header);
  std::memcpy(place + NLA_HDRLEN, value, size);
  grow_message();
}

void NetlinkMessages::text(std::uint16_t type, std::string_view value) {
  std::byte* const place = take(NLA_HDRLEN + value.size() + 1);
  if (place == nullptr) return;
  const nlattr header{static_cast<std::uint16_t>(NLA_HDRLEN + value.size() + 1), type};
  std::memcpy(place, &header, sizeof header);
  std::memcpy(place + NLA_HDRLEN, value.data(), value.size());
  grow_message();
}

void NetlinkMessages::be16(std::uint16_t type, std::uint16_t value) {
  const std::uint16_t wire = htons(value);
  attribute(type, &wire, sizeof wire);
}

void NetlinkMessages::be32(std::uint16_t type, std::uint32_t value) {
  const std::uint32_t wire = htonl(value);
  attribute(type, &wire, sizeof wire);
}

void NetlinkMessages::be64(std::uint16_t type, std::uint64_t value) {
  const std::uint64_t wire = htobe64(value);
  attribute(type, &wire, sizeof wire);
}

std::size_t NetlinkMessages::open(std::uint16_t type) {
  const std::size_t opened = used_;
  attribute(static_cast<std::uint16_t>(type | NLA_F_NESTED), "", 0);
  return opened;
}

void NetlinkMessages::close(std::size_t opened) {
  if (!is_whole_) return;
  nlattr header;
  std::memcpy(&header, memory_.data() + opened, sizeof header);
  header.nla_len = static_cast<std::uint16_t>(used_ - opened);
  std::memcpy(memory_.data() + opened, &header, sizeof header);
}

int NetlinkMessages::send(int socket_fd) {
  if (!is_whole_) return -ENOBUFS;
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  ssize_t sent;
  do {
    sent = ::sendto(socket_fd, memory_.data(), used_, 0, reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return -errno;
  // The kernel works on the messages before sendto(2) returns, so the answers are there.
  bool is_answered = false;
  while (true) {
    alignas(nlmsghdr) char answers[8192];
    const ssize_t count = ::recv(socket_fd, answers, sizeof answers, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno != EAGAIN ? -errno : is_answered ? 0 : -EPROTO;
    auto left = static_cast<unsigned>(count);
    for (const nlmsghdr* answer = reinterpret_cast<const nlmsghdr*>(answers); NLMSG_OK(answer, left);
         answer = NLMSG_NEXT(answer, left)) {
      if (answer->nlmsg_type != NLMSG_ERROR) continue;
      const int error = static_cast<const nlmsgerr*>(NLMSG_DATA(answer))->error;
      if (error != 0) return error;
      is_answered = true;
    }
  }
}

}  // namespace belljar::host
