#include "tiers/kernel/broker_shared.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace belljar::broker {

bool Shared::map() {
  void* const mapped =
      ::mmap(nullptr, kernel::kRingsSize, PROT_READ | PROT_WRITE, MAP_SHARED, kArenaFd, kernel::kRingsOffset);
  if (mapped == MAP_FAILED) return false;
  area_ = static_cast<kernel::shm::Shared*>(mapped);
  return true;
}

void Shared::wake_streams() const {
  for (kernel::shm::Stream& stream : area_->streams) wake(stream.written);
}

void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, nullptr, nullptr, 0);
}

void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::milliseconds longest) {
  const timespec limit{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(longest).count()};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void wake(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void end_by_signal(int signal) {
  if (signal > 0 && signal < NSIG) {
    ::signal(signal, SIG_DFL);
    sigset_t one;
    ::sigemptyset(&one);
    ::sigaddset(&one, signal);
    ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
    ::kill(::getpid(), signal);
  }
  ::_exit(kEndedOtherwise);
}

}  // namespace belljar::broker
