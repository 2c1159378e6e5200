#include "host/mount.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"

namespace belljar::host {
namespace {

int result_or_errno(long result) {
  return result < 0 ? -errno : static_cast<int>(result);
}

}  // namespace

int clone_mount(int folder_fd, const char* path, Recursion recursion) {
  const unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (*path == '\0' ? unsigned{AT_EMPTY_PATH} : 0U) |
                         (recursion == Recursion::yes ? unsigned{AT_RECURSIVE} : 0U);
  return result_or_errno(::syscall(SYS_open_tree, folder_fd, path, flags));
}

int attach_mount(int mount_fd, int folder_fd, const char* path) {
  const unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | (*path == '\0' ? unsigned{MOVE_MOUNT_T_EMPTY_PATH} : 0U);
  return result_or_errno(::syscall(SYS_move_mount, mount_fd, "", folder_fd, path, flags));
}

int set_mount_attributes(int mount_fd, std::uint64_t attributes, int userns_fd, Recursion recursion) {
  mount_attr change{};
  change.attr_set = attributes;
  change.propagation = MS_PRIVATE;
  if (userns_fd >= 0) {
    change.attr_set |= MOUNT_ATTR_IDMAP;
    change.userns_fd = static_cast<std::uint64_t>(userns_fd);
  }
  const unsigned flags = AT_EMPTY_PATH | (recursion == Recursion::yes ? unsigned{AT_RECURSIVE} : 0U);
  return result_or_errno(::syscall(SYS_mount_setattr, mount_fd, "", flags, &change, sizeof change));
}

int allow_devices(int mount_fd) {
  mount_attr change{};
  change.attr_clr = MOUNT_ATTR_NODEV;
  return result_or_errno(::syscall(SYS_mount_setattr, mount_fd, "", AT_EMPTY_PATH, &change, sizeof change));
}

int new_filesystem(const char* type, const FilesystemOption* options, unsigned option_count, std::uint64_t attributes) {
  const Fd context(result_or_errno(::syscall(SYS_fsopen, type, FSOPEN_CLOEXEC)));
  if (!context.is_open()) return context.get();
  for (unsigned i = 0; i < option_count; ++i) {
    const FilesystemOption& option = options[i];
    const unsigned command = option.value == nullptr ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING;
    const int result = result_or_errno(::syscall(SYS_fsconfig, context.get(), command, option.key, option.value, 0));
    if (result < 0) return result;
  }
  const int created = result_or_errno(::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0));
  if (created < 0) return created;
  return result_or_errno(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, attributes));
}

int pivot_to_working_folder() {
  const int result = result_or_errno(::syscall(SYS_pivot_root, ".", "."));
  if (result < 0) return result;
  return result_or_errno(::umount2(".", MNT_DETACH));
}

}  // namespace belljar::host
