#include "kernel/time/clocks.h"

#include <gtest/gtest.h>

#include "kernel/base/hosted.h"

namespace belljar::kernel {
namespace {

int errno_of(const SysResult<std::uint64_t>& result) {
  return result ? 0 : value_of(result.error());
}

TEST(Clocks, TimesAreCheckedAndCut) {
  EXPECT_EQ(*to_nanoseconds(timespec{3, 7}), 3'000'000'007U);
  EXPECT_EQ(*to_nanoseconds(timeval{3, 7}), 3'000'007'000U);
  EXPECT_EQ(errno_of(to_nanoseconds(timespec{-1, 0})), EINVAL);
  EXPECT_EQ(errno_of(to_nanoseconds(timespec{0, -1})), EINVAL);
  EXPECT_EQ(errno_of(to_nanoseconds(timespec{0, 1'000'000'000})), EINVAL);
  EXPECT_EQ(errno_of(to_nanoseconds(timeval{0, 1'000'000})), EINVAL);
  EXPECT_EQ(*to_nanoseconds(timespec{0x7fff'ffff'ffff'ffff, 0}), 0x7fff'ffff'ffff'ffffU);
  EXPECT_EQ(to_timespec(3'000'000'007).tv_nsec, 7);
  EXPECT_EQ(to_timeval(3'000'007'000).tv_usec, 7);
}

TEST(Clocks, DeadlinesAreOnTheMonotonicClock) {
  HostedKernel kernel;
  const std::uint64_t before = now_ns();
  const Deadline relative = *deadline_of(CLOCK_REALTIME, 1'000'000'000, TimeKind::relative);
  EXPECT_GE(relative, before + 1'000'000'000);
  EXPECT_LE(relative, now_ns() + 1'000'000'000);
  const std::uint64_t wall = *read_clock(CLOCK_REALTIME);
  const Deadline absolute = *deadline_of(CLOCK_REALTIME, wall + 5'000'000'000, TimeKind::absolute);
  EXPECT_NEAR(static_cast<double>(absolute), static_cast<double>(before) + 5e9, 1e9);
  // What is past already is due now, not in 500 years.
  const Deadline past = *deadline_of(CLOCK_REALTIME, 1, TimeKind::absolute);
  EXPECT_LE(past, now_ns());
  EXPECT_LT(*deadline_of(CLOCK_MONOTONIC, 0x7fff'ffff'ffff'ffff, TimeKind::relative), kNever);
  EXPECT_EQ(errno_of(deadline_of(CLOCK_PROCESS_CPUTIME_ID, 1, TimeKind::relative)), EINVAL);
  EXPECT_EQ(errno_of(deadline_of(99, 1, TimeKind::relative)), EINVAL);
}

TEST(Clocks, UnknownOnesAreRefused) {
  HostedKernel kernel;
  EXPECT_EQ(errno_of(read_clock(10)), EINVAL);  // was CLOCK_SGI_CYCLE
  EXPECT_EQ(errno_of(read_clock(12)), EINVAL);
  EXPECT_EQ(errno_of(read_clock((~123456 << 3) | 2)), EINVAL);  // no such process
  EXPECT_EQ(errno_of(read_clock((~0 << 3) | 3)), EINVAL);       // no such time
  EXPECT_GT(*read_clock(CLOCK_TAI), 0U);
}

TEST(Clocks, CpuTimeGrowsWithWork) {
  HostedKernel kernel;
  const std::uint64_t before = *read_clock(CLOCK_THREAD_CPUTIME_ID);
  const std::uint64_t until = now_ns() + 2'000'000;
  while (now_ns() < until) {
  }
  EXPECT_GT(*read_clock(CLOCK_THREAD_CPUTIME_ID), before);
}

}  // namespace
}  // namespace belljar::kernel
