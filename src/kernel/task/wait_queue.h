// How threads wait. A WaitQueue belongs to an object; whoever changes the object wakes it. Waiters lie in the arena,
// because the thread that wakes may be another process's.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernel/arena/lock.h"
#include "kernel/base/result.h"

namespace belljar::kernel {

class Task;
class WaitQueue;

// Events as in poll(2): POLLIN, POLLOUT, POLLERR, POLLHUP ...
using Events = std::uint32_t;
inline constexpr Events kAllEvents = ~0U;

// One entry of a queue. Must be in the arena, and removed before it goes.
class Waiter {
 public:
  // Called under the queue's lock: may take locks of a higher rank only, and must not sleep. True: counts as a wake-up
  // for wake_one().
  virtual bool wake(Events events) = 0;

 protected:
  ~Waiter() = default;

 private:
  friend class WaitQueue;
  WaitQueue* queue_ = nullptr;
  Waiter* next_ = nullptr;
  Waiter* previous_ = nullptr;
  Events wanted_ = 0;
  bool is_exclusive_ = false;
};

class WaitQueue {
 public:
  // Waiters that want one of `events` (POLLERR and POLLHUP are always wanted).
  void wake_all(Events events = kAllEvents);
  // All waiters but exclusive ones, and of those the first that takes it.
  void wake_one(Events events = kAllEvents);
  void add(Waiter& waiter, Events wanted = kAllEvents);
  void add_exclusive(Waiter& waiter, Events wanted = kAllEvents);
  void remove(Waiter& waiter);  // does nothing where it is not in the queue
  bool is_empty() const { return first_.load(std::memory_order_relaxed) == nullptr; }

 private:
  void wake(Events events, bool is_one);
  void insert(Waiter& waiter, Events wanted, bool is_exclusive);

  Lock lock_{LockRank::queue};
  std::atomic<Waiter*> first_ = nullptr;  // looked at without the lock to see whether anyone waits
  Waiter* last_ = nullptr;
};

// A point on CLOCK_MONOTONIC in nanoseconds.
using Deadline = std::uint64_t;
inline constexpr Deadline kNever = ~0ULL;

// Wakes one thread.
class TaskWaiter final : public Waiter {
 public:
  explicit TaskWaiter(Task& task) : task_(&task) {}
  bool wake(Events events) override;

 private:
  Task* task_;
};

// Ends the sleep of a thread, or its next one if it does not sleep yet. Cheap where nobody sleeps.
void wake_task(Task& task);

// Threads that are woken while one of these lives start at its end. To be declared before the guard of a lock that they
// go on to take: else each of them would run into that lock at once.
class [[nodiscard]] LateWakes {
 public:
  LateWakes();
  ~LateWakes();
  LateWakes(const LateWakes&) = delete;
  LateWakes& operator=(const LateWakes&) = delete;

 private:
  friend void wake_task(Task& task);
  static constexpr std::uint32_t kMost = 16;  // further ones start at once

  std::uint32_t count_ = 0;
  std::atomic<std::uint32_t>* words_[kMost];  // in the arena, so always there, though their tasks may be gone by then
  bool is_outermost_;
};

// The outermost one of the running thread. The image and the hosted build have their own of it.
LateWakes*& late_wakes();

// The pattern for a condition:
//
//   Waiting waiting(object.queue, POLLIN);      // EINTR-able; takes a waiter of the current task
//   while (true) {
//     { LockGuard guard(object.lock); if (condition) ...; }
//     TRY_VOID(waiting.sleep(deadline));        // ETIMEDOUT, or kRestart for a signal
//   }
//
// A wake-up between the look at the condition and sleep() is not lost: sleep() returns at once then.
class [[nodiscard]] Waiting {
 public:
  explicit Waiting(WaitQueue& queue, Events wanted = kAllEvents);
  enum class Exclusive { no, yes };
  Waiting(WaitQueue& queue, Events wanted, Exclusive exclusive);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // Sleeps until the queue is woken, the deadline passes (ETIMEDOUT) or a signal that is not blocked comes (kRestart).
  // No lock may be held.
  SysResult<void> sleep(Deadline deadline = kNever);

 private:
  WaitQueue& queue_;
  TaskWaiter* waiter_;
};

// The same without a queue, for those who add waiters of their own (poll, epoll): prepare, look, sleep.
void prepare_to_sleep();
SysResult<void> sleep_until_woken(Deadline deadline);
// The same without an end by signals, which a stopped process does not act on.
void sleep_while_stopped();

}  // namespace belljar::kernel
