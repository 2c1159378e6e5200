// rename(2), renameat2(2).
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/fs/watches.h"
#include "kernel/syscalls/path_argument.h"

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kNoReplace = 1;  // RENAME_NOREPLACE
constexpr std::uint32_t kExchange = 2;   // RENAME_EXCHANGE

const Credentials& caller() {
  return current().credentials;
}

// Both sides, once they were found.
struct Renaming {
  LastName from, to;
  std::uint32_t flags = 0;

  bool exchanges() const { return (flags & kExchange) != 0; }
  Inode& moved() const { return *from.dentry->inode; }
  Inode* replaced() const { return to.dentry->inode.get(); }
};

// Names are looked up again after the second walk, since the tree lock may have been let go in it.
SysResult<void> find(Renaming& renaming, const PathArgument& from, const PathArgument& to,
                     const SysResult<void>& to_read) {
  renaming.from = TRY(from.walk_to_last(FollowLast::no, caller()));
  TRY_VOID(to_read);
  renaming.to = TRY(to.walk_to_last(FollowLast::no, caller()));
  if (renaming.from.kind != LastName::Kind::name) return error(EBUSY);
  if (renaming.to.kind != LastName::Kind::name) return error((renaming.flags & kNoReplace) != 0 ? EEXIST : EBUSY);
  if (renaming.from.folder->inode->device != renaming.to.folder->inode->device) return error(EXDEV);
  if (renaming.from.folder->inode->is_read_only()) return error(EROFS);
  renaming.from.dentry = TRY(find_child(*renaming.from.folder, renaming.from.dentry->name()));
  renaming.to.dentry = TRY(find_child(*renaming.to.folder, renaming.to.dentry->name()));
  if (!renaming.from.dentry->inode) return error(ENOENT);
  if (renaming.from.folder->is_unlinked || renaming.to.folder->is_unlinked) return error(ENOENT);
  if (renaming.replaced() != nullptr && (renaming.flags & kNoReplace) != 0) return error(EEXIST);
  if (renaming.replaced() == nullptr && renaming.exchanges()) return error(ENOENT);
  return {};
}

SysResult<void> check_slashes(const Renaming& renaming) {
  const bool is_folder = renaming.moved().is_folder();
  if (renaming.from.has_slash && !is_folder) return error(ENOTDIR);
  if (!renaming.exchanges()) return renaming.to.has_slash && !is_folder ? error(ENOTDIR) : SysResult<void>();
  if (renaming.to.has_slash && !renaming.replaced()->is_folder()) return error(ENOTDIR);
  return {};
}

SysResult<void> check(const Renaming& renaming) {
  TRY_VOID(check_slashes(renaming));
  // A folder can't become its own child, nor be replaced by one.
  if (is_below(*renaming.to.folder, *renaming.from.dentry)) return error(EINVAL);
  if (renaming.replaced() != nullptr && is_below(*renaming.from.folder, *renaming.to.dentry)) {
    return error(renaming.exchanges() ? EINVAL : ENOTEMPTY);
  }
  Inode* const replaced = renaming.replaced();
  if (replaced == &renaming.moved()) return {};  // two names of one file: nothing will be done
  TRY_VOID(check_removable(*renaming.from.folder, renaming.moved(), caller()));
  if (replaced != nullptr) {
    TRY_VOID(check_removable(*renaming.to.folder, *replaced, caller()));
  } else {
    TRY_VOID(check_access(*renaming.to.folder->inode, W_OK | X_OK, caller()));
  }
  if (replaced != nullptr && !renaming.exchanges()) {
    if (renaming.moved().is_folder() && !replaced->is_folder()) return error(ENOTDIR);
    if (!renaming.moved().is_folder() && replaced->is_folder()) return error(EISDIR);
  }
  // A folder that gets another parent changes itself: its "..".
  if (renaming.from.folder.get() != renaming.to.folder.get()) {
    if (renaming.moved().is_folder()) TRY_VOID(check_access(renaming.moved(), W_OK, caller()));
    if (renaming.exchanges() && replaced->is_folder()) TRY_VOID(check_access(*replaced, W_OK, caller()));
  }
  if (renaming.from.dentry->mounted != nullptr || renaming.to.dentry->mounted != nullptr) return error(EBUSY);
  if (replaced != nullptr && !renaming.exchanges() && replaced->is_folder() && !replaced->is_empty_folder()) {
    return error(ENOTEMPTY);
  }
  return {};
}

// Old names are told from copies: the dentries have their new ones.
void tell(const Renaming& renaming, std::string_view old_name, std::string_view new_name, Inode& moved) {
  if (!has_any_watch()) return;
  const std::uint32_t folder = moved.is_folder() ? IN_ISDIR : 0U;
  const std::uint32_t cookie = new_watch_cookie();
  tell_watches(*renaming.from.folder->inode, IN_MOVED_FROM | folder, cookie, old_name);
  tell_watches(*renaming.to.folder->inode, IN_MOVED_TO | folder, cookie, new_name);
  tell_watches(moved, IN_MOVE_SELF);
}

SysResult<void> apply(const Renaming& renaming) {
  char old_name[kNameMax], new_name[kNameMax];
  const std::size_t old_size = renaming.from.dentry->name_size;
  const std::size_t new_size = renaming.to.dentry->name_size;
  __builtin_memcpy(old_name, renaming.from.dentry->name_text, old_size);
  __builtin_memcpy(new_name, renaming.to.dentry->name_text, new_size);
  const std::string_view from{old_name, old_size}, to{new_name, new_size};
  const Ref<Inode> moved = renaming.from.dentry->inode;
  const Ref<Inode> replaced = renaming.to.dentry->inode;
  TRY_VOID(renaming.from.folder->inode->rename(from, *moved, *renaming.to.folder->inode, to, replaced.get(),
                                               renaming.exchanges()));
  if (renaming.exchanges()) {
    TRY_VOID(exchange_dentries(*renaming.from.dentry, *renaming.to.dentry));
    tell(renaming, from, to, *moved);
    const Renaming back{renaming.to, renaming.from, renaming.flags};
    tell(back, to, from, *replaced);
    return {};
  }
  if (replaced) mark_unlinked(*renaming.to.dentry);
  TRY_VOID(move_dentry(*renaming.from.dentry, renaming.to.folder, to));
  tell(renaming, from, to, *moved);
  if (replaced && !replaced->is_folder()) tell_watches(*replaced, IN_ATTRIB);
  return {};
}

SyscallResult rename_at(int from_fd, UserAddress from, int to_fd, UserAddress to, std::uint32_t flags) {
  if ((flags & ~(kNoReplace | kExchange)) != 0 || flags == (kNoReplace | kExchange)) return error(EINVAL);
  PathArgument from_path, to_path;
  TRY_VOID(from_path.read(from_fd, from));
  const SysResult<void> to_read = to_path.read(to_fd, to);  // an error counts after those of the first path
  LockGuard guard(tree_lock());
  Renaming renaming;
  renaming.flags = flags;
  TRY_VOID(find(renaming, from_path, to_path, to_read));
  TRY_VOID(check(renaming));
  if (renaming.replaced() == &renaming.moved()) return 0;
  TRY_VOID(apply(renaming));
  return 0;
}

}  // namespace

SyscallResult sys_rename(const SyscallArguments& arguments) {
  return rename_at(AT_FDCWD, arguments.get<UserAddress>(0), AT_FDCWD, arguments.get<UserAddress>(1), 0);
}

SyscallResult sys_renameat(const SyscallArguments& arguments) {
  return rename_at(arguments.get<int>(0), arguments.get<UserAddress>(1), arguments.get<int>(2),
                   arguments.get<UserAddress>(3), 0);
}

SyscallResult sys_renameat2(const SyscallArguments& arguments) {
  return rename_at(arguments.get<int>(0), arguments.get<UserAddress>(1), arguments.get<int>(2),
                   arguments.get<UserAddress>(3), arguments.get<std::uint32_t>(4));
}

}  // namespace belljar::kernel
