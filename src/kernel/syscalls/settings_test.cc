// Limits, scheduling, prctl, time and what the machine is.
#include <gtest/gtest.h>
#include <linux/utsname.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/times.h>

#include <cstring>

#include "kernel/base/hosted.h"
#include "kernel/syscalls/call_hosted.h"
#include "kernel/task/sandbox_facts.h"
#include "kernel/time/clocks.h"

namespace belljar::kernel {
namespace {

TEST(Limits, CanOnlyBeLowered) {
  HostedKernel kernel;
  kernel.process().limits[RLIMIT_CORE] = {10, 100};
  rlimit limit{50, 100};
  EXPECT_EQ(call(sys_setrlimit, RLIMIT_CORE, &limit), 0);
  rlimit before{};
  const rlimit lower{20, 30};
  EXPECT_EQ(call(sys_prlimit64, 0, RLIMIT_CORE, &lower, &before), 0);
  EXPECT_EQ(before.rlim_cur, 50U);
  const rlimit higher{20, 31};
  EXPECT_EQ(call(sys_prlimit64, 0, RLIMIT_CORE, &higher, nullptr), -EPERM);
  const rlimit wrong{31, 30};
  EXPECT_EQ(call(sys_prlimit64, 0, RLIMIT_CORE, &wrong, nullptr), -EINVAL);
  EXPECT_EQ(call(sys_getrlimit, RLIM_NLIMITS, &limit), -EINVAL);
  EXPECT_EQ(call(sys_getrlimit, RLIMIT_CORE, &limit), 0);
  EXPECT_EQ(limit.rlim_max, 30U);
}

TEST(Limits, UseIsTold) {
  HostedKernel kernel;
  kernel.process().dead_children = {1'500'000'000, 250'000'000};
  rusage use{};
  EXPECT_EQ(call(sys_getrusage, RUSAGE_CHILDREN, &use), 0);
  EXPECT_EQ(use.ru_utime.tv_sec, 1);
  EXPECT_EQ(use.ru_utime.tv_usec, 500'000);
  EXPECT_EQ(use.ru_stime.tv_usec, 250'000);
  EXPECT_EQ(call(sys_getrusage, 7, &use), -EINVAL);
  tms times{};
  sandbox_facts().started_ns = now_ns() - 2'000'000'000;
  EXPECT_GE(call(sys_times, &times), 200);
  EXPECT_EQ(times.tms_cutime, 150);
  EXPECT_EQ(times.tms_cstime, 25);
}

TEST(Scheduling, NicenessRisesButDoesNotFall) {
  HostedKernel kernel;
  kernel.process().limits[RLIMIT_NICE] = {0, 0};
  EXPECT_EQ(call(sys_getpriority, PRIO_PROCESS, 0), 20);
  EXPECT_EQ(call(sys_setpriority, PRIO_PROCESS, 0, 50), 0);
  EXPECT_EQ(call(sys_getpriority, PRIO_PROCESS, 0), 1);
  EXPECT_EQ(call(sys_setpriority, PRIO_PROCESS, 0, 5), -EACCES);
  kernel.process().limits[RLIMIT_NICE] = {20, 20};
  EXPECT_EQ(call(sys_setpriority, PRIO_PROCESS, 0, 0), 0);
  EXPECT_EQ(call(sys_setpriority, PRIO_PROCESS, 99, 0), -ESRCH);
  EXPECT_EQ(call(sys_getpriority, 3, 0), -EINVAL);
}

TEST(Scheduling, CpusAreThoseOfTheQuota) {
  HostedKernel kernel;
  sandbox_facts().cpu_count = 3;
  std::uint64_t set[2] = {0, 77};
  EXPECT_EQ(call(sys_sched_getaffinity, 0, sizeof set, set), 8);
  EXPECT_EQ(set[0], 7U);
  EXPECT_EQ(set[1], 77U);
  EXPECT_EQ(call(sys_sched_getaffinity, 0, 4, set), -EINVAL);
  EXPECT_EQ(call(sys_sched_getaffinity, 99, 8, set), -ESRCH);
  set[0] = 0b1010;
  EXPECT_EQ(call(sys_sched_setaffinity, 0, 8, set), 0);
  EXPECT_EQ(call(sys_sched_getaffinity, 0, 8, set), 8);
  EXPECT_EQ(set[0], 0b10U);
  set[0] = 0b1000;
  EXPECT_EQ(call(sys_sched_setaffinity, 0, 8, set), -EINVAL);
  std::uint32_t cpu = 99;
  EXPECT_EQ(call(sys_getcpu, &cpu, nullptr, nullptr), 0);
  EXPECT_LT(cpu, 3U);
}

TEST(Scheduling, RealTimeIsNotForUs) {
  HostedKernel kernel;
  sched_param parameter{};
  EXPECT_EQ(call(sys_sched_setscheduler, 0, SCHED_BATCH, &parameter), 0);
  EXPECT_EQ(call(sys_sched_getscheduler, 0), SCHED_BATCH);
  EXPECT_EQ(call(sys_sched_setscheduler, 0, SCHED_FIFO, &parameter), -EINVAL);
  parameter.sched_priority = 5;
  EXPECT_EQ(call(sys_sched_setscheduler, 0, SCHED_FIFO, &parameter), -EPERM);
  EXPECT_EQ(call(sys_sched_setscheduler, 0, SCHED_OTHER, &parameter), -EINVAL);
  EXPECT_EQ(call(sys_sched_setscheduler, 0, 77, &parameter), -EINVAL);
  EXPECT_EQ(call(sys_sched_get_priority_max, SCHED_RR), 99);
  EXPECT_EQ(call(sys_sched_get_priority_min, SCHED_OTHER), 0);
}

TEST(Prctl, NamesAreCut) {
  HostedKernel kernel;
  EXPECT_EQ(call(sys_prctl, PR_SET_NAME, "a name that is far too long"), 0);
  char name[16];
  EXPECT_EQ(call(sys_prctl, PR_GET_NAME, name), 0);
  EXPECT_STREQ(name, "a name that is ");
  EXPECT_EQ(call(sys_prctl, PR_SET_NAME, "short"), 0);
  EXPECT_STREQ(kernel.task().name, "short");
  EXPECT_EQ(call(sys_prctl, PR_SET_NAME, 8), -EFAULT);
}

TEST(Prctl, OptionsCheckTheirArguments) {
  HostedKernel kernel;
  EXPECT_EQ(call(sys_prctl, PR_SET_PDEATHSIG, 65), -EINVAL);
  EXPECT_EQ(call(sys_prctl, PR_SET_PDEATHSIG, SIGUSR1), 0);
  int signal = 0;
  EXPECT_EQ(call(sys_prctl, PR_GET_PDEATHSIG, &signal), 0);
  EXPECT_EQ(signal, SIGUSR1);
  EXPECT_EQ(call(sys_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
  EXPECT_EQ(call(sys_prctl, PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), -EINVAL);
  EXPECT_EQ(call(sys_prctl, PR_SET_DUMPABLE, 2), -EINVAL);
  EXPECT_EQ(call(sys_prctl, PR_CAPBSET_READ, 200), -EINVAL);
  EXPECT_EQ(call(sys_prctl, PR_CAPBSET_READ, 0), 0);
  EXPECT_EQ(call(sys_prctl, PR_SET_TIMERSLACK, 7), 0);
  EXPECT_EQ(call(sys_prctl, PR_GET_TIMERSLACK), 7);
  EXPECT_EQ(call(sys_prctl, PR_SET_TIMERSLACK, 0), 0);
  EXPECT_EQ(call(sys_prctl, PR_GET_TIMERSLACK), 50'000);
  EXPECT_EQ(call(sys_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME, 4096, 4096, "fine"), 0);
  EXPECT_EQ(call(sys_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME, 4096, 4096, "[not]"), -EINVAL);
  EXPECT_EQ(call(sys_prctl, 12345), -EINVAL);
}

TEST(Machine, IsThatOfTheSandbox) {
  HostedKernel kernel;
  std::strcpy(sandbox_facts().host_name, "inside");
  new_utsname names{};
  EXPECT_EQ(call(sys_uname, &names), 0);
  EXPECT_STREQ(names.sysname, "Linux");
  EXPECT_STREQ(names.nodename, "inside");
  EXPECT_STREQ(names.machine, "x86_64");
  EXPECT_EQ(call(sys_uname, 8), -EFAULT);
  sandbox_facts().memory_bytes = 512U << 20;
  struct sysinfo info{};
  EXPECT_EQ(call(sys_sysinfo, &info), 0);
  EXPECT_EQ(info.totalram * info.mem_unit, 512U << 20);
  EXPECT_LT(info.freeram, info.totalram);
}

TEST(Time, SleepsAsLongAsAsked) {
  HostedKernel kernel;
  const std::uint64_t before = now_ns();
  const timespec wanted{0, 20'000'000};
  EXPECT_EQ(call(sys_nanosleep, &wanted, nullptr), 0);
  EXPECT_EQ(call(sys_clock_nanosleep, CLOCK_REALTIME, 0, &wanted, nullptr), 0);
  const timespec until = to_timespec(now_ns() + 20'000'000);
  EXPECT_EQ(call(sys_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr), 0);
  EXPECT_GE(now_ns() - before, 60'000'000U);
  const timespec past{1, 0};
  EXPECT_EQ(call(sys_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &past, nullptr), 0);
}

TEST(Time, WrongTimesAreRefused) {
  HostedKernel kernel;
  const timespec wrong{0, 1'000'000'000};
  EXPECT_EQ(call(sys_nanosleep, &wrong, nullptr), -EINVAL);
  const timespec right{0, 1};
  EXPECT_EQ(call(sys_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, 0, &right, nullptr), -EINVAL);
  EXPECT_EQ(call(sys_clock_nanosleep, CLOCK_MONOTONIC_COARSE, 0, &right, nullptr), -EOPNOTSUPP);
  EXPECT_EQ(call(sys_clock_nanosleep, 99, 0, &right, nullptr), -EINVAL);
  timespec now{};
  EXPECT_EQ(call(sys_clock_gettime, 99, &now), -EINVAL);
  EXPECT_EQ(call(sys_clock_gettime, CLOCK_MONOTONIC, 8), -EFAULT);
  EXPECT_EQ(call(sys_clock_getres, CLOCK_MONOTONIC, &now), 0);
  EXPECT_EQ(now.tv_nsec, 1);
}

TEST(Random, FlagsAndAddressesAreChecked) {
  HostedKernel kernel;
  std::uint8_t bytes[1000] = {};
  EXPECT_EQ(call(sys_getrandom, bytes, sizeof bytes, 0), 1000);
  EXPECT_NE(std::memcmp(bytes, bytes + 500, 500), 0);
  EXPECT_EQ(call(sys_getrandom, bytes, 8, GRND_RANDOM | GRND_NONBLOCK), 8);
  EXPECT_EQ(call(sys_getrandom, bytes, 8, 0x100), -EINVAL);
  EXPECT_EQ(call(sys_getrandom, bytes, 8, GRND_RANDOM | GRND_INSECURE), -EINVAL);
  EXPECT_EQ(call(sys_getrandom, 8, 8, 0), -EFAULT);
}

}  // namespace
}  // namespace belljar::kernel
