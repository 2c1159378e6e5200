#include "kernel/time/timers.h"

#include <linux/futex.h>

#include "kernel/arena/roots.h"
#include "kernel/host/calls.h"

namespace belljar::kernel {
namespace {

TimerState& timers() {
  return root_object(arena_roots().timers);
}

}  // namespace

Timer* TimerState::merge(Timer* one, Timer* other) {
  if (one == nullptr) return other;
  if (other == nullptr) return one;
  if (other->deadline_ < one->deadline_) std::swap(one, other);
  other->previous_ = one;
  other->next_ = one->child_;
  if (one->child_ != nullptr) one->child_->previous_ = other;
  one->child_ = other;
  return one;
}

// Merges neighbours two by two from the left, then all of them from the right: what keeps a pairing heap shallow.
Timer* TimerState::merge_children(Timer* first) {
  Timer* pairs = nullptr;  // linked by next_, the last one first
  while (first != nullptr) {
    Timer* one = first;
    Timer* other = one->next_;
    first = other == nullptr ? nullptr : other->next_;
    one->next_ = one->previous_ = nullptr;
    if (other != nullptr) other->next_ = other->previous_ = nullptr;
    one = merge(one, other);
    one->next_ = pairs;
    pairs = one;
  }
  Timer* merged = nullptr;
  while (pairs != nullptr) {
    Timer* next = pairs->next_;
    pairs->next_ = nullptr;
    merged = merge(merged, pairs);
    pairs = next;
  }
  return merged;
}

void TimerState::insert(Timer& timer) {
  first_ = merge(first_, &timer);
}

void TimerState::remove(Timer& timer) {
  if (&timer != first_) {
    Timer*& link = timer.previous_->child_ == &timer ? timer.previous_->child_ : timer.previous_->next_;
    link = timer.next_;
    if (timer.next_ != nullptr) timer.next_->previous_ = timer.previous_;
  }
  Timer* children = merge_children(timer.child_);
  first_ = &timer == first_ ? children : merge(first_, children);
  timer.child_ = timer.next_ = timer.previous_ = nullptr;
}

// The earliest timer where it is due; the list's reference is the caller's then.
Timer* TimerState::pop_due(std::uint64_t now) {
  const LockGuard guard(lock_);
  Timer* timer = first_;
  if (timer == nullptr || timer->deadline_ > now) return nullptr;
  remove(*timer);
  timer->is_armed_ = false;
  return timer;
}

std::uint64_t TimerState::run_due(std::uint64_t now) {
  while (Timer* timer = pop_due(now)) {
    timer->fire();
    timer->release();
  }
  const LockGuard guard(lock_);
  return first_ == nullptr ? kNever : first_->deadline_;
}

void Timer::arm(Deadline deadline) {
  TimerState& all = timers();
  bool is_earlier = false;
  {
    const LockGuard guard(all.lock_);
    const Deadline earliest = all.first_ == nullptr ? kNever : all.first_->deadline_;
    if (is_armed_) {
      all.remove(*this);
    } else {
      acquire();
      is_armed_ = true;
    }
    deadline_ = deadline;
    all.insert(*this);
    is_earlier = deadline < earliest;
  }
  if (!is_earlier) return;
  all.word.fetch_add(1, std::memory_order_release);
  host::futex(reinterpret_cast<std::uint32_t*>(&all.word), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

bool Timer::disarm() {
  TimerState& all = timers();
  {
    const LockGuard guard(all.lock_);
    if (!is_armed_) return false;
    all.remove(*this);
    is_armed_ = false;
  }
  release();
  return true;
}

std::uint64_t run_due_timers(std::uint64_t now) {
  return timers().run_due(now);
}

std::atomic<std::uint32_t>& timers_word() {
  return timers().word;
}

}  // namespace belljar::kernel
