// Readiness over several files: what poll, select and epoll share.
#pragma once

#include <cstdint>

#include "kernel/fs/file.h"
#include "kernel/task/wait_queue.h"

namespace belljar::kernel {

// The end of a timeout: 0 for one of 0, which means not to wait.
Deadline deadline_after(std::uint64_t nanoseconds);

// One file that is looked at, and what for. Without a file: `ready` is the caller's, and counts as it is.
struct PolledFile {
  Ref<File> file;
  Events wanted = 0;  // all that counts, POLLERR and POLLHUP too
  Events ready = 0;
};

// Fills `ready` of each; sleeps until one is ready, the deadline passes (answer 0) or a signal comes
// (kRestartNoHandler). Returns how many are ready.
SysResult<std::uint64_t> poll_files(PolledFile* files, std::size_t count, Deadline deadline);

}  // namespace belljar::kernel
