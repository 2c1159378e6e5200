// futex(2): the host's own does it, on the guest's memory, which is the host's too.
#include <errno.h>
#include <linux/futex.h>
#include <sys/time.h>

#include "kernel/arena/layout.h"
#include "kernel/host/calls.h"
#include "kernel/mm/user_memory.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/task/spin.h"
#include "kernel/time/clocks.h"

namespace belljar::kernel {
namespace {

bool is_guest_word(std::uint64_t address) {
  return address >= kGuestLowest && address < kGuestEnd && (address & 3) == 0 &&
         (address < kKernelBase || address >= kKernelEnd);
}

SyscallResult wait(const SyscallArguments& arguments, int command, int options) {
  timespec until{};
  const timespec* timeout = nullptr;
  // Made absolute, so that a wait that goes on after a signal ends when it should.
  int operation = FUTEX_WAIT_BITSET | (options & FUTEX_PRIVATE_FLAG);
  if (arguments.values[3] != 0) {
    const std::uint64_t given = TRY(to_nanoseconds(TRY(copy_in<timespec>(arguments.values[3]))));
    if (command == FUTEX_WAIT) {
      until = to_timespec(given > INT64_MAX - now_ns() ? INT64_MAX : now_ns() + given);
    } else {
      until = to_timespec(given);
      operation |= options & FUTEX_CLOCK_REALTIME;
    }
    timeout = &until;
  }
  const std::uint32_t bits = command == FUTEX_WAIT ? FUTEX_BITSET_MATCH_ANY : arguments.get<std::uint32_t>(5);
  const auto expected = arguments.get<std::uint32_t>(2);
  const auto has_changed = [&arguments, expected] {
    const auto value = copy_in<std::uint32_t>(arguments.values[0]);
    return !value || *value != expected;
  };
  Spin spin;
  spin.until(has_changed);
  while (true) {
    spin.before_sleep();
    const long result = host::futex_interruptible(reinterpret_cast<std::uint32_t*>(arguments.values[0]), operation,
                                                  expected, timeout, nullptr, bits);
    spin.after_sleep(result == -ETIMEDOUT);
    if (result >= 0) return 0ULL;
    if (result != -EINTR) return error(static_cast<int>(-result));
    if (!has_signal()) continue;
    // With a time limit a restart would begin it anew.
    return error(timeout == nullptr || command == FUTEX_WAIT_BITSET ? kRestart : kRestartNoHandler);
  }
}

// Mutexes that would lend their holder a waiter's priority: all tasks here have the same, so there is nothing to lend,
// and what is left is a lock with the holder's thread id in it.
SyscallResult lock_with_owner(std::uint64_t address, int options, bool is_try) {
  auto* const word = reinterpret_cast<std::atomic<std::uint32_t>*>(address);
  const auto own = static_cast<std::uint32_t>(current().tid);
  TRY(copy_in<std::uint32_t>(address));
  while (true) {
    std::uint32_t seen = word->load();
    if ((seen & FUTEX_TID_MASK) == own) return error(EDEADLK);
    if ((seen & FUTEX_TID_MASK) == 0) {
      if (word->compare_exchange_strong(seen, own | (seen & FUTEX_OWNER_DIED) | FUTEX_WAITERS)) return 0ULL;
      continue;
    }
    if (is_try) return error(EAGAIN);
    if ((seen & FUTEX_WAITERS) == 0 && !word->compare_exchange_strong(seen, seen | FUTEX_WAITERS)) continue;
    const long result = host::futex_interruptible(reinterpret_cast<std::uint32_t*>(address),
                                                  FUTEX_WAIT | (options & FUTEX_PRIVATE_FLAG), seen | FUTEX_WAITERS,
                                                  nullptr, nullptr, 0);
    if (result == -EINTR && has_signal()) return error(kRestart);
  }
}

SyscallResult unlock_with_owner(std::uint64_t address, int options) {
  auto* const word = reinterpret_cast<std::atomic<std::uint32_t>*>(address);
  const std::uint32_t seen = TRY(copy_in<std::uint32_t>(address));
  if ((seen & FUTEX_TID_MASK) != static_cast<std::uint32_t>(current().tid)) return error(EPERM);
  word->store(0);
  host::futex(reinterpret_cast<std::uint32_t*>(address), FUTEX_WAKE | (options & FUTEX_PRIVATE_FLAG), 1, nullptr,
              nullptr, 0);
  return 0ULL;
}

}  // namespace

SyscallResult sys_futex(const SyscallArguments& arguments) {
  const int operation = arguments.get<int>(1);
  const int command = operation & FUTEX_CMD_MASK;
  const int options = operation & (FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
  if (!is_guest_word(arguments.values[0])) return error((arguments.values[0] & 3) != 0 ? EINVAL : EFAULT);
  long result = 0;
  auto* const word = reinterpret_cast<std::uint32_t*>(arguments.values[0]);
  switch (command) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
      return wait(arguments, command, options);
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
      result = host::futex(word, command | (options & FUTEX_PRIVATE_FLAG), arguments.get<std::uint32_t>(2), nullptr,
                           nullptr, arguments.get<std::uint32_t>(5));
      break;
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
    case FUTEX_WAKE_OP:
      if (!is_guest_word(arguments.values[4])) return error(EFAULT);
      result = host::futex(word, command | (options & FUTEX_PRIVATE_FLAG), arguments.get<std::uint32_t>(2),
                           reinterpret_cast<const void*>(arguments.values[3]),
                           reinterpret_cast<std::uint32_t*>(arguments.values[4]), arguments.get<std::uint32_t>(5));
      break;
    case FUTEX_LOCK_PI:
    case FUTEX_TRYLOCK_PI:
      if (arguments.values[3] != 0) return error(ENOSYS);
      return lock_with_owner(arguments.values[0], options, command == FUTEX_TRYLOCK_PI);
    case FUTEX_UNLOCK_PI:
      return unlock_with_owner(arguments.values[0], options);
    default:
      return error(ENOSYS);
  }
  if (result < 0) return error(static_cast<int>(-result));
  return static_cast<std::uint64_t>(result);
}

SyscallResult sys_set_robust_list(const SyscallArguments& arguments) {
  if (arguments.values[1] != sizeof(robust_list_head)) return error(EINVAL);
  current().robust_list = arguments.values[0];
  current().robust_list_size = arguments.values[1];
  return 0ULL;
}

SyscallResult sys_get_robust_list(const SyscallArguments& arguments) {
  const Task& task = current();
  if (arguments.get<Pid>(0) != 0 && arguments.get<Pid>(0) != task.tid) return error(EPERM);
  TRY_VOID(copy_out(arguments.values[1], task.robust_list));
  TRY_VOID(copy_out(arguments.values[2], static_cast<std::uint64_t>(sizeof(robust_list_head))));
  return 0ULL;
}

SyscallResult sys_sched_yield(const SyscallArguments&) {
  host::sched_yield();
  return 0ULL;
}

SyscallResult sys_membarrier(const SyscallArguments& arguments) {
  constexpr int kQuery = 0;
  constexpr int kPrivate = 8;
  constexpr int kRegisterPrivate = 16;
  switch (arguments.get<int>(0)) {
    case kQuery:
      return static_cast<std::uint64_t>(kPrivate | kRegisterPrivate);
    case kPrivate:
      host::membarrier_sync_core();  // does more than it must
      return 0ULL;
    case kRegisterPrivate:
      return 0ULL;
    default:
      return error(EINVAL);
  }
}

}  // namespace belljar::kernel
