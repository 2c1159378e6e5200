#include "tiers/container/sockets.h"

#include <fcntl.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <map>

#include "base/fd.h"

namespace belljar::container {
namespace {

constexpr std::size_t kTableBytesMax = 64 << 20;
constexpr int kFieldsBeforePath = 7;

// The last field of a line, which may hold spaces; empty where the socket has no name.
std::string_view path_of(std::string_view line) {
  for (int field = 0; field < kFieldsBeforePath; ++field) {
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return {};
    line.remove_prefix(std::min(line.find_first_not_of(' ', space), line.size()));
  }
  return line;
}

// Names folders without links: a service may have bound its socket by a path that holds some. Many sockets share a
// folder.
class FolderNames {
 public:
  std::string without_links(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    const std::string folder(path.substr(0, std::max<std::size_t>(slash, 1)));
    auto known = names_.find(folder);
    if (known == names_.end()) {
      char resolved[PATH_MAX];
      const bool exists = ::realpath(folder.c_str(), resolved) != nullptr;
      known = names_.emplace(folder, exists ? resolved : folder).first;
    }
    return (known->second == "/" ? "" : known->second) + std::string(path.substr(slash));
  }

 private:
  std::map<std::string, std::string> names_;
};

}  // namespace

std::vector<std::string> socket_paths_below(std::string_view table, std::string_view folder) {
  std::vector<std::string> paths;
  FolderNames folders;
  while (!table.empty()) {
    const std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(line.size() + 1, table.size()));
    const std::string_view written = path_of(line);
    if (!written.starts_with('/')) continue;
    const std::string path = folders.without_links(written);
    if (path.size() <= folder.size() + 1 || !path.starts_with(folder) || path[folder.size()] != '/') continue;
    std::string rest = path.substr(folder.size() + 1);
    if (("/" + rest + "/").find("/../") != std::string::npos) continue;
    if (std::ranges::find(paths, rest) == paths.end()) paths.push_back(std::move(rest));
  }
  return paths;
}

std::string read_socket_table() {
  return read_file_at(AT_FDCWD, "/proc/self/net/unix", kTableBytesMax).value_or("");
}

}  // namespace belljar::container
