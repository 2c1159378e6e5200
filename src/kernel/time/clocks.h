// Clocks as programs name them (clock_gettime(2)), and points in time.
#pragma once

#include <sys/time.h>
#include <time.h>

#include <cstdint>

#include "kernel/base/result.h"
#include "kernel/task/wait_queue.h"

namespace belljar::kernel {

inline constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;

// CLOCK_MONOTONIC.
std::uint64_t now_ns();

// EINVAL for a time that is negative or not normalised. What is too long for 63 bits of nanoseconds is cut to them.
SysResult<std::uint64_t> to_nanoseconds(const timespec& time);
SysResult<std::uint64_t> to_nanoseconds(const timeval& time);
timespec to_timespec(std::uint64_t nanoseconds);
timeval to_timeval(std::uint64_t nanoseconds);

// EINVAL for a clock that there is not. CPU clocks of this sandbox's processes and threads (clock_getcpuclockid(3))
// too.
SysResult<std::uint64_t> read_clock(clockid_t clock);
bool is_cpu_clock(clockid_t clock);

enum class TimeKind : bool { relative, absolute };

// The point on CLOCK_MONOTONIC that `time` nanoseconds of `clock` stand for: from now, or since the clock's beginning.
// EINVAL for a CPU clock and for one that there is not.
SysResult<Deadline> deadline_of(clockid_t clock, std::uint64_t time, TimeKind kind);

}  // namespace belljar::kernel
