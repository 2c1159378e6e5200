// epoll(7). An item watches one file for one descriptor; the file's queue calls it (Waiter::wake), and it puts itself
// on the list of its instance, without a lock, because it runs under the queue's.
//
// Locks: the links lock (LockRank::pair, one for the sandbox) holds which files are watched by which instances, and so
// keeps loops out; Epoll::lock_ (LockRank::ready_list) the items and the list of the ready. File::ready() is asked with
// neither held.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>

#include "kernel/arena/lock.h"
#include "kernel/ipc/nameless.h"
#include "kernel/task/wait_queue.h"

namespace belljar::kernel {

class Epoll;

// Alive as long as its instance has it or a scan holds it. `file` is not held: closing it takes the item away.
class EpollItem final : public Counted, public Waiter {
 public:
  EpollItem(Epoll& epoll, File& file, int fd, const epoll_event& event)
      : epoll_(epoll), file_(file), fd_(fd), events_(event.events), data_(event.data.u64) {}
  bool wake(Events events) override;

 private:
  friend class Epoll;
  friend class File;

  bool is_exclusive() const { return (events_.load(std::memory_order_relaxed) & EPOLLEXCLUSIVE) != 0; }

  Epoll& epoll_;
  File& file_;
  const int fd_;
  std::atomic<std::uint32_t>
      events_;  // as epoll_ctl(2) has them; without any event bit: fired once, and off since then
  std::uint64_t data_;
  bool is_removed_ = false;

  std::atomic<bool> is_queued_ = false;  // on the list of the ready, or on its way there
  EpollItem* next_arrival_ = nullptr;
  EpollItem* next_ready_ = nullptr;
  EpollItem* previous_ready_ = nullptr;

  EpollItem* next_in_bucket_ = nullptr;
  EpollItem* next_of_file_ = nullptr;  // links lock
};

class Epoll final : public AnonymousFile {
 public:
  Epoll() : AnonymousFile("[eventpoll]") {}
  ~Epoll() override;

  FileKind kind() const override { return FileKind::epoll; }
  Events ready() override;
  WaitQueue* queue() override { return &queue_; }

  SysResult<void> add(Ref<File> file, int fd, const epoll_event& event);
  SysResult<void> modify(File& file, int fd, const epoll_event& event);
  SysResult<void> remove(File& file, int fd);

  // Up to `count` events to guest memory. 0: the deadline passed; kRestartNoHandler: a signal.
  SysResult<std::uint64_t> wait(std::uint64_t events, std::uint32_t count, Deadline deadline);

 private:
  friend class EpollItem;
  friend class File;

  struct ReadyList {
    EpollItem* first = nullptr;
    EpollItem* last = nullptr;
    std::uint32_t count = 0;
  };

  // One of the ready, taken from the list, with what it asked for then.
  struct Picked {
    Ref<EpollItem> item;
    Ref<File> file;
    std::uint32_t events = 0;
    std::uint64_t data = 0;
  };

  SysResult<std::uint64_t> scan(std::uint64_t events, std::uint32_t count);
  SysResult<bool> report(const Picked& picked, std::uint64_t to);
  std::uint32_t begin_scan();
  void end_scan();
  bool may_be_ready();
  Picked pick();  // null: none
  void put_back(EpollItem& item);
  void queue_if_ready(EpollItem& item, File& file);
  // Links lock held: out of the file's queue and of everything here.
  void drop(EpollItem& item);
  SysResult<Ref<EpollItem>> link(File& file, int fd, const epoll_event& event);
  SysResult<Ref<EpollItem>> change(File& file, int fd, const epoll_event& event);
  static int depth_below(Epoll& epoll, const Epoll& unwanted, int depth);
  static int depth_above(Epoll& epoll, int depth);

  // With `lock_` held.
  void take_arrivals();
  void append_ready(EpollItem& item);
  void unlink_ready(EpollItem& item);
  EpollItem* find(const File& file, int fd);
  SysResult<void> insert(EpollItem& item);
  SysResult<void> grow();
  EpollItem*& bucket_of(int fd) { return buckets_[static_cast<std::uint32_t>(fd) & (bucket_count_ - 1)]; }

  Lock lock_{LockRank::ready_list};
  std::atomic<EpollItem*> arrivals_ = nullptr;
  ReadyList ready_;
  EpollItem** buckets_ = nullptr;
  std::uint32_t bucket_count_ = 0;
  std::uint32_t item_count_ = 0;
  std::atomic<std::uint32_t> scans_ = 0;  // threads that have items in hand
  WaitQueue queue_;
};

// Null where it is another file.
Epoll* epoll_of(File& file);

}  // namespace belljar::kernel
