// What sockets of unix(7) share in the sandbox; made when the first of them is.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernel/arena/lock.h"
#include "kernel/ipc/unix_message.h"

namespace belljar::kernel {

class UnixSocketState {
 public:
  // Abstract names; one lock for all.
  static constexpr std::uint32_t kBuckets = 256;
  Lock names_lock{LockRank::pair};
  UnixSocket* names[kBuckets] = {};
  std::uint32_t last_automatic = 0;

  // Files under way; rights lock.
  Lock rights_lock{LockRank::rights};
  PassedFiles* first_under_way = nullptr;
  std::atomic<std::uint32_t> files_under_way = 0;
  MessageList thrown_away;
  bool is_clearing = false;  // a thread frees what is thrown away
};

UnixSocketState& unix_socket_state();

}  // namespace belljar::kernel
