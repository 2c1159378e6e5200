// Bytes from one socket to another by way of memory that all flows of the process share: what the target does not take
// yet stays with the source in the kernel. So a connection that waits has nothing here, and neither has one whose other
// side is slow. splice(2) would copy nothing, but hands pages on one by one, which is slower than copying at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace belljar::egress {

// The shared memory; it holds something only while a flow moves bytes.
class FlowBuffer {
 public:
  std::span<char> bytes() { return {memory_.get(), kBytes}; }

 private:
  static constexpr std::size_t kBytes = std::size_t{256} << 10;
  std::unique_ptr<char[]> memory_ = std::make_unique_for_overwrite<char[]>(kBytes);
};

// What both sockets of a flow must have, set when they are made: tcp(7). What came in one piece goes on at once, and
// urgent bytes are bytes like others, so that each stands once in the source's queue.
void prepare_for_flow(int socket_fd);

class Flow {
 public:
  enum class State { waits_for_source, waits_for_target, ended, failed, at_limit };

  // Moves what there is, up to a share that leaves other connections their turn, and never more than `most`: at_limit
  // where there is more. Returns the bytes that the target took.
  std::uint64_t pump(int source_fd, int target_fd, FlowBuffer& buffer, std::uint64_t most);

  State state() const { return state_; }
  bool is_ended() const { return state_ == State::ended; }

 private:
  State state_ = State::waits_for_source;
};

}  // namespace belljar::egress
