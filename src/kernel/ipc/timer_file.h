// timerfd_create(2).
#pragma once

#include <time.h>

#include <cstdint>

#include "kernel/ipc/nameless.h"
#include "kernel/time/timers.h"

namespace belljar::kernel {

// What the timer and its file share. The timer fires once; whoever looks then counts the intervals that have passed
// since and sets it again, so that a timer that nobody reads costs nothing.
class FileTimer final : public Timer {
 public:
  // Times in nanoseconds; `first` is a point on CLOCK_MONOTONIC, kNever: off.
  struct Setting {
    Deadline first = kNever;
    std::uint64_t interval = 0;
  };
  // The setting before.
  Setting set(const Setting& setting);
  Setting setting();
  // Expirations since the last time they were taken; EAGAIN: none.
  SysResult<std::uint64_t> take();
  bool is_expired();

  WaitQueue queue;

 protected:
  void fire() override;

 private:
  Setting go_on();

  Lock lock_{LockRank::object};
  Setting setting_;
  std::uint64_t expirations_ = 0;
  bool is_fired_ = false;  // since it was set last
};

class TimerFile final : public AnonymousFile {
 public:
  TimerFile(Ref<FileTimer> timer, clockid_t clock)
      : AnonymousFile("[timerfd]"), timer_(std::move(timer)), clock_(clock) {}
  ~TimerFile() override { timer_->disarm(); }

  FileKind kind() const override { return FileKind::timerfd; }
  SysResult<std::uint64_t> read(Buffers& to, std::uint64_t* position) override;
  Events ready() override;
  WaitQueue* queue() override { return &timer_->queue; }

  FileTimer& timer() { return *timer_; }
  clockid_t clock() const { return clock_; }

 private:
  Ref<FileTimer> timer_;
  clockid_t clock_;
};

// Null where it is another file.
TimerFile* timer_file_of(File& file);

}  // namespace belljar::kernel
