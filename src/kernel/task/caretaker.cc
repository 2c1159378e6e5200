#include "kernel/task/caretaker.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include "kernel/broker/console.h"
#include "kernel/broker/console_terminal.h"
#include "kernel/broker/rings_shm.h"
#include "kernel/entry/stop.h"
#include "kernel/entry/thread_state.h"
#include "kernel/host/calls.h"
#include "kernel/host/raw.h"
#include "kernel/task/process_table.h"
#include "kernel/time/timers.h"

namespace belljar::kernel {
namespace {

constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;
// How often it looks for processes that were killed from outside.
constexpr std::uint64_t kLookInterval = 100'000'000;

std::uint32_t* word_of(std::atomic<std::uint32_t>& word) {
  return reinterpret_cast<std::uint32_t*>(&word);
}

void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::uint64_t deadline) {
  const timespec until{static_cast<time_t>(deadline / kNanosecondsPerSecond),
                       static_cast<long>(deadline % kNanosecondsPerSecond)};
  host::futex(word_of(word), FUTEX_WAIT_BITSET, seen, &until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

// Nothing inside can end a host process but itself. So one that is gone was killed for memory, or the sandbox is being
// ended.
void look_for_killed_processes(std::int32_t helper) {
  constexpr const char* kWhy = "a process was killed from outside";
  if (host::tgkill(helper, helper, 0) == -ESRCH) stop_sandbox(kWhy);
  LockGuard guard(tasks_lock());
  for (Process* process = next_process(kInitPid); process != nullptr; process = next_process(process->pid)) {
    Task* const task = process->first_task;
    if (task == nullptr || task->is_kickable.load() == 0 || process->host_pid == 0) continue;
    if (host::tgkill(process->host_pid, task->host_tid, 0) == -ESRCH && task->is_kickable.load() != 0) {
      stop_sandbox(kWhy);
    }
  }
}

// A process of its own, since it sleeps on another word. Returns its id on the host.
std::int32_t start_stream_helper() {
  constexpr std::uint64_t kHostProcess = SIGCHLD | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID;
  std::int32_t tid = 0;
  const long result = host::raw(SYS_clone, kHostProcess, 0, &tid, &tid, 0);
  if (result < 0) stop_sandbox("the host can't start a helper process");
  if (result > 0) return tid;
  thread_state().host_tid = static_cast<std::uint32_t>(tid);
  std::atomic<std::uint32_t>& bell = shared_with_broker().guest_bell;
  while (true) {
    const std::uint32_t seen = bell.load();
    wake_console_waiters();
    if (has_console_terminal()) move_console_terminal();
    host::futex(word_of(bell), FUTEX_WAIT, seen, nullptr, nullptr, 0);
  }
}

}  // namespace

void take_care() {
  const std::int32_t helper = start_stream_helper();
  while (true) {
    const std::uint32_t seen = timers_word().load();
    const std::uint64_t now = host::clock_ns(CLOCK_MONOTONIC);
    const std::uint64_t next_timer = run_due_timers(now);
    look_for_killed_processes(helper);
    sleep_on(timers_word(), seen, next_timer < now + kLookInterval ? next_timer : now + kLookInterval);
  }
}

}  // namespace belljar::kernel
