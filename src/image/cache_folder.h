// The folder that holds Belljar's caches, and the care that a folder of trusted files needs.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace belljar {

// Opens the cache folder (O_PATH), making it and, for an ordinary user, its parents. Refuses a folder that belongs to
// someone else or that others can write, since what lies in it becomes the sandbox's /etc.
// Errors: host_unsupported, with one line that names the folder and the remedy.
Result<Fd> open_cache_folder(const std::string& path);

// The same for any folder of ours. `what` names it in errors ("the cache folder"), `remedy` says what helps when it
// can't be made.
struct PrivateFolder {
  std::string_view what;
  std::string_view remedy;
  unsigned mode;
};
Result<Fd> open_private_folder(const std::string& path, const PrivateFolder& kind);

// True if the folder is ours and nobody else can write it.
bool is_private_folder(int folder_fd);

// Opens `path` below `root_fd` without following any link on the way (openat(2) with O_NOFOLLOW, one component at a
// time). `flags` are for the last component. Errors: as openat(2); ELOOP or ENOTDIR for a link.
SysResult<Fd> open_beneath(int root_fd, const std::string& path, int flags);

// Removes a file, or a folder and all below it, as far as it can; links are removed and not followed. True if nothing
// of that name is left.
bool remove_tree(int parent_fd, const char* name);

}  // namespace belljar
