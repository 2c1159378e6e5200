// Unix sockets of the host that lie in a folder about to be mounted. Whoever sees such a file can connect to the
// service behind it, from any network namespace and also where the mount is read-only; so init covers them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace belljar::container {

// The paths of all sockets below the folder, relative to it. They are looked for on disk, because a socket's name in
// /proc/net/unix is only what its service once called it: relative, or before a folder was renamed. Links are not
// followed. Fails (bad_mount) where there are too many files to look at, or too many sockets to cover.
Result<std::vector<std::string>> sockets_below(int folder_fd);

}  // namespace belljar::container
