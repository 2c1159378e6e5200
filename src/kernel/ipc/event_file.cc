#include "kernel/ipc/event_file.h"

#include <poll.h>

#include <cstring>

#include "kernel/ipc/nameless.h"

namespace belljar::kernel {
namespace {

constexpr std::uint64_t kCountMax = UINT64_MAX - 1;

class EventFile final : public AnonymousFile {
 public:
  EventFile(std::uint64_t count, EventFileMode mode) : AnonymousFile("[eventfd]"), count_(count), mode_(mode) {}

  SysResult<std::uint64_t> read(Buffers& to, std::uint64_t*) override {
    if (to.left() < sizeof count_) return error(EINVAL);
    SysResult<std::uint64_t> taken = take();
    if (!taken && !is_nonblocking()) {
      Waiting waiting(queue_, POLLIN);
      while (true) {
        taken = take();
        if (taken) break;
        TRY_VOID(waiting.sleep());
      }
    }
    if (!taken) return taken;
    queue_.wake_all(POLLOUT | POLLWRNORM);
    TRY_VOID(to.put(&*taken, sizeof *taken));
    return sizeof *taken;
  }

  SysResult<std::uint64_t> write(Buffers& from, std::uint64_t*) override {
    std::uint64_t value = 0;
    if (from.left() < sizeof value) return error(EINVAL);
    TRY_VOID(from.take(&value, sizeof value));
    if (value == UINT64_MAX) return error(EINVAL);
    if (!add(value)) {
      if (is_nonblocking()) return error(EAGAIN);
      Waiting waiting(queue_, POLLOUT);
      while (!add(value)) TRY_VOID(waiting.sleep());
    }
    queue_.wake_all(POLLIN | POLLRDNORM);
    return sizeof value;
  }

  Events ready() override {
    LockGuard guard(lock_);
    Events events = 0;
    if (count_ != 0) events |= POLLIN | POLLRDNORM;
    if (count_ < kCountMax) events |= POLLOUT | POLLWRNORM;
    return events;
  }

  WaitQueue* queue() override { return &queue_; }

 private:
  SysResult<std::uint64_t> take() {
    LockGuard guard(lock_);
    if (count_ == 0) return error(EAGAIN);
    const std::uint64_t taken = mode_ == EventFileMode::semaphore ? 1 : count_;
    count_ -= taken;
    return taken;
  }
  bool add(std::uint64_t value) {
    LockGuard guard(lock_);
    if (kCountMax - count_ < value) return false;
    count_ += value;
    return true;
  }

  Lock lock_{LockRank::object};
  WaitQueue queue_;
  std::uint64_t count_;
  EventFileMode mode_;
};

}  // namespace

Ref<File> make_event_file(std::uint64_t count, EventFileMode mode) {
  return make_ref<EventFile>(count, mode);
}

}  // namespace belljar::kernel
