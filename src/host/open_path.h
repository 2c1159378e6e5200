// Opening paths whose components others may have made: openat2(2).
#pragma once

#include <string>

#include "base/fd.h"

namespace belljar::host {

// open(2) with O_CLOEXEC; ELOOP where any component is a symbolic link. Async-signal-safe.
SysResult<Fd> open_without_links(const char* path, int flags);

// Opens `path` below `folder_fd`, with O_CLOEXEC. ELOOP where any component is a symbolic link, EXDEV where the path
// leads out of the folder. With O_CREAT in `flags` the new file has `mode`. Async-signal-safe.
SysResult<Fd> open_beneath(int folder_fd, const char* path, int flags, unsigned mode = 0);

// Opens `path` as if `root_fd` were "/": links are followed and stay inside. Async-signal-safe.
SysResult<Fd> open_in_root(int root_fd, const char* path, int flags);

// The same, and EXDEV where the path leads to another mount.
SysResult<Fd> open_on_same_mount(int folder_fd, const char* path, int flags);

// Where an open file is, as the kernel names it (/proc/self/fd, proc(5)).
SysResult<std::string> path_of(int fd);

}  // namespace belljar::host
