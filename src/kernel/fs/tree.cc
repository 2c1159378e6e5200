#include "kernel/fs/tree.h"

#include <string.h>
#include <unistd.h>

#include "kernel/fs/dentry_cache.h"

namespace belljar::kernel {
namespace {

// A dentry of a name that is not cached.
SysResult<Ref<Dentry>> make_dentry(Dentry& folder, std::string_view name, std::uint32_t hash, Ref<Inode> inode) {
  auto entry = make_ref<Dentry>();
  if (!entry) return error(ENOMEM);
  TRY_VOID(entry->set_name(name));
  entry->parent = Ref<Dentry>::of(&folder);
  entry->hash = hash;
  entry->inode = std::move(inode);
  return entry;
}

// A name of a folder whose names come and go: asked each time, without the tree lock.
SysResult<Ref<Dentry>> ask_volatile(Dentry& folder, std::string_view name) {
  const Ref<Dentry> kept = Ref<Dentry>::of(&folder);
  tree_lock().unlock();
  auto found = folder.inode->lookup(name);
  tree_lock().lock();
  if (!found && found.error() != Errno{ENOENT}) return std::unexpected(found.error());
  return make_dentry(folder, name, 0, found ? std::move(*found) : Ref<Inode>());
}

}  // namespace

Lock& tree_lock() {
  return tree_state().lock;
}

SysResult<void> make_tree_state() {
  ArenaRoots& roots = arena_roots();
  if (roots.tree == nullptr) roots.tree = make_object<TreeState>();
  if (roots.tree == nullptr) return error(ENOMEM);
  return {};
}

SysResult<Ref<Dentry>> find_child(Dentry& folder, std::string_view name) {
  const std::uint32_t hash = hash_of(folder, name);
  if (Dentry* const cached = tree_state().cache.find(folder, name, hash)) return Ref<Dentry>::of(cached);
  if (!folder.inode->is_folder()) return error(ENOTDIR);
  if (name.size() > kNameMax) return error(ENAMETOOLONG);
  if (!folder.inode->keeps_names()) return ask_volatile(folder, name);

  auto found = folder.inode->lookup(name);
  if (!found && found.error() != Errno{ENOENT}) return std::unexpected(found.error());
  Ref<Dentry> entry = TRY(make_dentry(folder, name, hash, found ? std::move(*found) : Ref<Inode>()));
  if (!folder.is_unlinked) TRY_VOID(tree_state().cache.insert(*entry));
  return entry;
}

void set_inode(Dentry& dentry, Ref<Inode> inode) {
  dentry.inode = std::move(inode);
}

void mark_unlinked(Dentry& dentry) {
  dentry.is_unlinked = true;
  DentryCache& cache = tree_state().cache;
  cache.prune(dentry);
  cache.remove(dentry);
}

SysResult<void> move_dentry(Dentry& dentry, const Ref<Dentry>& new_parent, std::string_view new_name) {
  DentryCache& cache = tree_state().cache;
  const std::uint32_t hash = hash_of(*new_parent, new_name);
  if (Dentry* const known = cache.find(*new_parent, new_name, hash)) {
    const Ref<Dentry> kept = Ref<Dentry>::of(known);
    cache.remove(*known);
  }
  cache.remove(dentry);
  TRY_VOID(dentry.set_name(new_name));
  dentry.parent = new_parent;
  dentry.hash = hash;
  return cache.insert(dentry);
}

SysResult<void> exchange_dentries(Dentry& one, Dentry& other) {
  DentryCache& cache = tree_state().cache;
  cache.remove(one);
  cache.remove(other);
  char one_name[kNameMax];
  const std::size_t one_size = one.name_size;
  memcpy(one_name, one.name_text, one_size);
  TRY_VOID(one.set_name(other.name()));
  TRY_VOID(other.set_name({one_name, one_size}));
  std::swap(one.parent, other.parent);
  std::swap(one.hash, other.hash);
  TRY_VOID(cache.insert(one));
  return cache.insert(other);
}

SysResult<void> mount_over(const Ref<Dentry>& place, const Ref<Dentry>& root) {
  TreeState& tree = tree_state();
  if (place->mounted != nullptr) return error(EBUSY);
  if (tree.mount_count == TreeState::kMountsMax) return error(ENOSPC);
  tree.mounts[tree.mount_count++] = root.get();
  place->mounted = Ref<Dentry>(root).leak();
  root->covers = Ref<Dentry>(place).leak();
  return {};
}

std::span<Dentry* const> mounted_roots() {
  return {tree_state().mounts, tree_state().mount_count};
}

Ref<Dentry> make_root_dentry(Ref<Inode> inode) {
  auto entry = make_ref<Dentry>();
  if (!entry || !entry->set_name("/")) return nullptr;
  entry->inode = std::move(inode);
  return entry;
}

bool is_below(const Dentry& dentry, const Dentry& folder) {
  for (const Dentry* at = &dentry; at != nullptr; at = at->parent.get()) {
    if (at == &folder) return true;
  }
  return false;
}

namespace {

// Text that grows to the front.
class BackwardText {
 public:
  BackwardText(char* to, std::size_t size) : to_(to), size_(size), begin_(size) {}
  SysResult<void> prepend(std::string_view text) {
    if (text.size() > begin_) return error(ERANGE);
    begin_ -= text.size();
    memcpy(to_ + begin_, text.data(), text.size());
    return {};
  }
  SysResult<void> prepend_name(const Dentry& dentry) {
    TRY_VOID(prepend(dentry.name()));
    return prepend("/");
  }
  // Moves it to the beginning of the memory; returns its length.
  std::size_t finish() {
    memmove(to_, to_ + begin_, size_ - begin_);
    return size_ - begin_;
  }

 private:
  char* to_;
  std::size_t size_;
  std::size_t begin_;
};

// Of memfd_create(2): a name that is in no folder.
bool is_nowhere(const Dentry& dentry) {
  return dentry.is_unlinked && !dentry.parent && dentry.covers == nullptr;
}

}  // namespace

SysResult<std::size_t> path_of(Dentry& dentry, const Dentry& root, char* to, std::size_t size) {
  BackwardText text(to, size);
  if (dentry.is_unlinked) TRY_VOID(text.prepend(" (deleted)"));
  if (is_nowhere(dentry)) {
    TRY_VOID(text.prepend_name(dentry));
    return text.finish();
  }
  const Dentry* at = &dentry;
  bool has_name = false;
  while (at != &root) {
    if (at->parent) {
      TRY_VOID(text.prepend_name(*at));
      has_name = true;
      at = at->parent.get();
    } else if (at->covers != nullptr) {
      at = at->covers;
    } else {
      break;
    }
  }
  if (!has_name) TRY_VOID(text.prepend("/"));
  if (at != &root) TRY_VOID(text.prepend("(unreachable)"));
  return text.finish();
}

bool is_in_group(std::uint32_t gid, const Credentials& who) {
  if (who.fsgid == gid) return true;
  for (std::uint32_t i = 0; i < who.group_count; ++i) {
    if (who.groups[i] == gid) return true;
  }
  return false;
}

SysResult<void> check_access(const Inode& inode, std::uint32_t wanted, const Credentials& who) {
  if ((wanted & W_OK) != 0 && inode.is_read_only()) {
    if (inode.is_regular() || inode.is_folder() || inode.is_link()) return error(EROFS);
  }
  std::uint32_t allowed = inode.mode;
  if (who.fsuid == inode.uid) {
    allowed >>= 6;
  } else if (is_in_group(inode.gid, who)) {
    allowed >>= 3;
  }
  if ((wanted & ~allowed & 7) != 0) return error(EACCES);
  return {};
}

bool owns(const Inode& inode, const Credentials& who) {
  return who.fsuid == inode.uid;
}

SysResult<void> check_removable(const Dentry& folder, const Inode& inode, const Credentials& who) {
  TRY_VOID(check_access(*folder.inode, W_OK | X_OK, who));
  const bool is_sticky = (folder.inode->mode & S_ISVTX) != 0;
  if (is_sticky && !owns(inode, who) && !owns(*folder.inode, who)) return error(EPERM);
  return {};
}

}  // namespace belljar::kernel
