// stat(2), statx(2), access(2), statfs(2).
#include <sys/stat.h>

#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "kernel/arena/layout.h"
#include "kernel/syscalls/path_argument.h"

namespace belljar::kernel {
namespace {

constexpr int kStatFlags = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT;

struct Found {
  struct stat status;
  Ref<Inode> inode;  // null: a file without one
};

SysResult<void> stat_file(int fd, Found& found) {
  const Ref<File> file = TRY(current().files->get_any(fd));
  found.inode = Ref<Inode>::of(file->inode());
  return file->stat(&found.status);
}

SysResult<void> stat_at(int fd, UserAddress path, int flags, Found& found) {
  PathArgument argument;
  TRY_VOID(argument.read(fd, path, (flags & AT_EMPTY_PATH) != 0));
  if (argument.is_empty() && fd != AT_FDCWD) return stat_file(fd, found);
  {
    const Walk how{(flags & AT_SYMLINK_NOFOLLOW) != 0 ? FollowLast::no : FollowLast::yes, 0};
    LockGuard guard(tree_lock());
    const Ref<Dentry> dentry = TRY(argument.walk(how, current().credentials));
    found.inode = dentry->inode;
  }
  return found.inode->fill_stat(&found.status);
}

SyscallResult give_stat(int fd, UserAddress path, int flags, UserAddress to) {
  Found found;
  TRY_VOID(stat_at(fd, path, flags, found));
  TRY_VOID(copy_out(to, found.status));
  return 0;
}

statx_timestamp time_of(const timespec& time) {
  statx_timestamp result{};
  result.tv_sec = time.tv_sec;
  result.tv_nsec = static_cast<std::uint32_t>(time.tv_nsec);
  return result;
}

struct statx to_statx(const Found& found) {
  const struct stat& status = found.status;
  struct statx result{};
  result.stx_mask = STATX_BASIC_STATS;
  result.stx_blksize = static_cast<std::uint32_t>(status.st_blksize);
  result.stx_nlink = static_cast<std::uint32_t>(status.st_nlink);
  result.stx_uid = status.st_uid;
  result.stx_gid = status.st_gid;
  result.stx_mode = static_cast<std::uint16_t>(status.st_mode);
  result.stx_ino = status.st_ino;
  result.stx_size = static_cast<std::uint64_t>(status.st_size);
  result.stx_blocks = static_cast<std::uint64_t>(status.st_blocks);
  result.stx_atime = time_of(status.st_atim);
  result.stx_mtime = time_of(status.st_mtim);
  result.stx_ctime = time_of(status.st_ctim);
  result.stx_rdev_major = major(status.st_rdev);
  result.stx_rdev_minor = minor(status.st_rdev);
  result.stx_dev_major = major(status.st_dev);
  result.stx_dev_minor = minor(status.st_dev);
  if (found.inode && found.inode->birth_time.seconds != 0) {
    result.stx_mask |= STATX_BTIME;
    result.stx_btime.tv_sec = found.inode->birth_time.seconds;
    result.stx_btime.tv_nsec = found.inode->birth_time.nanoseconds;
  }
  return result;
}

SyscallResult access_at(int fd, UserAddress path, std::uint32_t wanted, int flags) {
  if ((wanted & ~std::uint32_t{R_OK | W_OK | X_OK}) != 0) return error(EINVAL);
  if ((flags & ~(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) != 0) return error(EINVAL);
  Credentials who = current().credentials;
  if ((flags & AT_EACCESS) == 0) {
    who.fsuid = who.uid;
    who.fsgid = who.gid;
  }
  PathArgument argument;
  TRY_VOID(argument.read(fd, path, (flags & AT_EMPTY_PATH) != 0));
  const Walk how{(flags & AT_SYMLINK_NOFOLLOW) != 0 ? FollowLast::no : FollowLast::yes, 0};
  LockGuard guard(tree_lock());
  const Ref<Dentry> dentry = TRY(argument.walk(how, who));
  TRY_VOID(check_access(*dentry->inode, wanted, who));
  return 0;
}

SyscallResult give_space(Inode* inode, UserAddress to) {
  struct statfs result{};
  const Inode::Space space = inode == nullptr ? Inode::Space{} : inode->space();
  result.f_type = static_cast<__fsword_t>(space.magic);
  result.f_bsize = kPageSize;
  result.f_frsize = kPageSize;
  result.f_blocks = space.blocks;
  result.f_bfree = result.f_bavail = space.blocks_free;
  result.f_files = space.inodes;
  result.f_ffree = space.inodes_free;
  result.f_namelen = kNameMax;
  constexpr __fsword_t kValid = 0x20, kReadOnly = 1, kNoSetId = 2, kNoDevices = 4;
  result.f_flags = kValid | kNoSetId | kNoDevices | (space.is_read_only ? kReadOnly : 0);
  TRY_VOID(copy_out(to, result));
  return 0;
}

}  // namespace

SyscallResult sys_stat(const SyscallArguments& arguments) {
  return give_stat(AT_FDCWD, arguments.get<UserAddress>(0), 0, arguments.get<UserAddress>(1));
}

SyscallResult sys_lstat(const SyscallArguments& arguments) {
  return give_stat(AT_FDCWD, arguments.get<UserAddress>(0), AT_SYMLINK_NOFOLLOW, arguments.get<UserAddress>(1));
}

SyscallResult sys_fstat(const SyscallArguments& arguments) {
  Found found;
  TRY_VOID(stat_file(arguments.get<int>(0), found));
  TRY_VOID(copy_out(arguments.get<UserAddress>(1), found.status));
  return 0;
}

SyscallResult sys_newfstatat(const SyscallArguments& arguments) {
  const int flags = arguments.get<int>(3);
  if ((flags & ~kStatFlags) != 0) return error(EINVAL);
  return give_stat(arguments.get<int>(0), arguments.get<UserAddress>(1), flags, arguments.get<UserAddress>(2));
}

SyscallResult sys_statx(const SyscallArguments& arguments) {
  constexpr int kSyncFlags = AT_STATX_FORCE_SYNC | AT_STATX_DONT_SYNC;
  constexpr std::uint32_t kReserved = 0x8000'0000;  // STATX__RESERVED
  const int flags = arguments.get<int>(2);
  if ((flags & ~(kStatFlags | kSyncFlags)) != 0 || (flags & kSyncFlags) == kSyncFlags) return error(EINVAL);
  if ((arguments.get<std::uint32_t>(3) & kReserved) != 0) return error(EINVAL);
  Found found;
  TRY_VOID(stat_at(arguments.get<int>(0), arguments.get<UserAddress>(1), flags, found));
  TRY_VOID(copy_out(arguments.get<UserAddress>(4), to_statx(found)));
  return 0;
}

SyscallResult sys_access(const SyscallArguments& arguments) {
  return access_at(AT_FDCWD, arguments.get<UserAddress>(0), arguments.get<std::uint32_t>(1), 0);
}

SyscallResult sys_faccessat(const SyscallArguments& arguments) {
  return access_at(arguments.get<int>(0), arguments.get<UserAddress>(1), arguments.get<std::uint32_t>(2), 0);
}

SyscallResult sys_faccessat2(const SyscallArguments& arguments) {
  return access_at(arguments.get<int>(0), arguments.get<UserAddress>(1), arguments.get<std::uint32_t>(2),
                   arguments.get<int>(3));
}

SyscallResult sys_statfs(const SyscallArguments& arguments) {
  const Ref<Dentry> dentry = TRY(find_path(AT_FDCWD, arguments.get<UserAddress>(0), 0));
  return give_space(dentry->inode.get(), arguments.get<UserAddress>(1));
}

SyscallResult sys_fstatfs(const SyscallArguments& arguments) {
  const Ref<File> file = TRY(current().files->get_any(arguments.get<int>(0)));
  return give_space(file->inode(), arguments.get<UserAddress>(1));
}

}  // namespace belljar::kernel
