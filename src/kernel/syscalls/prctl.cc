// prctl(2): what programs of common use ask for. An option of Linux that is not here is EINVAL, as on a kernel that was
// built without it.
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>

#include <cstring>
#include <string_view>

#include "kernel/mm/user_memory.h"
#include "kernel/syscalls/syscalls.h"

namespace belljar::kernel {
namespace {

constexpr std::uint64_t kDefaultTimerSlack = 50'000;
constexpr std::size_t kAreaNameMax = 80;  // with its NUL; of PR_SET_VMA_ANON_NAME

SyscallResult set_name(UserAddress from) {
  char name[sizeof Task::name] = {};
  const auto length = copy_in_string(name, from, sizeof name);
  // A longer name is cut.
  if (!length && value_of(length.error()) != ENAMETOOLONG) return std::unexpected(length.error());
  name[sizeof name - 1] = '\0';
  std::memcpy(current().name, name, sizeof name);
  return 0;
}

SyscallResult set_parent_death_signal(std::uint64_t signal) {
  if (signal >= NSIG) return error(EINVAL);
  const LockGuard guard(tasks_lock());
  current_process().parent_death_signal = static_cast<int>(signal);
  return 0;
}

SyscallResult set_dumpable(std::uint64_t value) {
  if (value > 1) return error(EINVAL);
  current_process().dumpable = static_cast<std::uint32_t>(value);
  return 0;
}

SyscallResult set_keep_capabilities(std::uint64_t value) {
  if (value > 1) return error(EINVAL);
  current().settings.keeps_capabilities = value != 0;
  return 0;
}

SyscallResult set_timer_slack(std::uint64_t nanoseconds) {
  current().settings.timer_slack_ns = static_cast<std::int64_t>(nanoseconds) <= 0 ? kDefaultTimerSlack : nanoseconds;
  return 0;
}

SyscallResult set_subreaper(std::uint64_t value) {
  const LockGuard guard(tasks_lock());
  current_process().is_subreaper = value != 0;
  return 0;
}

// PR_SET_VMA_ANON_NAME: the name is checked, and kept nowhere.
SyscallResult set_area_name(const SyscallArguments& arguments) {
  if (arguments.values[1] != PR_SET_VMA_ANON_NAME || arguments.values[2] % 4096 != 0) return error(EINVAL);
  if (arguments.values[4] == 0) return 0;
  char name[kAreaNameMax];
  const auto length = copy_in_string(name, arguments.get<UserAddress>(4), sizeof name);
  if (!length) return error(value_of(length.error()) == ENAMETOOLONG ? EINVAL : EFAULT);
  for (const char* character = name; *character != '\0'; ++character) {
    if (*character < ' ' || *character > '~' || std::string_view("\\`$[]").find(*character) != std::string_view::npos)
      return error(EINVAL);
  }
  return 0;
}

// PR_CAP_AMBIENT: the set is empty, and stays so.
SyscallResult ambient_capabilities(const SyscallArguments& arguments) {
  const std::uint64_t action = arguments.values[1];
  const std::uint64_t capability = arguments.values[2];
  if ((arguments.values[3] | arguments.values[4]) != 0) return error(EINVAL);
  if (action == PR_CAP_AMBIENT_CLEAR_ALL) {
    if (capability != 0) return error(EINVAL);
    return 0;
  }
  if (capability > CAP_LAST_CAP || action < PR_CAP_AMBIENT_IS_SET || action > PR_CAP_AMBIENT_LOWER)
    return error(EINVAL);
  if (action == PR_CAP_AMBIENT_RAISE) return error(EPERM);
  return 0;
}

template <typename T>
SyscallResult tell(UserAddress to, const T& value) {
  TRY_VOID(copy_out(to, value));
  return 0;
}

bool has_further(const SyscallArguments& arguments, int first) {
  for (int index = first; index < 5; ++index) {
    if (arguments.values[index] != 0) return true;
  }
  return false;
}

// The options, each with its code. `value` is the second argument of the call.
struct Option {
  int number;
  SyscallResult (*answer)(const SyscallArguments& arguments, std::uint64_t value);
};

constexpr Option kOptions[] = {
    // The process.
    {PR_SET_NAME, [](const SyscallArguments&, std::uint64_t value) { return set_name(value); }},
    {PR_GET_NAME, [](const SyscallArguments&, std::uint64_t value) { return tell(value, current().name); }},
    {PR_SET_PDEATHSIG, [](const SyscallArguments&, std::uint64_t value) { return set_parent_death_signal(value); }},
    {PR_GET_PDEATHSIG,
     [](const SyscallArguments&, std::uint64_t value) { return tell(value, current_process().parent_death_signal); }},
    {PR_SET_DUMPABLE, [](const SyscallArguments&, std::uint64_t value) { return set_dumpable(value); }},
    {PR_GET_DUMPABLE, [](const SyscallArguments&, std::uint64_t) { return SyscallResult(current_process().dumpable); }},
    {PR_SET_CHILD_SUBREAPER, [](const SyscallArguments&, std::uint64_t value) { return set_subreaper(value); }},
    {PR_GET_CHILD_SUBREAPER,
     [](const SyscallArguments&, std::uint64_t value) { return tell(value, int{current_process().is_subreaper}); }},
    {PR_GET_TID_ADDRESS,
     [](const SyscallArguments&, std::uint64_t value) { return tell(value, current().clear_child_tid); }},
    // Rights. No task has a capability, and no_new_privs is set from the start.
    {PR_SET_NO_NEW_PRIVS,
     [](const SyscallArguments& arguments, std::uint64_t value) -> SyscallResult {
       if (value != 1 || has_further(arguments, 2)) return error(EINVAL);
       return 0;
     }},
    {PR_GET_NO_NEW_PRIVS,
     [](const SyscallArguments& arguments, std::uint64_t) -> SyscallResult {
       if (has_further(arguments, 1)) return error(EINVAL);
       return 1;
     }},
    {PR_SET_KEEPCAPS, [](const SyscallArguments&, std::uint64_t value) { return set_keep_capabilities(value); }},
    {PR_GET_KEEPCAPS, [](const SyscallArguments&,
                         std::uint64_t) { return SyscallResult(current().settings.keeps_capabilities ? 1 : 0); }},
    {PR_CAPBSET_READ,
     [](const SyscallArguments&, std::uint64_t value) -> SyscallResult {
       if (value > CAP_LAST_CAP) return error(EINVAL);
       return 0;
     }},
    {PR_CAPBSET_DROP, [](const SyscallArguments&, std::uint64_t) -> SyscallResult { return error(EPERM); }},
    {PR_CAP_AMBIENT, [](const SyscallArguments& arguments, std::uint64_t) { return ambient_capabilities(arguments); }},
    {PR_GET_SECUREBITS, [](const SyscallArguments&, std::uint64_t) -> SyscallResult { return 0; }},
    {PR_SET_SECUREBITS, [](const SyscallArguments&, std::uint64_t) -> SyscallResult { return error(EPERM); }},
    {PR_GET_SECCOMP, [](const SyscallArguments&, std::uint64_t) -> SyscallResult { return 0; }},
    {PR_SET_MM, [](const SyscallArguments&, std::uint64_t) -> SyscallResult { return error(EPERM); }},
    // Time and memory.
    {PR_SET_TIMERSLACK, [](const SyscallArguments&, std::uint64_t value) { return set_timer_slack(value); }},
    {PR_GET_TIMERSLACK,
     [](const SyscallArguments&, std::uint64_t) { return SyscallResult(current().settings.timer_slack_ns); }},
    {PR_GET_TIMING, [](const SyscallArguments&, std::uint64_t) -> SyscallResult { return PR_TIMING_STATISTICAL; }},
    {PR_GET_TSC, [](const SyscallArguments&, std::uint64_t value) { return tell(value, int{PR_TSC_ENABLE}); }},
    {PR_SET_THP_DISABLE,
     [](const SyscallArguments& arguments, std::uint64_t value) -> SyscallResult {
       if (has_further(arguments, 2)) return error(EINVAL);
       current().settings.is_without_huge_pages = value != 0;
       return 0;
     }},
    {PR_GET_THP_DISABLE,
     [](const SyscallArguments& arguments, std::uint64_t) -> SyscallResult {
       if (has_further(arguments, 1)) return error(EINVAL);
       return current().settings.is_without_huge_pages ? 1 : 0;
     }},
    {PR_SET_VMA, [](const SyscallArguments& arguments, std::uint64_t) { return set_area_name(arguments); }},
};

}  // namespace

SyscallResult sys_prctl(const SyscallArguments& arguments) {
  const auto number = arguments.get<int>(0);
  for (const Option& option : kOptions) {
    if (option.number == number) return option.answer(arguments, arguments.values[1]);
  }
  return error(EINVAL);
}

}  // namespace belljar::kernel
