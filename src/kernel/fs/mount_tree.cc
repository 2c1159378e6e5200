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

// What is mounted stays.
SysResult<void> note_writable(Inode& root) {
  ArenaRoots& roots = arena_roots();
  if (roots.writable_count == ArenaRoots::kWritableMax) return error(ENOSPC);
  roots.writable[roots.writable_count++] = &root;
  return {};
}

SysResult<Ref<Dentry>> enter(const Ref<Dentry>& folder, std::string_view name) {
  Ref<Dentry> child = TRY(find_child(*folder, name));
  if (child->mounted != nullptr) child = Ref<Dentry>::of(child->mounted);
  if (!child->inode) return error(ENOENT);
  return child;
}

// The same, making the folder where it is missing.
SysResult<Ref<Dentry>> enter_or_make(const Ref<Dentry>& folder, std::string_view name) {
  const Ref<Dentry> child = TRY(find_child(*folder, name));
  if (!child->inode && child->mounted == nullptr) {
    Ref<Inode> made = TRY(folder->inode->create(name, S_IFDIR | 0755, 0, Credentials()));
    set_inode(*child, std::move(made));
  }
  return enter(folder, name);
}

// The folder that the last name of an absolute path is in; `name` becomes that name.
SysResult<Ref<Dentry>> make_way(const Places& places, std::string_view path, std::string_view& name) {
  Ref<Dentry> folder = places.root;
  while (true) {
    while (!path.empty() && path.front() == '/') path.remove_prefix(1);
    const std::size_t slash = path.find('/');
    name = path.substr(0, slash);
    if (slash == std::string_view::npos) return folder;
    path.remove_prefix(slash);
    folder = TRY(enter_or_make(folder, name));
  }
}

}  // namespace

SysResult<void> mount_own_folder(const Places& places, std::string_view path, std::uint32_t uid, std::uint32_t gid) {
  Ref<Inode> inode = TRY(make_tmpfs(memory_file_space(), 0755, uid, gid));
  TRY_VOID(note_writable(*inode));
  LockGuard guard(tree_lock());
  return mount_at(places.root, path.substr(1), std::move(inode));
}

SysResult<void> mount_host_place(const Places& places, HostTree& tree, std::string_view path) {
  Ref<Inode> inode = TRY(make_host_file_system(tree, path.substr(1)));
  std::string_view name;
  LockGuard guard(tree_lock());
  const Ref<Dentry> folder = TRY(make_way(places, path, name));
  const Ref<Dentry> place = TRY(find_child(*folder, name));
  if (!place->inode) {
    const std::uint32_t mode = inode->is_folder() ? S_IFDIR | 0755U : S_IFREG | 0444U;
    Ref<Inode> made = TRY(folder->inode->create(name, mode, 0, Credentials()));
    set_inode(*place, std::move(made));
  }
  return mount_at(folder, name, std::move(inode));
}

SysResult<void> make_boot_link(const Places& places, std::string_view path, std::string_view target) {
  std::string_view name;
  LockGuard guard(tree_lock());
  const Ref<Dentry> folder = TRY(make_way(places, path, name));
  const Ref<Dentry> place = TRY(find_child(*folder, name));
  Ref<Inode> made = TRY(folder->inode->make_symlink(name, target, Credentials()));
  set_inode(*place, std::move(made));
  return {};
}

SysResult<Places> mount_tree(const MountPlan& plan) {
  TRY_VOID(make_state());
  tree_state().memory_files = plan.space;
  Ref<Inode> root_inode = TRY(make_host_file_system(*plan.root));
  const Ref<Dentry> root = make_root_dentry(std::move(root_inode));
  if (!root) return error(ENOMEM);
  tree_state().mounts[tree_state().mount_count++] = Ref<Dentry>(root).leak();
  LockGuard guard(tree_lock());
  Ref<Inode> tmp = TRY(make_tmpfs(plan.space, 01777, plan.uid, plan.gid));
  TRY_VOID(note_writable(*tmp));
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
