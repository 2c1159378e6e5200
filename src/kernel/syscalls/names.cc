// What changes names: mkdir(2), mknod(2), link(2), symlink(2), unlink(2), rmdir(2), readlink(2).
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/fs/open.h"
#include "kernel/fs/watches.h"
#include "kernel/syscalls/path_argument.h"

namespace belljar::kernel {
namespace {

const Credentials& caller() {
  return current().credentials;
}

// The place of a name that is to be made; the tree lock is held.
SysResult<LastName> place_for_new(const PathArgument& path, bool may_have_slash) {
  LastName last = TRY(path.walk_to_last(FollowLast::no, caller()));
  if (last.kind != LastName::Kind::name || last.dentry->inode) return error(EEXIST);
  if (last.folder->is_unlinked || (last.has_slash && !may_have_slash)) return error(ENOENT);
  return last;
}

SyscallResult make_at(int fd, UserAddress path, std::uint32_t mode, std::uint64_t rdev) {
  PathArgument argument;
  TRY_VOID(argument.read(fd, path));
  const std::uint32_t kept = S_ISDIR(mode) ? S_ISVTX | 0777 : 07777;
  const std::uint32_t masked = (mode & S_IFMT) | (mode & kept & ~current_umask());
  LockGuard guard(tree_lock());
  const LastName place = TRY(place_for_new(argument, S_ISDIR(mode)));
  TRY(make_file_at(place, masked, rdev, caller()));
  return 0;
}

SyscallResult make_node(int fd, UserAddress path, std::uint32_t mode) {
  switch (mode & S_IFMT) {
    case 0:
      return make_at(fd, path, mode | S_IFREG, 0);
    case S_IFREG:
    case S_IFIFO:
    case S_IFSOCK:
      return make_at(fd, path, mode, 0);
    case S_IFCHR:
    case S_IFBLK:
      return error(EPERM);
    case S_IFDIR:
      return error(EPERM);
    default:
      return error(EINVAL);
  }
}

// fs.protected_hardlinks of proc(5): no links to others' files that one could not write to.
SysResult<void> check_link_source(const Inode& inode) {
  if (inode.is_folder()) return error(EPERM);
  if (owns(inode, caller())) return {};
  if (!inode.is_regular() || !check_access(inode, R_OK | W_OK, caller())) return error(EPERM);
  return {};
}

SyscallResult link_at(int from_fd, UserAddress from, int to_fd, UserAddress to, int flags) {
  if ((flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)) != 0) return error(EINVAL);
  const int find_flags =
      (flags & AT_EMPTY_PATH) | ((flags & AT_SYMLINK_FOLLOW) != 0 ? 0 : static_cast<int>(AT_SYMLINK_NOFOLLOW));
  const Ref<Dentry> source = TRY(find_path(from_fd, from, find_flags));
  PathArgument argument;
  TRY_VOID(argument.read(to_fd, to));
  LockGuard guard(tree_lock());
  const LastName place = TRY(place_for_new(argument, false));
  Inode& inode = *source->inode;
  Inode& folder = *place.folder->inode;
  if (folder.device != inode.device) return error(EXDEV);
  TRY_VOID(check_access(folder, W_OK | X_OK, caller()));
  TRY_VOID(check_link_source(inode));
  TRY_VOID(folder.link(place.dentry->name(), inode));
  set_inode(*place.dentry, source->inode);
  tell_watches(inode, IN_ATTRIB);
  tell_watches(folder, IN_CREATE, 0, place.dentry->name());
  return 0;
}

SyscallResult symlink_at(UserAddress target, int fd, UserAddress path) {
  char* const text = static_cast<char*>(heap_allocate(kPathMax));
  if (text == nullptr) return error(ENOMEM);
  struct Free {
    char* text;
    ~Free() { heap_free(text, kPathMax); }
  } free{text};
  const std::size_t size = TRY(copy_in_string(text, target, kPathMax));
  if (size == 0) return error(ENOENT);
  PathArgument argument;
  TRY_VOID(argument.read(fd, path));
  LockGuard guard(tree_lock());
  const LastName place = TRY(place_for_new(argument, false));
  Inode& folder = *place.folder->inode;
  TRY_VOID(check_access(folder, W_OK | X_OK, caller()));
  set_inode(*place.dentry, TRY(folder.make_symlink(place.dentry->name(), {text, size}, caller())));
  tell_watches(folder, IN_CREATE, 0, place.dentry->name());
  return 0;
}

SysResult<void> check_no_mount(const Dentry& dentry) {
  return dentry.mounted != nullptr ? SysResult<void>(error(EBUSY)) : SysResult<void>();
}

SyscallResult unlink_at(int fd, UserAddress path) {
  PathArgument argument;
  TRY_VOID(argument.read(fd, path));
  Ref<Inode> gone;  // let go last, without the lock: it may be long
  LockGuard guard(tree_lock());
  const LastName last = TRY(argument.walk_to_last(FollowLast::no, caller()));
  if (last.kind != LastName::Kind::name) return error(EISDIR);
  Inode& folder = *last.folder->inode;
  if (folder.is_read_only()) return error(EROFS);
  if (!last.dentry->inode) return error(ENOENT);
  Inode& inode = *last.dentry->inode;
  if (last.has_slash) return error(inode.is_folder() ? EISDIR : ENOTDIR);
  TRY_VOID(check_removable(*last.folder, inode, caller()));
  if (inode.is_folder()) return error(EISDIR);
  TRY_VOID(check_no_mount(*last.dentry));
  gone = last.dentry->inode;
  TRY_VOID(folder.unlink(last.dentry->name(), inode));
  mark_unlinked(*last.dentry);
  tell_watches(inode, IN_ATTRIB);
  tell_watches(folder, IN_DELETE, 0, last.dentry->name());
  return 0;
}

SyscallResult rmdir_at(int fd, UserAddress path) {
  PathArgument argument;
  TRY_VOID(argument.read(fd, path));
  LockGuard guard(tree_lock());
  const LastName last = TRY(argument.walk_to_last(FollowLast::no, caller()));
  switch (last.kind) {
    case LastName::Kind::dot:
      return error(EINVAL);
    case LastName::Kind::dot_dot:
      return error(ENOTEMPTY);
    case LastName::Kind::root:
      return error(EBUSY);
    case LastName::Kind::name:
      break;
  }
  Inode& folder = *last.folder->inode;
  if (folder.is_read_only()) return error(EROFS);
  if (!last.dentry->inode) return error(ENOENT);
  const Ref<Inode> inode = last.dentry->inode;
  TRY_VOID(check_removable(*last.folder, *inode, caller()));
  if (!inode->is_folder()) return error(ENOTDIR);
  TRY_VOID(check_no_mount(*last.dentry));
  if (!inode->is_empty_folder()) return error(ENOTEMPTY);
  TRY_VOID(folder.remove_folder(last.dentry->name(), *inode));
  mark_unlinked(*last.dentry);
  tell_watches(folder, IN_DELETE | IN_ISDIR, 0, last.dentry->name());
  return 0;
}

SyscallResult readlink_at(int fd, UserAddress path, UserAddress to, int size) {
  if (size <= 0) return error(EINVAL);
  PathArgument argument;
  TRY_VOID(argument.read(fd, path, true));
  Ref<Dentry> dentry;
  {
    LockGuard guard(tree_lock());
    dentry = TRY(argument.walk(Walk{FollowLast::no, 0}, caller()));
  }
  Inode& inode = *dentry->inode;
  if (!inode.is_link()) return error(argument.is_empty() ? ENOENT : EINVAL);
  const auto asked = static_cast<std::size_t>(size);
  const std::string_view target = TRY(inode.target());
  if (!target.empty()) {
    const std::size_t count = target.size() < asked ? target.size() : asked;
    TRY_VOID(copy_out(to, target.data(), count));
    return count;
  }
  char text[kPathMax];
  const std::size_t count = TRY(inode.read_link(text, asked < sizeof text ? asked : sizeof text));
  TRY_VOID(copy_out(to, text, count));
  return count;
}

}  // namespace

SyscallResult sys_mkdir(const SyscallArguments& arguments) {
  return make_at(AT_FDCWD, arguments.get<UserAddress>(0), (arguments.get<std::uint32_t>(1) & 07777) | S_IFDIR, 0);
}
SyscallResult sys_mkdirat(const SyscallArguments& arguments) {
  return make_at(arguments.get<int>(0), arguments.get<UserAddress>(1),
                 (arguments.get<std::uint32_t>(2) & 07777) | S_IFDIR, 0);
}
SyscallResult sys_mknod(const SyscallArguments& arguments) {
  return make_node(AT_FDCWD, arguments.get<UserAddress>(0), arguments.get<std::uint32_t>(1));
}
SyscallResult sys_mknodat(const SyscallArguments& arguments) {
  return make_node(arguments.get<int>(0), arguments.get<UserAddress>(1), arguments.get<std::uint32_t>(2));
}
SyscallResult sys_link(const SyscallArguments& arguments) {
  return link_at(AT_FDCWD, arguments.get<UserAddress>(0), AT_FDCWD, arguments.get<UserAddress>(1), 0);
}
SyscallResult sys_linkat(const SyscallArguments& arguments) {
  return link_at(arguments.get<int>(0), arguments.get<UserAddress>(1), arguments.get<int>(2),
                 arguments.get<UserAddress>(3), arguments.get<int>(4));
}
SyscallResult sys_symlink(const SyscallArguments& arguments) {
  return symlink_at(arguments.get<UserAddress>(0), AT_FDCWD, arguments.get<UserAddress>(1));
}
SyscallResult sys_symlinkat(const SyscallArguments& arguments) {
  return symlink_at(arguments.get<UserAddress>(0), arguments.get<int>(1), arguments.get<UserAddress>(2));
}
SyscallResult sys_unlink(const SyscallArguments& arguments) {
  return unlink_at(AT_FDCWD, arguments.get<UserAddress>(0));
}
SyscallResult sys_unlinkat(const SyscallArguments& arguments) {
  const int flags = arguments.get<int>(2);
  if ((flags & ~AT_REMOVEDIR) != 0) return error(EINVAL);
  const auto path = arguments.get<UserAddress>(1);
  return flags != 0 ? rmdir_at(arguments.get<int>(0), path) : unlink_at(arguments.get<int>(0), path);
}
SyscallResult sys_rmdir(const SyscallArguments& arguments) {
  return rmdir_at(AT_FDCWD, arguments.get<UserAddress>(0));
}
SyscallResult sys_readlink(const SyscallArguments& arguments) {
  return readlink_at(AT_FDCWD, arguments.get<UserAddress>(0), arguments.get<UserAddress>(1), arguments.get<int>(2));
}
SyscallResult sys_readlinkat(const SyscallArguments& arguments) {
  return readlink_at(arguments.get<int>(0), arguments.get<UserAddress>(1), arguments.get<UserAddress>(2),
                     arguments.get<int>(3));
}

}  // namespace belljar::kernel
