// Modes, owners and times: chmod(2), chown(2), utimensat(2).
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <utime.h>

#include "kernel/fs/watches.h"
#include "kernel/syscalls/path_argument.h"

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kKeep = ~0U;  // chown(2): leave as it is
constexpr long kNanoseconds = 1'000'000'000;
constexpr long kMicroseconds = 1'000'000;

const Credentials& caller() {
  return current().credentials;
}

SysResult<void> apply(Inode& inode, const AttributeChange& change) {
  TRY_VOID(inode.change(change));
  tell_watches(inode, inode.is_folder() ? IN_ATTRIB | IN_ISDIR : IN_ATTRIB);
  return {};
}

// What is changed: found by a path, or an open file's. Its folder's watchers learn of it too.
SysResult<void> apply(Dentry& dentry, const AttributeChange& change) {
  TRY_VOID(dentry.inode->change(change));
  if (!has_any_watch()) return {};
  LockGuard guard(tree_lock());
  tell_watches_of_dentry(dentry, IN_ATTRIB);
  return {};
}

SysResult<AttributeChange> change_of_mode(const Inode& inode, std::uint32_t mode) {
  if (inode.is_read_only()) return error(EROFS);
  if (!owns(inode, caller())) return error(EPERM);
  AttributeChange change;
  change.set_mode = true;
  change.mode = mode & 07777;
  if (!is_in_group(inode.gid, caller())) change.mode &= ~std::uint32_t{S_ISGID};
  return change;
}

SyscallResult change_mode(int fd, UserAddress path, std::uint32_t mode) {
  const Ref<Dentry> dentry = TRY(find_path(fd, path, 0));
  const AttributeChange change = TRY(change_of_mode(*dentry->inode, mode));
  TRY_VOID(apply(*dentry, change));
  return 0;
}

SysResult<AttributeChange> change_of_owner(const Inode& inode, std::uint32_t uid, std::uint32_t gid) {
  if (inode.is_read_only()) return error(EROFS);
  if (uid != kKeep && (uid != inode.uid || !owns(inode, caller()))) return error(EPERM);
  if (gid != kKeep) {
    if (!owns(inode, caller()) || (gid != inode.gid && !is_in_group(gid, caller()))) return error(EPERM);
  }
  AttributeChange change;
  change.set_uid = uid != kKeep;
  change.uid = uid;
  change.set_gid = gid != kKeep;
  change.gid = gid;
  return change;
}

SyscallResult change_owner(int fd, UserAddress path, std::uint32_t uid, std::uint32_t gid, int flags) {
  if ((flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) != 0) return error(EINVAL);
  const Ref<Dentry> dentry = TRY(find_path(fd, path, flags));
  const AttributeChange change = TRY(change_of_owner(*dentry->inode, uid, gid));
  TRY_VOID(apply(*dentry, change));
  return 0;
}

struct Times {
  timespec access{0, UTIME_NOW};
  timespec modify{0, UTIME_NOW};
};

SysResult<AttributeChange> change_of_times(const Inode& inode, const Times& times) {
  if (inode.is_read_only()) return error(EROFS);
  const bool both_now = times.access.tv_nsec == UTIME_NOW && times.modify.tv_nsec == UTIME_NOW;
  if (!owns(inode, caller())) {
    if (!both_now) return error(EPERM);
    TRY_VOID(check_access(inode, W_OK, caller()));
  }
  const auto time = [](const timespec& given) {
    return given.tv_nsec == UTIME_NOW ? now() : Timestamp{given.tv_sec, static_cast<std::uint32_t>(given.tv_nsec)};
  };
  AttributeChange change;
  change.set_access = times.access.tv_nsec != UTIME_OMIT;
  change.access = time(times.access);
  change.set_modify = times.modify.tv_nsec != UTIME_OMIT;
  change.modify = time(times.modify);
  return change;
}

bool is_valid(const timespec& time) {
  return time.tv_nsec == UTIME_NOW || time.tv_nsec == UTIME_OMIT || (time.tv_nsec >= 0 && time.tv_nsec < kNanoseconds);
}

// `path` 0: the descriptor itself (futimens(3)).
SyscallResult set_times(int fd, UserAddress path, const Times& times, int flags) {
  if ((flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) != 0) return error(EINVAL);
  if (times.access.tv_nsec == UTIME_OMIT && times.modify.tv_nsec == UTIME_OMIT) return 0;
  if (path == 0 && fd != AT_FDCWD) {
    if (flags != 0) return error(EINVAL);
    const Ref<File> file = TRY(current().files->get(fd));
    if (file->inode() == nullptr) return 0;
    const AttributeChange change = TRY(change_of_times(*file->inode(), times));
    if (file->dentry() != nullptr) {
      TRY_VOID(apply(*file->dentry(), change));
    } else {
      TRY_VOID(apply(*file->inode(), change));
    }
    return 0;
  }
  const Ref<Dentry> dentry = TRY(find_path(fd, path, flags));
  const AttributeChange change = TRY(change_of_times(*dentry->inode, times));
  TRY_VOID(apply(*dentry, change));
  return 0;
}

// Two times in microseconds (utimes(2)).
SysResult<Times> read_microseconds(UserAddress address) {
  Times times;
  if (address == 0) return times;
  timeval given[2];
  TRY_VOID(copy_in(given, address, sizeof given));
  for (const timeval& time : given) {
    if (time.tv_usec < 0 || time.tv_usec >= kMicroseconds) return error(EINVAL);
  }
  times.access = {given[0].tv_sec, given[0].tv_usec * 1000};
  times.modify = {given[1].tv_sec, given[1].tv_usec * 1000};
  return times;
}

}  // namespace

SyscallResult sys_chmod(const SyscallArguments& arguments) {
  return change_mode(AT_FDCWD, arguments.get<UserAddress>(0), arguments.get<std::uint32_t>(1));
}

SyscallResult sys_fchmodat(const SyscallArguments& arguments) {
  return change_mode(arguments.get<int>(0), arguments.get<UserAddress>(1), arguments.get<std::uint32_t>(2));
}

SyscallResult sys_fchmod(const SyscallArguments& arguments) {
  const auto mode = arguments.get<std::uint32_t>(1);
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  if (file->inode() == nullptr) return 0;
  const AttributeChange change = TRY(change_of_mode(*file->inode(), mode));
  if (file->dentry() != nullptr) {
    TRY_VOID(apply(*file->dentry(), change));
  } else {
    TRY_VOID(apply(*file->inode(), change));
  }
  return 0;
}

SyscallResult sys_chown(const SyscallArguments& arguments) {
  return change_owner(AT_FDCWD, arguments.get<UserAddress>(0), arguments.get<std::uint32_t>(1),
                      arguments.get<std::uint32_t>(2), 0);
}

SyscallResult sys_lchown(const SyscallArguments& arguments) {
  return change_owner(AT_FDCWD, arguments.get<UserAddress>(0), arguments.get<std::uint32_t>(1),
                      arguments.get<std::uint32_t>(2), AT_SYMLINK_NOFOLLOW);
}

SyscallResult sys_fchownat(const SyscallArguments& arguments) {
  return change_owner(arguments.get<int>(0), arguments.get<UserAddress>(1), arguments.get<std::uint32_t>(2),
                      arguments.get<std::uint32_t>(3), arguments.get<int>(4));
}

SyscallResult sys_fchown(const SyscallArguments& arguments) {
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  if (file->inode() == nullptr) return 0;
  const AttributeChange change =
      TRY(change_of_owner(*file->inode(), arguments.get<std::uint32_t>(1), arguments.get<std::uint32_t>(2)));
  TRY_VOID(apply(*file->inode(), change));
  return 0;
}

SyscallResult sys_utime(const SyscallArguments& arguments) {
  Times times;
  if (arguments.get<UserAddress>(1) != 0) {
    const auto given = TRY(copy_in<utimbuf>(arguments.get<UserAddress>(1)));
    times.access = {given.actime, 0};
    times.modify = {given.modtime, 0};
  }
  return set_times(AT_FDCWD, arguments.get<UserAddress>(0), times, 0);
}

SyscallResult sys_utimes(const SyscallArguments& arguments) {
  const Times times = TRY(read_microseconds(arguments.get<UserAddress>(1)));
  return set_times(AT_FDCWD, arguments.get<UserAddress>(0), times, 0);
}

SyscallResult sys_futimesat(const SyscallArguments& arguments) {
  const Times times = TRY(read_microseconds(arguments.get<UserAddress>(2)));
  return set_times(arguments.get<int>(0), arguments.get<UserAddress>(1), times, 0);
}

SyscallResult sys_utimensat(const SyscallArguments& arguments) {
  Times times;
  if (arguments.get<UserAddress>(2) != 0) {
    timespec given[2];
    TRY_VOID(copy_in(given, arguments.get<UserAddress>(2), sizeof given));
    if (!is_valid(given[0]) || !is_valid(given[1])) return error(EINVAL);
    times.access = given[0];
    times.modify = given[1];
  }
  return set_times(arguments.get<int>(0), arguments.get<UserAddress>(1), times, arguments.get<int>(3));
}

}  // namespace belljar::kernel
