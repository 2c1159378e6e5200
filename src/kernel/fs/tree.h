// The tree of names: walks paths, keeps dentries, mounts file systems.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernel/fs/inode.h"

namespace belljar::kernel {

// Where a task stands in the tree.
struct Places {
  Ref<Dentry> root;
  Ref<Dentry> working_folder;
};

enum class FollowLast : bool { no, yes };

struct Walk {
  FollowLast follow_last = FollowLast::yes;
  // openat2(2): RESOLVE_BENEATH, RESOLVE_IN_ROOT, RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS, RESOLVE_NO_XDEV.
  std::uint64_t resolve = 0;
};

// The tree lock: hold it over anything that looks at or changes names. Not recursive.
Lock& tree_lock();

// The dentry of a path that exists, from `start` (ignored for absolute paths). Checks search permission. Tree lock
// held.
SysResult<Ref<Dentry>> walk(const Places& places, const Ref<Dentry>& start, std::string_view path,
                            const Credentials& who, const Walk& how);

// The folder that the last name of `path` is in, and that name's dentry, which may have no inode. The name is never
// ".",
// ".." or empty (EEXIST, EBUSY, EINVAL or ENOTEMPTY, as the call has it, are the caller's: `kind` tells). Tree lock
// held.
struct LastName {
  enum class Kind : std::uint8_t { name, dot, dot_dot, root };
  Ref<Dentry> folder;
  Ref<Dentry> dentry;  // of kind `name`
  Kind kind = Kind::name;
  bool has_slash = false;  // the path ends in one: it must be a folder
};
SysResult<LastName> walk_to_last(const Places& places, const Ref<Dentry>& start, std::string_view path,
                                 const Credentials& who, const Walk& how);

// The child `name` of a folder, from the cache or its inode; without an inode where there is no such name.
// Tree lock held; it is let go for a moment where the folder's names come and go.
SysResult<Ref<Dentry>> find_child(Dentry& folder, std::string_view name);

// A dentry for a name that a file system just made or lost.
void set_inode(Dentry& dentry, Ref<Inode> inode);
void mark_unlinked(Dentry& dentry);
SysResult<void> move_dentry(Dentry& dentry, const Ref<Dentry>& new_parent, std::string_view new_name);
SysResult<void> exchange_dentries(Dentry& one, Dentry& other);
// Whether it is `folder`, or lies below it in the same file system.
bool is_below(const Dentry& dentry, const Dentry& folder);

// The roots of all that is mounted, the tree's own first. Set at boot.
std::span<Dentry* const> mounted_roots();

// Mounts `root` over the folder `place`. For the boot only: nothing is ever unmounted.
SysResult<void> mount_over(const Ref<Dentry>& place, const Ref<Dentry>& root);
Ref<Dentry> make_root_dentry(Ref<Inode> inode);

// The absolute path as seen from `root` ("(unreachable)..." where it is not below it); with " (deleted)" where the name
// is gone. ERANGE where `size` is too small. Returns the length. Tree lock held.
SysResult<std::size_t> path_of(Dentry& dentry, const Dentry& root, char* to, std::size_t size);

// EACCES where `who` may not do all of `wanted` (R_OK, W_OK, X_OK; access(2)); EROFS. No task has a capability, so that
// uid 0 is a user like others.
SysResult<void> check_access(const Inode& inode, std::uint32_t wanted, const Credentials& who);
bool owns(const Inode& inode, const Credentials& who);
bool is_in_group(std::uint32_t gid, const Credentials& who);
// Whether `who` may take the name of `inode` out of the folder: EACCES, or EPERM in one with the sticky bit.
SysResult<void> check_removable(const Dentry& folder, const Inode& inode, const Credentials& who);

}  // namespace belljar::kernel
