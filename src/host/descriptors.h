// Descriptors in bulk: closing them, and handing them to another process. Async-signal-safe.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>

namespace belljar::host {

// Closes every descriptor of this process but those of `keep` (at most 16; negative ones are passed over).
// close_range(2).
void close_all_but(std::initializer_list<int> keep);

// Sends `message` and copies of `fds` (at most 253, SCM_MAX_FD) as one packet on a Unix socket; unix(7), SCM_RIGHTS.
// Returns the bytes sent, or -errno.
long send_with_descriptors(int socket, std::span<const std::byte> message, std::span<const int> fds);

}  // namespace belljar::host
