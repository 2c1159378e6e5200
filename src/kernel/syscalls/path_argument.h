// Paths that calls are given, and what they find.
#pragma once

#include <fcntl.h>

#include "kernel/fs/tree.h"
#include "kernel/syscalls/syscalls.h"

namespace belljar::kernel {

// A path and the descriptor that it begins at (open(2), the *at family). Large: one or two on a stack.
class PathArgument {
 public:
  PathArgument() {}
  // ENOENT for an empty path, unless `may_be_empty` (AT_EMPTY_PATH); EBADF, ENOTDIR. The descriptor does not matter for
  // an absolute path, unless the walk is scoped (openat2(2)).
  SysResult<void> read(int folder_fd, UserAddress path, bool may_be_empty = false, bool is_scoped = false);

  std::string_view text() const { return {text_, size_}; }
  bool is_empty() const { return size_ == 0; }
  // Null for the working folder.
  const Ref<Dentry>& start() const { return start_; }
  const Places& places() const { return places_; }

  // The tree lock is held. Of an empty path: what the descriptor is (EBADF, or ENOENT where it has no name).
  SysResult<Ref<Dentry>> walk(const Walk& how, const Credentials& who) const;
  SysResult<LastName> walk_to_last(FollowLast follow, const Credentials& who) const;

 private:
  Places places_;
  Ref<Dentry> start_;
  std::size_t size_;
  int folder_fd_;
  char text_[kPathMax];
};

Places current_places();
std::uint32_t current_umask();

// The dentry of a path, followed at the end unless `flags` has AT_SYMLINK_NOFOLLOW; AT_EMPTY_PATH is known. Takes the
// tree lock.
SysResult<Ref<Dentry>> find_path(int folder_fd, UserAddress path, int flags);

}  // namespace belljar::kernel
