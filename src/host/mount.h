// The mount API as thin calls. Every function is async-signal-safe and allocates nothing, so that it may run between
// clone(2) and execve(2). All return 0 or a descriptor, or -errno.
#pragma once

#include <cstdint>

namespace belljar::host {

enum class Recursion { no, yes };

// open_tree(2) with OPEN_TREE_CLONE and OPEN_TREE_CLOEXEC: a detached copy of the mount at `path` below `folder_fd`
// ("" means the descriptor itself). Returns a descriptor.
int clone_mount(int folder_fd, const char* path, Recursion recursion);

// move_mount(2): attaches the detached mount `mount_fd` at `path` below `folder_fd` ("" means the descriptor itself).
int attach_mount(int mount_fd, int folder_fd, const char* path);

// mount_setattr(2) on the mount that `mount_fd` refers to: sets the MOUNT_ATTR_* bits of `attributes`, and makes it
// private: a copy of a shared mount is its peer (mount_namespaces(7)), so that what is mounted on it in a sandbox would
// be mounted on the host too. With `userns_fd` >= 0 the mount is also idmapped by that user namespace
// (user_namespaces(7), "idmapped mounts").
int set_mount_attributes(int mount_fd, std::uint64_t attributes, int userns_fd, Recursion recursion);

// mount_setattr(2): takes MOUNT_ATTR_NODEV from the detached mount that `mount_fd` refers to, which is its own and not
// the file system's: a copy need not forbid devices because the mount that it is of does (mount(8), nodev).
int allow_devices(int mount_fd);

// One key and value for fsconfig(2); a null value sets a flag.
struct FilesystemOption {
  const char* key;
  const char* value;
};

// fsopen(2), fsconfig(2), fsmount(2): a detached mount of a new file system. Returns a descriptor.
int new_filesystem(const char* type, const FilesystemOption* options, unsigned option_count, std::uint64_t attributes);

// pivot_root(2) onto the working folder, then detaches the old root.
int pivot_to_working_folder();

}  // namespace belljar::host
