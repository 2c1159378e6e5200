// Timers that send signals, from the calls to the firing.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <vector>

#include "kernel/base/hosted.h"
#include "kernel/syscalls/call_hosted.h"
#include "kernel/task/signals.h"
#include "kernel/time/clocks.h"
#include "kernel/time/interval_timers.h"

namespace belljar::kernel {

namespace {
std::vector<siginfo_t> sent;
Task* sent_to = nullptr;
}  // namespace

// What the hosted kernel does with signals.
void send_signal_locked(Process&, const siginfo_t& info) {
  sent.push_back(info);
}
void send_signal_to_task_locked(Task& task, const siginfo_t& info) {
  sent.push_back(info);
  sent_to = &task;
}

namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;

struct RawEvent {
  sigval value{};
  std::int32_t signal = 0, notify = 0, thread = 0, rest[11] = {};
};

struct SignalTimers : testing::Test {
  HostedKernel kernel;
  void SetUp() override {
    sent.clear();
    kernel.process().host_pid = ::getpid();
  }
  void TearDown() override {
    const LockGuard guard(tasks_lock());
    timers_at_exit(kernel.process());
  }
  static itimerval every(std::uint64_t first_us, std::uint64_t interval_us) {
    return {to_timeval(interval_us * 1000), to_timeval(first_us * 1000)};
  }
};

TEST_F(SignalTimers, AlarmComesOnceAndTellsWhatWasLeft) {
  EXPECT_EQ(call(sys_alarm, 5), 0);
  EXPECT_EQ(call(sys_alarm, 2), 5);
  const std::uint64_t now = now_ns();
  run_due_timers(now + 1'000 * kMillisecond);
  EXPECT_TRUE(sent.empty());
  EXPECT_EQ(call(sys_alarm, 0), 2);
  EXPECT_EQ(run_due_timers(now + 9'000 * kMillisecond), kNever);
  EXPECT_TRUE(sent.empty());
}

TEST_F(SignalTimers, RealIntervalsRepeat) {
  const itimerval value = every(2000, 2000);
  itimerval old{};
  EXPECT_EQ(call(sys_setitimer, ITIMER_REAL, &value, nullptr), 0);
  ::usleep(3000);
  run_due_timers(now_ns());
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].si_signo, SIGALRM);
  EXPECT_EQ(sent[0].si_code, SI_KERNEL);
  ::usleep(3000);
  const std::uint64_t next = run_due_timers(now_ns());
  EXPECT_EQ(sent.size(), 2U);
  EXPECT_LT(next, now_ns() + 2 * kMillisecond);
  EXPECT_EQ(call(sys_getitimer, ITIMER_REAL, &old), 0);
  EXPECT_EQ(old.it_interval.tv_usec, 2000);
  EXPECT_LE(old.it_value.tv_usec, 2000);
  EXPECT_EQ(call(sys_getitimer, 3, &old), -EINVAL);
}

TEST_F(SignalTimers, ProfilingCountsCpuTimeOnly) {
  const itimerval value = every(20'000, 0);
  EXPECT_EQ(call(sys_setitimer, ITIMER_PROF, &value, nullptr), 0);
  ::usleep(30'000);
  run_due_timers(now_ns());
  EXPECT_TRUE(sent.empty());
  const std::uint64_t until = *read_clock(CLOCK_PROCESS_CPUTIME_ID) + 25 * kMillisecond;
  while (*read_clock(CLOCK_PROCESS_CPUTIME_ID) < until) {
  }
  run_due_timers(now_ns() + 1'000 * kMillisecond);  // the next look is due by then
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].si_signo, SIGPROF);
}

TEST_F(SignalTimers, PosixTimersTellTheirValueAndOverruns) {
  RawEvent event;
  event.value.sival_int = 42;
  event.signal = SIGUSR1;
  int id = -1;
  EXPECT_EQ(call(sys_timer_create, CLOCK_MONOTONIC, &event, &id), 0);
  const itimerspec value{{0, 1'000'000}, {0, 1'000'000}};
  EXPECT_EQ(call(sys_timer_settime, id, 0, &value, nullptr), 0);
  ::usleep(5500);
  run_due_timers(now_ns());
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].si_code, SI_TIMER);
  EXPECT_EQ(sent[0].si_value.sival_int, 42);
  EXPECT_EQ(sent[0].si_timerid, id);
  EXPECT_GE(call(sys_timer_getoverrun, id), 3);
  EXPECT_EQ(call(sys_timer_delete, id), 0);
  EXPECT_EQ(call(sys_timer_delete, id), -EINVAL);
  ::usleep(2000);
  run_due_timers(now_ns());
  EXPECT_EQ(sent.size(), 1U);
}

TEST_F(SignalTimers, PosixTimersOfOneThread) {
  RawEvent event;
  event.signal = SIGUSR2;
  event.notify = SIGEV_SIGNAL | 4;
  event.thread = 99;
  int id = -1;
  EXPECT_EQ(call(sys_timer_create, CLOCK_REALTIME, &event, &id), -EINVAL);
  event.thread = kernel.task().tid;
  EXPECT_EQ(call(sys_timer_create, CLOCK_REALTIME, &event, &id), 0);
  const timespec now = to_timespec(*read_clock(CLOCK_REALTIME));
  const itimerspec past{{0, 0}, now};
  EXPECT_EQ(call(sys_timer_settime, id, TIMER_ABSTIME, &past, nullptr), 0);
  run_due_timers(now_ns());
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent_to, &kernel.task());
  itimerspec left{};
  EXPECT_EQ(call(sys_timer_gettime, id, &left), 0);
  EXPECT_EQ(left.it_value.tv_sec + left.it_value.tv_nsec, 0);
}

TEST_F(SignalTimers, WrongArgumentsAreRefused) {
  int id = -1;
  RawEvent event;
  event.signal = 99;
  EXPECT_EQ(call(sys_timer_create, CLOCK_MONOTONIC, &event, &id), -EINVAL);
  event.signal = SIGUSR1;
  event.notify = 77;
  EXPECT_EQ(call(sys_timer_create, CLOCK_MONOTONIC, &event, &id), -EINVAL);
  EXPECT_EQ(call(sys_timer_create, 99, nullptr, &id), -EINVAL);
  EXPECT_EQ(call(sys_timer_create, CLOCK_MONOTONIC, nullptr, &id), 0);
  const itimerspec wrong{{0, 0}, {0, 1'000'000'000}};
  EXPECT_EQ(call(sys_timer_settime, id, 0, &wrong, nullptr), -EINVAL);
  EXPECT_EQ(call(sys_timer_settime, id, 0, nullptr, nullptr), -EINVAL);
  itimerval value{{0, 0}, {0, 1'000'000}};
  EXPECT_EQ(call(sys_setitimer, ITIMER_REAL, &value, nullptr), -EINVAL);
}

TEST_F(SignalTimers, GoAtTheEndAndAtExec) {
  const std::uint64_t before = heap_bytes_used();
  int id = -1;
  EXPECT_EQ(call(sys_timer_create, CLOCK_MONOTONIC, nullptr, &id), 0);
  EXPECT_EQ(call(sys_alarm, 100), 0);
  timers_at_exec(kernel.process());
  EXPECT_EQ(call(sys_timer_delete, id), -EINVAL);
  EXPECT_EQ(call(sys_alarm, 100), 100);
  {
    const LockGuard guard(tasks_lock());
    timers_at_exit(kernel.process());
  }
  EXPECT_EQ(run_due_timers(now_ns() + 1'000'000 * kMillisecond), kNever);
  EXPECT_LE(heap_bytes_used(), before + 256);  // the root object stays
}

}  // namespace
}  // namespace belljar::kernel
