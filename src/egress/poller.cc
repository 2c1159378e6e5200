#include "egress/poller.h"

#include <fmt/format.h>
#include <time.h>

#include <array>
#include <cerrno>

#include "spec/errors.h"

namespace belljar::egress {

std::uint64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

Result<Poller> Poller::create() {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (epoll.is_open()) return Poller(std::move(epoll));
  return fail(ErrorCode::no_resources, fmt::format("can't make an epoll: {}", errno_text(errno)));
}

bool Poller::add(int fd, std::uint32_t events, Waiter* waiter, unsigned tag, Slot* slot) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(entries_.size()));
    entries_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  Entry& entry = entries_[index];
  *slot = static_cast<Slot>(entry.generation) << 32 | index;
  epoll_event event{};
  event.events = events;
  event.data.u64 = *slot;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return false;
  free_.pop_back();
  entry.waiter = waiter;
  entry.tag = tag;
  return true;
}

void Poller::change(int fd, std::uint32_t events, Slot slot) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = slot;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Poller::remove(int fd, Slot slot) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  const auto index = static_cast<std::uint32_t>(slot);
  entries_[index].waiter = nullptr;
  ++entries_[index].generation;
  free_.push_back(index);
}

bool Poller::take_turn(std::uint64_t now) {
  if (now < turn_ms_) return false;
  turn_ms_ = kNever;
  return true;
}

void Poller::run_once(int timeout_ms) {
  if (turn_ms_ != kNever) {
    const std::uint64_t now = now_ms();
    const auto left_ms = static_cast<int>(turn_ms_ > now ? turn_ms_ - now : 0);
    timeout_ms = timeout_ms < 0 ? left_ms : std::min(timeout_ms, left_ms);
  }
  std::array<epoll_event, 32> events;  // few, so that the memory that they take is looked at in between
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  for (int i = 0; i < count; ++i) {
    const Slot slot = events[static_cast<std::size_t>(i)].data.u64;
    const Entry entry = entries_[static_cast<std::uint32_t>(slot)];
    if (entry.waiter == nullptr || entry.generation != slot >> 32) continue;
    entry.waiter->wake(events[static_cast<std::size_t>(i)].events, entry.tag);
  }
}

}  // namespace belljar::egress
