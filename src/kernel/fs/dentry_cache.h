// The names that are known: a hash table over dentries, each found by its folder and its name. Under the tree lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "kernel/arena/roots.h"
#include "kernel/fs/inode.h"
#include "kernel/fs/tmpfs.h"

namespace belljar::kernel {

inline std::uint32_t hash_of(const Dentry& folder, std::string_view name) {
  std::uint64_t hash = reinterpret_cast<std::uint64_t>(&folder) * 0x9e37'79b9'7f4a'7c15;
  for (const char character : name) {
    hash = (hash ^ static_cast<unsigned char>(character)) * 0x0100'0000'01b3;
  }
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

class DentryCache {
 public:
  // The cached dentry; null where the name is not known.
  Dentry* find(const Dentry& folder, std::string_view name, std::uint32_t hash) {
    if (buckets_ == nullptr) return nullptr;
    for (Dentry* entry = buckets_[hash & (bucket_count_ - 1)]; entry != nullptr; entry = entry->hash_next_) {
      if (entry->hash == hash && entry->parent.get() == &folder && entry->name() == name) {
        entry->was_used = true;
        return entry;
      }
    }
    return nullptr;
  }

  // Takes a reference; may drop others that nobody uses. Its parent, name and hash are set.
  SysResult<void> insert(Dentry& entry);
  // Gives the reference up: the caller holds one of its own.
  void remove(Dentry& entry);
  // Forgets all names below a folder that nobody uses.
  void prune(Dentry& folder);
  std::uint32_t count() const { return count_; }

 private:
  SysResult<void> grow();
  void drop_unused();
  void unlink(Dentry& entry);

  Dentry** buckets_ = nullptr;
  std::uint32_t bucket_count_ = 0;
  std::uint32_t count_ = 0;
  Dentry* oldest_ = nullptr;  // of the ring
};

// The root object of the tree of names.
class TreeState {
 public:
  Lock lock{LockRank::tree};
  DentryCache cache;
  Ref<TmpSpace> memory_files;
  static constexpr std::uint32_t kMountsMax = 256;
  Dentry* mounts[kMountsMax] = {};  // roots, the tree's own first
  std::uint32_t mount_count = 0;
  std::atomic<std::uint64_t> next_inode = 2;
  std::atomic<std::uint32_t> next_device = 32;  // lower ones are of files without names
};

inline TreeState& tree_state() {
  return *arena_roots().tree;
}

// Makes the root object; once.
SysResult<void> make_tree_state();

inline std::uint64_t new_inode_number() {
  return tree_state().next_inode.fetch_add(1, std::memory_order_relaxed);
}

// A device number of its own for a file system.
inline std::uint32_t new_device_number() {
  return tree_state().next_device.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace belljar::kernel
