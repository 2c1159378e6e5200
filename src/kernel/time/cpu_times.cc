#include "kernel/time/cpu_times.h"

#include "kernel/host/calls.h"

namespace belljar::kernel {
namespace {

// The host's CPU clocks of any process or thread (include/linux/posix-timers.h of Linux).
enum class CpuClock : int { user_and_system = 0, user = 1, precise = 2 };
constexpr int kOfThread = 4;

int clock_of(int host_id, CpuClock kind, int thread_flag) {
  return static_cast<int>(~static_cast<unsigned>(host_id) << 3) | thread_flag | static_cast<int>(kind);
}

// The clocks of user and of system time are counted by ticks, the sum precisely: it is divided as the ticks are.
CpuTimes read_times(int host_id, int thread_flag) {
  const std::uint64_t total = host::clock_ns(clock_of(host_id, CpuClock::precise, thread_flag));
  const std::uint64_t ticks = host::clock_ns(clock_of(host_id, CpuClock::user_and_system, thread_flag));
  const std::uint64_t user_ticks = host::clock_ns(clock_of(host_id, CpuClock::user, thread_flag));
  if (ticks == 0 || user_ticks >= ticks) return {total, 0};
  const auto user = static_cast<std::uint64_t>(static_cast<unsigned __int128>(total) * user_ticks / ticks);
  return {user, total - user};
}

}  // namespace

CpuTimes cpu_times_of(const Process& process) {
  // Of the zombies nobody runs; init has never run.
  if (process.state == ProcessState::zombie || process.host_pid == 0) return process.dead_threads;
  return read_times(process.host_pid, 0);
}

CpuTimes cpu_times_of(const Task& task) {
  return read_times(task.host_tid, kOfThread);
}

}  // namespace belljar::kernel
