// The sandbox's tree at its beginning.
#pragma once

#include "kernel/fs/host_tree.h"
#include "kernel/fs/tmpfs.h"
#include "kernel/fs/tree.h"

namespace belljar::kernel {

struct MountPlan {
  HostTree* root = nullptr;
  Ref<TmpSpace> space;  // /tmp and /dev/shm share it, and memfd_create(2) takes from it
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  // Roots of other file systems; null: none is mounted there.
  Ref<Inode> dev, proc, sys, terminals;
};

// "/" from the host tree, with tmpfs on /tmp and /dev/shm. Once, at boot; makes the root objects of this folder.
SysResult<Places> mount_tree(const MountPlan& plan);

// For the boot: what the caller has in writable folders. Paths are absolute; folders on the way are made where they are
// missing, and belong to uid 0.
// A tmpfs in the space of all others, where the root has a folder of that name.
SysResult<void> mount_own_folder(const Places& places, std::string_view path, std::uint32_t uid, std::uint32_t gid);
// A folder or file of the host tree, seen at the same path.
SysResult<void> mount_host_place(const Places& places, HostTree& tree, std::string_view path);
SysResult<void> make_boot_link(const Places& places, std::string_view path, std::string_view target);

// The space that memfd_create(2) takes from.
const Ref<TmpSpace>& memory_file_space();

}  // namespace belljar::kernel
