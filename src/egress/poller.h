// epoll(7) with the objects that it wakes. One thread.
#pragma once

#include <sys/epoll.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace belljar::egress {

class Waiter {
 public:
  virtual ~Waiter() = default;
  // `events` as of epoll_wait(2). `tag` tells which of the waiter's descriptors.
  virtual void wake(std::uint32_t events, unsigned tag) = 0;
};

// Registered descriptors are named by a slot, so that an event for one that was removed in the same round, or whose
// number was used again, reaches nobody.
class Poller {
 public:
  static Result<Poller> create();

  using Slot = std::uint64_t;
  // False where the kernel has no room.
  bool add(int fd, std::uint32_t events, Waiter* waiter, unsigned tag, Slot* slot);
  void change(int fd, std::uint32_t events, Slot slot);
  // Before the descriptor is closed.
  void remove(int fd, Slot slot);

  // Waits and wakes once; -1: without end.
  void run_once(int timeout_ms);

  // Whoever waits for a time says so, again each time that it is asked before: run_once() then returns by the first of
  // these times. take_turn(): it has come, and all that wait are to be asked.
  void want_turn_by(std::uint64_t time_ms) { turn_ms_ = std::min(turn_ms_, time_ms); }
  bool take_turn(std::uint64_t now);

 private:
  explicit Poller(Fd epoll) : epoll_(std::move(epoll)) {}

  struct Entry {
    Waiter* waiter = nullptr;
    unsigned tag = 0;
    std::uint32_t generation = 0;
  };
  Fd epoll_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;
  static constexpr std::uint64_t kNever = UINT64_MAX;
  std::uint64_t turn_ms_ = kNever;
};

std::uint64_t now_ms();  // CLOCK_MONOTONIC

}  // namespace belljar::egress
