#include "kernel/arena/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <time.h>

#include "kernel/arena/lock_owner.h"
#include "kernel/host/calls.h"

namespace belljar::kernel {
namespace {

constexpr int kSpins = 100;
// How long a waiter sleeps before it looks whether the holder still lives.
constexpr timespec kPatience{0, 200'000'000};

std::uint32_t* raw(std::atomic<std::uint32_t>& word) {
  return reinterpret_cast<std::uint32_t*>(&word);
}

}  // namespace

void Lock::lock() {
  note_lock_taken(rank_);
  const std::uint32_t own = lock_owner_id();
  std::uint32_t expected = 0;
  if (word_.compare_exchange_strong(expected, own, std::memory_order_acquire)) [[likely]]
    return;
  lock_contended(own);
}

void Lock::lock_contended(std::uint32_t own) {
  for (int i = 0; i < kSpins; ++i) {
    std::uint32_t expected = 0;
    if (word_.load(std::memory_order_relaxed) == 0 &&
        word_.compare_exchange_weak(expected, own, std::memory_order_acquire)) {
      return;
    }
    __builtin_ia32_pause();
  }
  while (true) {
    std::uint32_t seen = word_.load(std::memory_order_relaxed);
    if (seen == 0) {
      if (word_.compare_exchange_weak(seen, own | kContended, std::memory_order_acquire)) return;
      continue;
    }
    if ((seen & kContended) == 0 && !word_.compare_exchange_weak(seen, seen | kContended)) continue;
    seen |= kContended;
    const long result = host::futex(raw(word_), FUTEX_WAIT, seen, &kPatience, nullptr, 0);
    if (result == -ETIMEDOUT && word_.load() == seen) check_lock_owner_lives(seen & ~kContended);
  }
}

void Lock::unlock() {
  note_lock_released(rank_);
  const std::uint32_t before = word_.exchange(0, std::memory_order_release);
  if ((before & kContended) != 0) host::futex(raw(word_), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace belljar::kernel
