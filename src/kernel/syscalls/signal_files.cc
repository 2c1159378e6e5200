// signalfd(2) and pidfds: pidfd_open(2), pidfd_send_signal(2).
#include <fcntl.h>
#include <sys/signalfd.h>

#include "kernel/ipc/pid_file.h"
#include "kernel/ipc/signal_file.h"
#include "kernel/syscalls/signal_rules.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/task/signals.h"

namespace belljar::kernel {
namespace {

SyscallResult make_signalfd(int fd, UserAddress mask, std::uint64_t size, std::uint32_t flags) {
  if ((flags & ~static_cast<std::uint32_t>(SFD_CLOEXEC | SFD_NONBLOCK)) != 0) return error(EINVAL);
  if (size != sizeof(SignalSet)) return error(EINVAL);
  const SignalSet wanted = TRY(copy_in<SignalSet>(mask)) & ~kNeverBlocked;
  if (fd == -1) return TRY(add_new_file(make_ref<SignalFile>(wanted), O_RDWR, flags));
  const Ref<File> file = TRY(current().files->get(fd));
  SignalFile* const signals = signal_file_of(*file);
  if (signals == nullptr) return error(EINVAL);
  signals->set_wanted(wanted);
  return static_cast<std::uint64_t>(fd);
}

SysResult<Ref<File>> open_process(Pid pid) {
  LockGuard guard(tasks_lock());
  Process* const process = find_process(pid);
  if (process == nullptr) return error(find_task(pid) == nullptr ? ESRCH : ENOENT);
  Ref<File> file = make_pid_file(*process);
  if (!file) return error(ENOMEM);
  return file;
}

}  // namespace

SyscallResult sys_signalfd(const SyscallArguments& arguments) {
  return make_signalfd(arguments.get<int>(0), arguments.values[1], arguments.values[2], 0);
}

SyscallResult sys_signalfd4(const SyscallArguments& arguments) {
  return make_signalfd(arguments.get<int>(0), arguments.values[1], arguments.values[2],
                       arguments.get<std::uint32_t>(3));
}

SyscallResult sys_pidfd_open(const SyscallArguments& arguments) {
  const auto pid = arguments.get<Pid>(0);
  const auto flags = arguments.get<std::uint32_t>(1);
  if ((flags & ~static_cast<std::uint32_t>(O_NONBLOCK)) != 0 || pid <= 0) return error(EINVAL);
  Ref<File> file = TRY(open_process(pid));
  return TRY(add_new_file(std::move(file), O_RDWR, flags | O_CLOEXEC));
}

SyscallResult sys_pidfd_send_signal(const SyscallArguments& arguments) {
  const auto signal = arguments.get<int>(1);
  if (arguments.values[3] != 0) return error(EINVAL);
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  Process* const process = process_of(*file);
  if (process == nullptr) return error(EBADF);
  siginfo_t info = user_signal(signal, SI_USER);
  if (arguments.values[2] != 0) {
    info = TRY(copy_in<siginfo_t>(arguments.values[2]));
    if (info.si_signo != signal) return error(EINVAL);
    const bool is_forged = info.si_code >= 0 || info.si_code == SI_TKILL;
    if (is_forged && process != &current_process()) return error(EPERM);
  }
  if (signal != 0 && !is_signal(signal)) return error(EINVAL);
  LockGuard guard(tasks_lock());
  if (find_process(process->pid) != process) return error(ESRCH);
  if (!may_signal(current().credentials, *process, signal)) return error(EPERM);
  send_signal_locked(*process, info);
  return 0;
}

}  // namespace belljar::kernel
