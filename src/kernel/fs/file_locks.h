// Locks on files: flock(2), and record locks of processes and of open files (fcntl(2), F_SETLK and F_OFD_SETLK).
#pragma once

#include <fcntl.h>

#include <cstdint>

#include "kernel/fs/file.h"
#include "kernel/fs/inode.h"

namespace belljar::kernel {

// LOCK_SH, LOCK_EX or LOCK_UN; with LOCK_NB EWOULDBLOCK in place of waiting.
SysResult<void> flock_file(File& file, int operation);

enum class RecordWait : bool { no, yes };
// Who holds a record lock: a process (its pid), or an open file.
struct RecordOwner {
  std::uint32_t process_id = 0;
  const File* file = nullptr;
  bool operator==(const RecordOwner&) const = default;
};
// [begin, end): end ~0: as far as the file goes. `type`: F_RDLCK, F_WRLCK, F_UNLCK.
SysResult<void> lock_record(Inode& inode, const RecordOwner& owner, short type, std::uint64_t begin, std::uint64_t end,
                            RecordWait wait);
struct RecordLock {
  RecordOwner owner;
  short type = F_UNLCK;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
// The first lock that stands in the way of such a one; type F_UNLCK: none.
RecordLock find_conflict(Inode& inode, const RecordOwner& owner, short type, std::uint64_t begin, std::uint64_t end);

// At a close(2) by the process; at the end of an open file; at the end of an inode.
void release_record_locks_slowly(Inode& inode, std::uint32_t process_id);
inline void release_record_locks(Inode& inode, std::uint32_t process_id) {
  if (inode.locks.load(std::memory_order_relaxed) != nullptr) release_record_locks_slowly(inode, process_id);
}
void release_file_locks_slowly(File& file);
inline void release_file_locks(File& file) {
  if (file.inode()->locks.load(std::memory_order_relaxed) != nullptr) release_file_locks_slowly(file);
}
void drop_file_locks(Inode& inode);
// Makes the root object; once.
SysResult<void> make_record_lock_state();

}  // namespace belljar::kernel
