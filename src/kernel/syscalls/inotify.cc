// inotify(7).
#include <fcntl.h>
#include <unistd.h>

#include "kernel/fs/watches.h"
#include "kernel/ipc/nameless.h"
#include "kernel/syscalls/path_argument.h"

namespace belljar::kernel {
namespace {

SyscallResult make_instance(std::uint32_t flags) {
  if ((flags & ~std::uint32_t{IN_CLOEXEC | IN_NONBLOCK}) != 0) return error(EINVAL);
  Ref<File> file = TRY(make_inotify_file());
  return static_cast<std::uint64_t>(TRY(add_new_file(std::move(file), O_RDONLY, flags)));
}

}  // namespace

SyscallResult sys_inotify_init(const SyscallArguments&) {
  return make_instance(0);
}

SyscallResult sys_inotify_init1(const SyscallArguments& arguments) {
  return make_instance(arguments.get<std::uint32_t>(0));
}

SyscallResult sys_inotify_add_watch(const SyscallArguments& arguments) {
  constexpr std::uint32_t kKnown = IN_ALL_EVENTS | IN_UNMOUNT | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK |
                                   IN_MASK_CREATE | IN_MASK_ADD | IN_ISDIR | IN_ONESHOT;
  const auto mask = arguments.get<std::uint32_t>(2);
  if ((mask & kKnown) == 0 || ((mask & IN_MASK_ADD) != 0 && (mask & IN_MASK_CREATE) != 0)) return error(EINVAL);
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  if (file->kind() != FileKind::inotify) return error(EINVAL);
  const int flags = (mask & IN_DONT_FOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0;
  const Ref<Dentry> dentry = TRY(find_path(AT_FDCWD, arguments.get<UserAddress>(1), flags));
  if ((mask & IN_ONLYDIR) != 0 && !dentry->inode->is_folder()) return error(ENOTDIR);
  TRY_VOID(check_access(*dentry->inode, R_OK, current().credentials));
  return static_cast<std::uint64_t>(TRY(add_watch(*file, *dentry->inode, mask)));
}

SyscallResult sys_inotify_rm_watch(const SyscallArguments& arguments) {
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  TRY_VOID(remove_watch(*file, arguments.get<int>(1)));
  return 0;
}

}  // namespace belljar::kernel
