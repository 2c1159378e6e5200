// Netlink messages, written into memory that the caller has: netlink(7). Async-signal-safe, allocates nothing.
#pragma once

#include <linux/netlink.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace belljar::host {

// Builds one or more messages, one after the other. What does not fit is left out, and is_whole() says so.
class NetlinkMessages {
 public:
  explicit NetlinkMessages(std::span<std::byte> memory) : memory_(memory) {}

  // Begins a message with the fixed part `header` of its family behind the nlmsghdr.
  void begin(std::uint16_t type, std::uint16_t flags, const void* header, std::size_t header_size);

  void attribute(std::uint16_t type, const void* value, std::size_t size);
  void text(std::uint16_t type, std::string_view value);  // with a NUL byte at its end
  void be16(std::uint16_t type, std::uint16_t value);     // in network order
  void be32(std::uint16_t type, std::uint32_t value);
  void be64(std::uint16_t type, std::uint64_t value);

  // Attributes until close() lie inside this one.
  std::size_t open(std::uint16_t type);
  void close(std::size_t opened);

  // Sends all and reads the answers: 0, or the first -errno that the kernel answered with. At least one message must
  // have asked for an answer (NLM_F_ACK).
  int send(int socket_fd);

  bool is_whole() const { return is_whole_; }

 private:
  std::byte* take(std::size_t size);
  void grow_message();

  std::span<std::byte> memory_;
  std::size_t used_ = 0;
  std::size_t message_ = 0;
  std::uint32_t sequence_ = 0;
  bool is_whole_ = true;
};

}  // namespace belljar::host
