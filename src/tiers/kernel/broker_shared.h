// The broker's view of the memory that it shares with guests.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "kernel/broker/rings_shm.h"

namespace belljar::broker {

inline constexpr int kArenaFd = 3;
inline constexpr int kContentFd = 4;
inline constexpr int kCacheFd = 5;          // for reading
inline constexpr int kWritableCacheFd = 6;  // neither is open where there is no cache
// The exit status where the program neither ended nor was killed by a signal: init looks at shm::End then.
inline constexpr int kEndedOtherwise = 125;

class Shared {
 public:
  // False where the descriptors are not what they should be.
  bool map();
  kernel::shm::Shared& area() const { return *area_; }

  std::uint32_t end_kind() const { return area_->end.kind.load(); }
  int end_code() const { return *const_cast<const volatile std::int32_t*>(&area_->end.code); }
  // Wakes the threads that carry output, so that they see the end.
  void wake_streams() const;

 private:
  kernel::shm::Shared* area_ = nullptr;
};

// futex(2), shared between processes: sleeps while `word` is `seen`; wakes all who do.
void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen);
// Less than a second of it.
void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::milliseconds longest);
void wake(std::atomic<std::uint32_t>& word);

// Ends this process as the program did.
[[noreturn]] void end_by_signal(int signal);

}  // namespace belljar::broker
