#include "kernel/ipc/epoll.h"

#include <poll.h>

#include <algorithm>

#include "kernel/arena/roots.h"
#include "kernel/mm/user_memory.h"

namespace belljar::kernel {
namespace {

// Bits of epoll_event::events that say how to report, not what.
constexpr std::uint32_t kModeBits = EPOLLWAKEUP | EPOLLONESHOT | static_cast<std::uint32_t>(EPOLLET) | EPOLLEXCLUSIVE;
// Wakes other threads in epoll_wait(2), but nobody who polls the instance: nothing new has come.
constexpr Events kScanAgain = 1U << 31;
constexpr std::uint32_t kBucketsFirst = 16;
constexpr int kDepthMax = 5;

Events wanted_events(std::uint32_t events) {
  return events & ~kModeBits;
}

}  // namespace

bool EpollItem::wake(Events events) {
  const Events wanted = wanted_events(events_.load(std::memory_order_relaxed));
  if ((wanted & events) == 0) return false;
  if (!is_queued_.exchange(true)) {
    EpollItem* head = epoll_.arrivals_.load(std::memory_order_relaxed);
    do {
      next_arrival_ = head;
    } while (!epoll_.arrivals_.compare_exchange_weak(head, this, std::memory_order_release));
  }
  const bool is_awaited = !epoll_.queue_.is_empty();
  epoll_.queue_.wake_one(POLLIN | POLLRDNORM);
  return is_awaited;
}

Epoll::~Epoll() {
  LockGuard links(arena_roots().epoll_links);
  for (std::uint32_t i = 0; i < bucket_count_; ++i) {
    while (buckets_[i] != nullptr) drop(*buckets_[i]);
  }
  if (buckets_ != nullptr) heap_free(buckets_, bucket_count_ * sizeof(EpollItem*));
}

void File::retire() {
  if (epoll_items.load(std::memory_order_acquire) == nullptr) return;
  LockGuard links(arena_roots().epoll_links);
  while (EpollItem* const item = epoll_items.load(std::memory_order_relaxed)) item->epoll_.drop(*item);
}

// ---- the list of the ready ----

void Epoll::take_arrivals() {
  EpollItem* item = arrivals_.exchange(nullptr, std::memory_order_acquire);
  EpollItem* in_order = nullptr;
  while (item != nullptr) {
    EpollItem* const next = item->next_arrival_;
    item->next_arrival_ = in_order;
    in_order = item;
    item = next;
  }
  for (; in_order != nullptr; in_order = in_order->next_arrival_) append_ready(*in_order);
}

void Epoll::append_ready(EpollItem& item) {
  item.next_ready_ = nullptr;
  item.previous_ready_ = ready_.last;
  (ready_.last == nullptr ? ready_.first : ready_.last->next_ready_) = &item;
  ready_.last = &item;
  ++ready_.count;
}

void Epoll::unlink_ready(EpollItem& item) {
  (item.previous_ready_ == nullptr ? ready_.first : item.previous_ready_->next_ready_) = item.next_ready_;
  (item.next_ready_ == nullptr ? ready_.last : item.next_ready_->previous_ready_) = item.previous_ready_;
  --ready_.count;
  item.is_queued_.store(false);
}

Epoll::Picked Epoll::pick() {
  LockGuard guard(lock_);
  while (EpollItem* const item = ready_.first) {
    unlink_ready(*item);
    // A file that is about to go takes its items away itself.
    if (!item->file_.try_acquire()) continue;
    return {.item = Ref<EpollItem>::of(item),
            .file = Ref<File>::adopt(&item->file_),
            .events = item->events_.load(std::memory_order_relaxed),
            .data = item->data_};
  }
  return {};
}

void Epoll::put_back(EpollItem& item) {
  LockGuard guard(lock_);
  if (!item.is_removed_ && !item.is_queued_.exchange(true)) append_ready(item);
}

std::uint32_t Epoll::begin_scan() {
  scans_.fetch_add(1);
  LockGuard guard(lock_);
  take_arrivals();
  return ready_.count;
}

bool Epoll::may_be_ready() {
  LockGuard guard(lock_);
  take_arrivals();
  return ready_.count != 0;
}

// What is left, or came back since it is still ready, is for the next thread that waits.
void Epoll::end_scan() {
  scans_.fetch_sub(1);
  if (!queue_.is_empty() && may_be_ready()) queue_.wake_one(kScanAgain);
}

Events Epoll::ready() {
  const bool is_scanned = scans_.load() != 0;
  Events events = 0;
  for (std::uint32_t left = begin_scan(); left > 0 && events == 0; --left) {
    const Picked picked = pick();
    if (!picked.item) break;
    if ((picked.file->ready() & wanted_events(picked.events)) == 0) continue;
    put_back(*picked.item);
    events = POLLIN | POLLRDNORM;
  }
  scans_.fetch_sub(1);
  // Another thread has items in hand, and may put them back without a word to those who poll.
  return is_scanned ? POLLIN | POLLRDNORM : events;
}

SysResult<bool> Epoll::report(const Picked& picked, std::uint64_t to) {
  const Events ready = picked.file->ready() & wanted_events(picked.events);
  if (ready == 0) return false;
  epoll_event event{};
  event.events = ready;
  event.data.u64 = picked.data;
  const SysResult<void> copied = copy_out(to, event);
  if (!copied) {
    put_back(*picked.item);
    return std::unexpected(copied.error());
  }
  if ((picked.events & EPOLLONESHOT) != 0) {
    std::uint32_t expected = picked.events;  // unless it was armed anew meanwhile
    picked.item->events_.compare_exchange_strong(expected, picked.events & kModeBits);
  } else if ((picked.events & EPOLLET) == 0) {
    put_back(*picked.item);
  }
  return true;
}

SysResult<std::uint64_t> Epoll::scan(std::uint64_t events, std::uint32_t count) {
  std::uint32_t reported = 0;
  SysResult<bool> result = false;
  for (std::uint32_t left = begin_scan(); left > 0 && reported < count; --left) {
    const Picked picked = pick();
    if (!picked.item) break;
    result = report(picked, events + reported * sizeof(epoll_event));
    if (!result) break;
    reported += *result;
  }
  end_scan();
  if (!result && reported == 0) return std::unexpected(result.error());
  return reported;
}

SysResult<std::uint64_t> Epoll::wait(std::uint64_t events, std::uint32_t count, Deadline deadline) {
  while (true) {
    std::uint64_t reported = TRY(scan(events, count));
    if (reported != 0 || deadline == 0) return reported;
    SysResult<void> slept;
    {
      Waiting waiting(queue_, POLLIN | kScanAgain, Waiting::Exclusive::yes);
      if (!may_be_ready()) slept = waiting.sleep(deadline);
    }
    if (slept) continue;
    // A wake-up that was meant for this thread may have come just then.
    reported = TRY(scan(events, count));
    if (reported != 0 || value_of(slept.error()) == ETIMEDOUT) return reported;
    return error(value_of(slept.error()) == kRestart ? kRestartNoHandler : value_of(slept.error()));
  }
}

Epoll* epoll_of(File& file) {
  return file.kind() == FileKind::epoll ? &static_cast<Epoll&>(file) : nullptr;
}

// ---- what is watched ----

EpollItem* Epoll::find(const File& file, int fd) {
  if (bucket_count_ == 0) return nullptr;
  EpollItem* item = bucket_of(fd);
  while (item != nullptr && (&item->file_ != &file || item->fd_ != fd)) item = item->next_in_bucket_;
  return item;
}

SysResult<void> Epoll::grow() {
  const std::uint32_t count = std::max(kBucketsFirst, bucket_count_ * 2);
  auto** const buckets = static_cast<EpollItem**>(heap_allocate(count * sizeof(EpollItem*)));
  if (buckets == nullptr) return error(ENOMEM);
  EpollItem** const old = std::exchange(buckets_, buckets);
  const std::uint32_t old_count = std::exchange(bucket_count_, count);
  for (std::uint32_t i = 0; i < old_count; ++i) {
    for (EpollItem* item = old[i]; item != nullptr;) {
      EpollItem* const next = item->next_in_bucket_;
      item->next_in_bucket_ = std::exchange(bucket_of(item->fd_), item);
      item = next;
    }
  }
  if (old != nullptr) heap_free(old, old_count * sizeof(EpollItem*));
  return {};
}

SysResult<void> Epoll::insert(EpollItem& item) {
  if (item_count_ >= bucket_count_) TRY_VOID(grow());
  item.next_in_bucket_ = std::exchange(bucket_of(item.fd_), &item);
  ++item_count_;
  return {};
}

void Epoll::drop(EpollItem& item) {
  // After this no wake-up of the item runs any more.
  item.file_.queue()->remove(item);
  {
    LockGuard guard(lock_);
    take_arrivals();
    if (item.is_queued_.load()) unlink_ready(item);
    item.is_removed_ = true;
    EpollItem** place = &bucket_of(item.fd_);
    while (*place != &item) place = &(*place)->next_in_bucket_;
    *place = item.next_in_bucket_;
    --item_count_;
  }
  EpollItem* previous = item.file_.epoll_items.load(std::memory_order_relaxed);
  if (previous == &item) {
    item.file_.epoll_items.store(item.next_of_file_, std::memory_order_release);
  } else {
    while (previous->next_of_file_ != &item) previous = previous->next_of_file_;
    previous->next_of_file_ = item.next_of_file_;
  }
  item.release();
}

// How many instances below `epoll` watch each other; more than the most allowed where `unwanted` is one of them. The
// links lock holds what is walked.
int Epoll::depth_below(Epoll& epoll, const Epoll& unwanted, int depth) {
  if (&epoll == &unwanted || depth > kDepthMax) return kDepthMax + 1;
  int deepest = depth;
  for (std::uint32_t i = 0; i < epoll.bucket_count_; ++i) {
    for (EpollItem* item = epoll.buckets_[i]; item != nullptr; item = item->next_in_bucket_) {
      if (Epoll* const next = epoll_of(item->file_))
        deepest = std::max(deepest, depth_below(*next, unwanted, depth + 1));
      if (deepest > kDepthMax) return deepest;
    }
  }
  return deepest;
}

int Epoll::depth_above(Epoll& epoll, int depth) {
  int highest = depth;
  if (depth > kDepthMax) return highest;
  for (EpollItem* item = epoll.epoll_items.load(std::memory_order_relaxed); item != nullptr;
       item = item->next_of_file_) {
    highest = std::max(highest, depth_above(item->epoll_, depth + 1));
  }
  return highest;
}

SysResult<Ref<EpollItem>> Epoll::link(File& file, int fd, const epoll_event& event) {
  Ref<EpollItem> item = make_ref<EpollItem>(*this, file, fd, event);
  if (!item) return error(ENOMEM);
  LockGuard links(arena_roots().epoll_links);
  if (Epoll* const watched = epoll_of(file)) {
    if (depth_below(*watched, *this, 1) + depth_above(*this, 0) > kDepthMax) return error(ELOOP);
  }
  {
    LockGuard guard(lock_);
    if (find(file, fd) != nullptr) return error(EEXIST);
    TRY_VOID(insert(*item));
  }
  item->next_of_file_ = file.epoll_items.load(std::memory_order_relaxed);
  file.epoll_items.store(item.get(), std::memory_order_release);
  if (item->is_exclusive()) {
    file.queue()->add_exclusive(*item, wanted_events(event.events));
  } else {
    file.queue()->add(*item, wanted_events(event.events));
  }
  item->acquire();  // the instance's own
  return item;
}

void Epoll::queue_if_ready(EpollItem& item, File& file) {
  const Events wanted = wanted_events(item.events_.load(std::memory_order_relaxed));
  if ((file.ready() & wanted) == 0) return;
  put_back(item);
  queue_.wake_one(POLLIN | POLLRDNORM);
}

SysResult<void> Epoll::add(Ref<File> file, int fd, const epoll_event& event) {
  const Ref<EpollItem> item = TRY(link(*file, fd, event));
  queue_if_ready(*item, *file);
  return {};
}

SysResult<Ref<EpollItem>> Epoll::change(File& file, int fd, const epoll_event& event) {
  LockGuard links(arena_roots().epoll_links);
  EpollItem* item = nullptr;
  {
    LockGuard guard(lock_);
    item = find(file, fd);
    if (item == nullptr) return error(ENOENT);
    if (item->is_exclusive()) return error(EINVAL);
    item->events_.store(event.events);
    item->data_ = event.data.u64;
  }
  file.queue()->remove(*item);
  file.queue()->add(*item, wanted_events(event.events));
  return Ref<EpollItem>::of(item);
}

SysResult<void> Epoll::modify(File& file, int fd, const epoll_event& event) {
  const Ref<EpollItem> item = TRY(change(file, fd, event));
  queue_if_ready(*item, file);
  return {};
}

SysResult<void> Epoll::remove(File& file, int fd) {
  LockGuard links(arena_roots().epoll_links);
  EpollItem* item = nullptr;
  {
    LockGuard guard(lock_);
    item = find(file, fd);
  }
  if (item == nullptr) return error(ENOENT);
  drop(*item);
  return {};
}

}  // namespace belljar::kernel
