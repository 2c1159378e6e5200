// inotify(7): who watches which inode, and the events that wait to be read.
#pragma once

// <sys/inotify.h> takes for granted what this gives.
#include <sys/types.h>

#include <sys/inotify.h>

#include <atomic>
#include <cstdint>
#include <string_view>

#include "kernel/arena/roots.h"
#include "kernel/fs/file.h"
#include "kernel/fs/inode.h"

namespace belljar::kernel {

// The root object. Its lock holds all watches and queues of events; of rank `pair`, so that events can be told with an
// object locked.
class WatchState {
 public:
  Lock lock{LockRank::pair};
  std::atomic<std::uint32_t> count = 0;  // of watches in all
  std::atomic<std::uint32_t> next_cookie = 1;
};

inline bool has_any_watch() {
  const WatchState* const state = arena_roots().watches;
  return state != nullptr && state->count.load(std::memory_order_relaxed) != 0;
}

// Of an event (IN_*) of an inode itself, or of a name in a watched folder.
void tell_watches_slowly(Inode& inode, std::uint32_t mask, std::uint32_t cookie, std::string_view name);
inline void tell_watches(Inode& inode, std::uint32_t mask, std::uint32_t cookie = 0, std::string_view name = {}) {
  if (inode.watches.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    tell_watches_slowly(inode, mask, cookie, name);
}
// To those who watch what the name stands for, and to those who watch its folder. The tree lock is held.
void tell_watches_of_dentry(Dentry& dentry, std::uint32_t mask);
// The same of an open file; takes the tree lock, if anyone watches anything.
void tell_watches_of_file_slowly(File& file, std::uint32_t mask);
inline void tell_watches_of_file(File& file, std::uint32_t mask) {
  if (has_any_watch()) [[unlikely]]
    tell_watches_of_file_slowly(file, mask);
}
// Joins the two events of one rename(2).
std::uint32_t new_watch_cookie();

// At the end of an inode: its watchers learn that it is gone.
void drop_watches_slowly(Inode& inode);
inline void drop_watches(Inode& inode) {
  if (inode.watches.load(std::memory_order_relaxed) != nullptr) drop_watches_slowly(inode);
}

SysResult<Ref<File>> make_inotify_file();
// EINVAL where `file` is no inotify instance.
SysResult<int> add_watch(File& file, Inode& inode, std::uint32_t mask);
SysResult<void> remove_watch(File& file, int descriptor);

}  // namespace belljar::kernel
