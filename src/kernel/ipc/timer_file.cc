#include "kernel/ipc/timer_file.h"

#include <poll.h>

#include "kernel/time/clocks.h"

namespace belljar::kernel {

FileTimer::Setting FileTimer::set(const Setting& setting) {
  LockGuard guard(lock_);
  const Setting before = go_on();
  setting_ = setting;
  expirations_ = 0;
  is_fired_ = false;
  disarm();
  if (setting.first != kNever) arm(setting.first);
  return before;
}

FileTimer::Setting FileTimer::setting() {
  LockGuard guard(lock_);
  return go_on();
}

// Counts the intervals that passed since it fired, and sets it for the next.
FileTimer::Setting FileTimer::go_on() {
  if (!is_fired_) return setting_;
  if (setting_.interval == 0) {
    setting_.first = kNever;
    return setting_;
  }
  const std::uint64_t now = now_ns();
  if (now >= setting_.first) {
    const std::uint64_t passed = (now - setting_.first) / setting_.interval + 1;
    expirations_ += passed - 1;  // the one that fired is counted
    setting_.first += passed * setting_.interval;
  }
  is_fired_ = false;
  arm(setting_.first);
  return setting_;
}

SysResult<std::uint64_t> FileTimer::take() {
  LockGuard guard(lock_);
  if (expirations_ == 0) return error(EAGAIN);
  go_on();
  return std::exchange(expirations_, 0);
}

bool FileTimer::is_expired() {
  LockGuard guard(lock_);
  return expirations_ != 0;
}

void FileTimer::fire() {
  {
    LockGuard guard(lock_);
    // Set anew or off, just before this ran.
    if (is_fired_ || setting_.first == kNever || now_ns() < setting_.first) return;
    is_fired_ = true;
    ++expirations_;
  }
  queue.wake_all(POLLIN | POLLRDNORM);
}

SysResult<std::uint64_t> TimerFile::read(Buffers& to, std::uint64_t*) {
  if (to.left() < sizeof(std::uint64_t)) return error(EINVAL);
  SysResult<std::uint64_t> count = timer_->take();
  if (!count && !is_nonblocking()) {
    Waiting waiting(timer_->queue, POLLIN);
    while (true) {
      count = timer_->take();
      if (count) break;
      TRY_VOID(waiting.sleep());
    }
  }
  if (!count) return count;
  TRY_VOID(to.put(&*count, sizeof *count));
  return sizeof *count;
}

Events TimerFile::ready() {
  return timer_->is_expired() ? POLLIN | POLLRDNORM : 0;
}

TimerFile* timer_file_of(File& file) {
  return file.kind() == FileKind::timerfd ? &static_cast<TimerFile&>(file) : nullptr;
}

}  // namespace belljar::kernel
