// Unix sockets of the host that lie in a folder about to be mounted. Whoever sees such a file can connect to the
// service behind it, from any network namespace and also where the mount is read-only; so init covers them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace belljar::container {

// The paths in `table` (the form of /proc/net/unix, proc(5)) that lie below `folder`, relative to it. Paths that hold
// "..", and names that don't belong to a file, are left out.
std::vector<std::string> socket_paths_below(std::string_view table, std::string_view folder);

// The table of this process's network namespace; empty where it can't be read.
std::string read_socket_table();

}  // namespace belljar::container
