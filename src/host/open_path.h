// Opening paths whose components others may have made: openat2(2).
#pragma once

#include "base/fd.h"

namespace belljar::host {

// open(2) with O_CLOEXEC; ELOOP where any component is a symbolic link. Async-signal-safe.
SysResult<Fd> open_without_links(const char* path, int flags);

}  // namespace belljar::host
