#include "kernel/fs/file_locks.h"

#include <sys/file.h>

#include "kernel/arena/roots.h"
#include "kernel/task/wait_queue.h"

namespace belljar::kernel {

namespace {

struct FileFlock {
  FileFlock* next;
  const File* file;
  bool is_exclusive;
};

struct Record {
  Record* next;
  RecordLock lock;
};

// A process that waits for another's record lock; for the search for deadlocks.
struct Blocked {
  Blocked* next;
  RecordOwner waiter;
  RecordOwner holder;
};

constexpr int kDeadlockSteps = 10;

}  // namespace

// The root object: its lock holds the locks of all inodes.
class RecordLockState {
 public:
  Lock lock{LockRank::pair};
  Blocked* blocked = nullptr;
};

class FileLocks {
 public:
  FileFlock* flocks = nullptr;
  Record* records = nullptr;
  WaitQueue queue;
};

namespace {

RecordLockState& state() {
  return *arena_roots().record_locks;
}

SysResult<FileLocks*> locks_of(Inode& inode) {
  LockGuard guard(state().lock);
  FileLocks* locks = inode.locks;
  if (locks == nullptr) {
    locks = make_object<FileLocks>();
    if (locks == nullptr) return error(ENOLCK);
    inode.locks = locks;
  }
  return locks;
}

void remove_flock(FileLocks& locks, const File& file) {
  FileFlock** link = &locks.flocks;
  while (*link != nullptr && (*link)->file != &file) link = &(*link)->next;
  FileFlock* const found = *link;
  if (found == nullptr) return;
  *link = found->next;
  delete_object(found);
  locks.queue.wake_all();
}

// EAGAIN: another holds it.
SysResult<void> try_flock(FileLocks& locks, const File& file, bool is_exclusive) {
  LockGuard guard(state().lock);
  FileFlock* own = nullptr;
  bool is_free = true;
  for (FileFlock* held = locks.flocks; held != nullptr; held = held->next) {
    if (held->file == &file) {
      own = held;
    } else if (is_exclusive || held->is_exclusive) {
      is_free = false;
    }
  }
  if (own != nullptr && own->is_exclusive == is_exclusive) return {};
  if (!is_free) {
    remove_flock(locks, file);  // a conversion gives the old lock up first (flock(2))
    return error(EAGAIN);
  }
  if (own != nullptr) {
    own->is_exclusive = is_exclusive;
    if (!is_exclusive) locks.queue.wake_all();
    return {};
  }
  FileFlock* const added = make_object<FileFlock>(locks.flocks, &file, is_exclusive);
  if (added == nullptr) return error(ENOLCK);
  locks.flocks = added;
  return {};
}

bool is_in_conflict(const RecordLock& held, const RecordOwner& owner, short type, std::uint64_t begin,
                    std::uint64_t end) {
  if (held.owner == owner || held.begin >= end || held.end <= begin) return false;
  return type == F_WRLCK || held.type == F_WRLCK;
}

const RecordLock* first_conflict(const FileLocks& locks, const RecordOwner& owner, short type, std::uint64_t begin,
                                 std::uint64_t end) {
  const RecordLock* first = nullptr;
  for (const Record* record = locks.records; record != nullptr; record = record->next) {
    if (!is_in_conflict(record->lock, owner, type, begin, end)) continue;
    if (first == nullptr || record->lock.begin < first->begin) first = &record->lock;
  }
  return first;
}

bool would_deadlock(const RecordOwner& waiter, RecordOwner holder) {
  for (int step = 0; step < kDeadlockSteps; ++step) {
    if (holder == waiter) return true;
    const Blocked* next = state().blocked;
    while (next != nullptr && !(next->waiter == holder)) next = next->next;
    if (next == nullptr) return false;
    holder = next->holder;
  }
  return false;
}

// Sets the type of [begin, end) for one owner, who has no conflict: cuts and joins what it holds already.
SysResult<void> set_records(FileLocks& locks, RecordLock lock) {
  Record* spare = make_object<Record>();  // where a range is cut in two
  Record* const added = lock.type == F_UNLCK ? nullptr : make_object<Record>();
  if (spare == nullptr || (added == nullptr && lock.type != F_UNLCK)) {
    delete_object(spare);
    delete_object(added);
    return error(ENOLCK);
  }
  Record** link = &locks.records;
  while (*link != nullptr) {
    Record& record = **link;
    RecordLock& held = record.lock;
    const bool is_same = held.type == lock.type;
    const bool touches =
        is_same ? held.begin <= lock.end && held.end >= lock.begin : held.begin < lock.end && held.end > lock.begin;
    if (!(held.owner == lock.owner) || !touches) {
      link = &record.next;
      continue;
    }
    if (is_same) {
      if (held.begin < lock.begin) lock.begin = held.begin;
      if (held.end > lock.end) lock.end = held.end;
    } else if (held.begin < lock.begin && held.end > lock.end) {
      spare->lock = held;
      spare->lock.begin = lock.end;
      held.end = lock.begin;
      spare->next = record.next;
      record.next = spare;
      spare = nullptr;
      break;
    } else if (held.begin < lock.begin || held.end > lock.end) {
      (held.begin < lock.begin ? held.end : held.begin) = held.begin < lock.begin ? lock.begin : lock.end;
      link = &record.next;
      continue;
    }
    *link = record.next;
    delete_object(&record);
  }
  delete_object(spare);
  if (added != nullptr) {
    added->lock = lock;
    added->next = locks.records;
    locks.records = added;
  }
  if (lock.type != F_WRLCK) locks.queue.wake_all();
  return {};
}

// EAGAIN: another holds a part of it; `blocked` notes who, where one waits.
SysResult<void> try_record(FileLocks& locks, const RecordLock& wanted, Blocked* blocked) {
  LockGuard guard(state().lock);
  const RecordLock* const conflict =
      wanted.type == F_UNLCK ? nullptr : first_conflict(locks, wanted.owner, wanted.type, wanted.begin, wanted.end);
  if (conflict == nullptr) return set_records(locks, wanted);
  if (blocked != nullptr) {
    if (wanted.owner.process_id != 0 && would_deadlock(wanted.owner, conflict->owner)) return error(EDEADLK);
    blocked->holder = conflict->owner;
  }
  return error(EAGAIN);
}

void unblock(Blocked* blocked) {
  LockGuard guard(state().lock);
  Blocked** link = &state().blocked;
  while (*link != blocked) link = &(*link)->next;
  *link = blocked->next;
  delete_object(blocked);
}

SysResult<void> wait_for_record(FileLocks& locks, const RecordLock& wanted, Blocked* blocked) {
  Waiting waiting(locks.queue);
  while (true) {
    const auto done = try_record(locks, wanted, blocked);
    if (done || done.error() != Errno{EAGAIN}) return done;
    TRY_VOID(waiting.sleep());
  }
}

template <typename Matches>
void remove_records(FileLocks& locks, Matches matches) {
  bool has_removed = false;
  Record** link = &locks.records;
  while (*link != nullptr) {
    Record* const record = *link;
    if (!matches(record->lock.owner)) {
      link = &record->next;
      continue;
    }
    *link = record->next;
    delete_object(record);
    has_removed = true;
  }
  if (has_removed) locks.queue.wake_all();
}

}  // namespace

SysResult<void> flock_file(File& file, int operation) {
  FileLocks& locks = *TRY(locks_of(*file.inode()));
  const int kind = operation & ~LOCK_NB;
  if (kind == LOCK_UN) {
    LockGuard guard(state().lock);
    remove_flock(locks, file);
    return {};
  }
  if (kind != LOCK_SH && kind != LOCK_EX) return error(EINVAL);
  const auto done = try_flock(locks, file, kind == LOCK_EX);
  if (done || done.error() != Errno{EAGAIN} || (operation & LOCK_NB) != 0) return done;
  Waiting waiting(locks.queue);
  while (true) {
    const auto again = try_flock(locks, file, kind == LOCK_EX);
    if (again || again.error() != Errno{EAGAIN}) return again;
    TRY_VOID(waiting.sleep());
  }
}

SysResult<void> lock_record(Inode& inode, const RecordOwner& owner, short type, std::uint64_t begin, std::uint64_t end,
                            RecordWait wait) {
  FileLocks& locks = *TRY(locks_of(inode));
  const RecordLock wanted{owner, type, begin, end};
  const auto done = try_record(locks, wanted, nullptr);
  if (done || done.error() != Errno{EAGAIN} || wait == RecordWait::no) return done;
  Blocked* const blocked = make_object<Blocked>(nullptr, owner, RecordOwner{});
  if (blocked == nullptr) return error(ENOLCK);
  {
    LockGuard guard(state().lock);
    blocked->next = state().blocked;
    state().blocked = blocked;
  }
  const auto result = wait_for_record(locks, wanted, blocked);
  unblock(blocked);
  return result;
}

RecordLock find_conflict(Inode& inode, const RecordOwner& owner, short type, std::uint64_t begin, std::uint64_t end) {
  LockGuard guard(state().lock);
  const FileLocks* const locks = inode.locks;
  const RecordLock* const found = locks == nullptr ? nullptr : first_conflict(*locks, owner, type, begin, end);
  return found == nullptr ? RecordLock{} : *found;
}

void release_record_locks_slowly(Inode& inode, std::uint32_t process_id) {
  LockGuard guard(state().lock);
  remove_records(*inode.locks.load(), [&](const RecordOwner& owner) { return owner.process_id == process_id; });
}

void release_file_locks_slowly(File& file) {
  LockGuard guard(state().lock);
  FileLocks& locks = *file.inode()->locks;
  remove_flock(locks, file);
  remove_records(locks, [&](const RecordOwner& owner) { return owner.file == &file; });
}

void drop_file_locks(Inode& inode) {
  FileLocks* const locks = inode.locks;
  if (locks == nullptr) return;
  remove_records(*locks, [](const RecordOwner&) { return true; });
  delete_object(locks);
}

SysResult<void> make_record_lock_state() {
  ArenaRoots& roots = arena_roots();
  if (roots.record_locks == nullptr) roots.record_locks = make_object<RecordLockState>();
  if (roots.record_locks == nullptr) return error(ENOMEM);
  return {};
}

}  // namespace belljar::kernel
