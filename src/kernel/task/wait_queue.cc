#include "kernel/task/wait_queue.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <time.h>

#include "kernel/arena/heap.h"
#include "kernel/host/calls.h"
#include "kernel/task/process.h"
#include "kernel/task/spin.h"

namespace belljar::kernel {
namespace {

constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;

std::uint32_t* raw(std::atomic<std::uint32_t>& word) {
  return reinterpret_cast<std::uint32_t*>(&word);
}

}  // namespace

void WaitQueue::insert(Waiter& waiter, Events wanted, bool is_exclusive) {
  LockGuard guard(lock_);
  waiter.queue_ = this;
  waiter.wanted_ = wanted | POLLERR | POLLHUP;
  waiter.is_exclusive_ = is_exclusive;
  waiter.next_ = nullptr;
  waiter.previous_ = last_;
  if (last_ == nullptr) {
    first_.store(&waiter, std::memory_order_relaxed);
  } else {
    last_->next_ = &waiter;
  }
  last_ = &waiter;
}

void WaitQueue::add(Waiter& waiter, Events wanted) {
  insert(waiter, wanted, false);
}

void WaitQueue::add_exclusive(Waiter& waiter, Events wanted) {
  insert(waiter, wanted, true);
}

void WaitQueue::remove(Waiter& waiter) {
  LockGuard guard(lock_);
  if (waiter.queue_ != this) return;
  if (waiter.previous_ == nullptr) {
    first_.store(waiter.next_, std::memory_order_relaxed);
  } else {
    waiter.previous_->next_ = waiter.next_;
  }
  (waiter.next_ == nullptr ? last_ : waiter.next_->previous_) = waiter.previous_;
  waiter.queue_ = nullptr;
}

void WaitQueue::wake_all(Events events) {
  wake(events, false);
}

void WaitQueue::wake_one(Events events) {
  wake(events, true);
}

void WaitQueue::wake(Events events, bool is_one) {
  if (is_empty()) return;  // whoever adds itself looks at the condition after that
  const LateWakes late;
  LockGuard guard(lock_);
  bool is_done = false;
  for (Waiter* waiter = first_; waiter != nullptr;) {
    Waiter* const next = waiter->next_;
    if ((waiter->wanted_ & events) != 0 && !(is_one && waiter->is_exclusive_ && is_done)) {
      const bool took = waiter->wake(events);
      is_done = is_done || (took && waiter->is_exclusive_);
    }
    waiter = next;
  }
}

bool TaskWaiter::wake(Events) {
  wake_task(*task_);
  return true;
}

void wake_task(Task& task) {
  if (task.wake_word.exchange(1) != 0 || task.is_sleeping.load() == 0) return;
  LateWakes* const late = late_wakes();
  if (late != nullptr && late->count_ != LateWakes::kMost) {
    late->words_[late->count_++] = &task.wake_word;
  } else {
    host::futex(raw(task.wake_word), FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
}

LateWakes::LateWakes() : is_outermost_(late_wakes() == nullptr) {
  if (is_outermost_) late_wakes() = this;
}

LateWakes::~LateWakes() {
  if (!is_outermost_) return;
  late_wakes() = nullptr;
  for (std::uint32_t i = 0; i < count_; ++i) host::futex(raw(*words_[i]), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

Waiting::Waiting(WaitQueue& queue, Events wanted) : Waiting(queue, wanted, Exclusive::no) {}

Waiting::Waiting(WaitQueue& queue, Events wanted, Exclusive exclusive)
    : queue_(queue), waiter_(make_object<TaskWaiter>(current())) {
  prepare_to_sleep();
  if (waiter_ == nullptr) return;
  if (exclusive == Exclusive::yes) {
    queue_.add_exclusive(*waiter_, wanted);
  } else {
    queue_.add(*waiter_, wanted);
  }
}

Waiting::~Waiting() {
  if (waiter_ == nullptr) return;
  queue_.remove(*waiter_);
  delete_object(waiter_);
}

SysResult<void> Waiting::sleep(Deadline deadline) {
  if (waiter_ == nullptr) return error(ENOMEM);
  return sleep_until_woken(deadline);
}

void prepare_to_sleep() {
  current().wake_word.store(0);
}

void sleep_while_stopped() {
  Task& task = current();
  task.is_sleeping.store(1);
  while (task.wake_word.load() == 0) host::futex(raw(task.wake_word), FUTEX_WAIT, 0, nullptr, nullptr, 0);
  task.is_sleeping.store(0);
}

SysResult<void> sleep_until_woken(Deadline deadline) {
  Task& task = current();
  const timespec until{static_cast<time_t>(deadline / kNanosecondsPerSecond),
                       static_cast<long>(deadline % kNanosecondsPerSecond)};
  const timespec* const timeout = deadline == kNever ? nullptr : &until;
  Spin spin;
  spin.until([&task] { return task.wake_word.load() != 0; });
  while (task.wake_word.load() == 0) {
    if (has_signal()) return error(kRestart);
    spin.before_sleep();
    task.is_sleeping.store(1);
    const long result =
        host::futex_interruptible(raw(task.wake_word), FUTEX_WAIT_BITSET, 0, timeout, nullptr, FUTEX_BITSET_MATCH_ANY);
    task.is_sleeping.store(0);
    spin.after_sleep(result == -ETIMEDOUT);
    if (result == -ETIMEDOUT) return error(ETIMEDOUT);
  }
  task.wake_word.store(0);
  return {};
}

}  // namespace belljar::kernel
