// Finds every link in a part of the host's file tree.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace belljar {

// The paths of all links at and below `folders` (themselves not links), relative to `root_fd` as the folders are.
// Folders that can't be read are passed over. `on_folder` is called now and then, from the calling thread. Reads
// with several threads, because the first scan after a boot waits for the disk.
std::vector<std::string> find_links(int root_fd, std::vector<std::string> folders,
                                    const std::function<void()>& on_folder);

}  // namespace belljar
