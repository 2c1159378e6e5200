#include "kernel/fs/mount_tree.h"

#include "kernel/fs/dentry_cache.h"
#include "kernel/fs/file_data.h"
#include "kernel/fs/file_locks.h"
#include "kernel/fs/watches.h"

namespace belljar::kernel {
namespace {

SysResult<void> make_state() {
  TRY_VOID(make_tree_state());
  TRY_VOID(make_file_data_state());
  TRY_VOID(make_record_lock_state());
  ArenaRoots& roots = arena_roots();
  if (roots.watches == nullptr) roots.watches = make_object<WatchState>();
  if (roots.watches == nullptr) return error(ENOMEM);
  return {};
}

// Mounts over `name` of the folder; the name need not be there in a read-only tree.
SysResult<void> mount_at(const Ref<Dentry>& folder, std::string_view name, Ref<Inode> inode) {
  const Ref<Dentry> place = TRY(find_child(*folder, name));
  const Ref<Dentry> root = make_root_dentry(std::move(inode));
  if (!root) return error(ENOMEM);
  return mount_over(place, root);
}

SysResult<Ref<Dentry>> enter(const Ref<Dentry>& folder, std::string_view name) {
  Ref<Dentry> child = TRY(find_child(*folder, name));
  if (child->mounted != nullptr) child = Ref<Dentry>::of(child->mounted);
  if (!child->inode) return error(ENOENT);
  return child;
}

}  // namespace

SysResult<Places> mount_tree(const MountPlan& plan) {
  TRY_VOID(make_state());
  tree_state().memory_files = plan.space;
  Ref<Inode> root_inode = TRY(make_host_file_system(*plan.root));
  const Ref<Dentry> root = make_root_dentry(std::move(root_inode));
  if (!root) return error(ENOMEM);
  tree_state().mounts[tree_state().mount_count++] = Ref<Dentry>(root).leak();
  LockGuard guard(tree_lock());
  Ref<Inode> tmp = TRY(make_tmpfs(plan.space, 01777, plan.uid, plan.gid));
  TRY_VOID(mount_at(root, "tmp", std::move(tmp)));
  if (plan.proc) TRY_VOID(mount_at(root, "proc", plan.proc));
  if (plan.sys) TRY_VOID(mount_at(root, "sys", plan.sys));
  if (plan.dev) TRY_VOID(mount_at(root, "dev", plan.dev));
  if (const auto dev = enter(root, "dev")) {
    Ref<Inode> shm = TRY(make_tmpfs(plan.space, 01777, plan.uid, plan.gid));
    TRY_VOID(mount_at(*dev, "shm", std::move(shm)));
    if (plan.terminals) TRY_VOID(mount_at(*dev, "pts", plan.terminals));
  }
  return Places{root, root};
}

const Ref<TmpSpace>& memory_file_space() {
  return tree_state().memory_files;
}

}  // namespace belljar::kernel
