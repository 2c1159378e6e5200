#include "kernel/ipc/poll.h"

#include <new>

#include "kernel/arena/heap.h"
#include "kernel/task/process.h"
#include "kernel/time/clocks.h"

namespace belljar::kernel {
namespace {

// Waiters of one thread in the queues of many files.
class PollWaiters {
 public:
  explicit PollWaiters(std::size_t count)
      : waiters_(static_cast<TaskWaiter*>(heap_allocate(count * sizeof(TaskWaiter)))), count_(count) {}
  ~PollWaiters() {
    if (waiters_ != nullptr) heap_free(waiters_, count_ * sizeof(TaskWaiter));
  }
  PollWaiters(const PollWaiters&) = delete;
  PollWaiters& operator=(const PollWaiters&) = delete;

  bool is_valid() const { return waiters_ != nullptr; }
  void add(std::size_t index, WaitQueue& queue, Events wanted) {
    queue.add(*new (&waiters_[index]) TaskWaiter(current()), wanted);
  }
  void remove(std::size_t index, WaitQueue& queue) { queue.remove(waiters_[index]); }

 private:
  TaskWaiter* waiters_;
  std::size_t count_;
};

std::uint64_t look(PolledFile* files, std::size_t count) {
  std::uint64_t ready = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (files[i].file) files[i].ready = files[i].file->ready() & files[i].wanted;
    if (files[i].ready != 0) ++ready;
  }
  return ready;
}

SysResult<std::uint64_t> sleep_until_ready(PolledFile* files, std::size_t count, Deadline deadline) {
  while (true) {
    prepare_to_sleep();
    const std::uint64_t ready = look(files, count);
    if (ready != 0) return ready;
    const SysResult<void> slept = sleep_until_woken(deadline);
    if (slept) continue;
    if (value_of(slept.error()) == ETIMEDOUT) return look(files, count);
    return error(kRestartNoHandler);
  }
}

}  // namespace

Deadline deadline_after(std::uint64_t nanoseconds) {
  if (nanoseconds == 0) return 0;
  const Deadline deadline = now_ns() + nanoseconds;
  return deadline < nanoseconds ? kNever : deadline;
}

SysResult<std::uint64_t> poll_files(PolledFile* files, std::size_t count, Deadline deadline) {
  const std::uint64_t ready = look(files, count);
  if (ready != 0 || deadline == 0) return ready;
  PollWaiters waiters(count == 0 ? 1 : count);
  if (!waiters.is_valid()) return error(ENOMEM);
  const auto queue_of = [&](std::size_t index) { return files[index].file ? files[index].file->queue() : nullptr; };
  for (std::size_t i = 0; i < count; ++i) {
    if (WaitQueue* const queue = queue_of(i)) waiters.add(i, *queue, files[i].wanted);
  }
  const SysResult<std::uint64_t> result = sleep_until_ready(files, count, deadline);
  for (std::size_t i = 0; i < count; ++i) {
    if (WaitQueue* const queue = queue_of(i)) waiters.remove(i, *queue);
  }
  return result;
}

}  // namespace belljar::kernel
