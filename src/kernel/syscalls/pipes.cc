// pipe(2) and pipe2(2).
#include <fcntl.h>

#include "kernel/ipc/pipe.h"
#include "kernel/syscalls/syscalls.h"

namespace belljar::kernel {
namespace {

SyscallResult make_pipe_pair(UserAddress to, std::uint32_t flags) {
  if ((flags & ~static_cast<std::uint32_t>(O_CLOEXEC | O_NONBLOCK | O_DIRECT)) != 0) return error(EINVAL);
  PipePair pair = TRY(make_pipe(flags));
  const CloseOnExec close_on_exec = (flags & O_CLOEXEC) != 0 ? CloseOnExec::yes : CloseOnExec::no;
  FdTable& files = *current().files;
  int fds[2];
  fds[0] = TRY(files.add(std::move(pair.reader), close_on_exec));
  const SysResult<int> second = files.add(std::move(pair.writer), close_on_exec);
  if (!second) {
    static_cast<void>(files.close(fds[0]));
    return std::unexpected(second.error());
  }
  fds[1] = *second;
  const SysResult<void> copied = copy_out(to, fds, sizeof fds);
  if (!copied) {
    static_cast<void>(files.close(fds[0]));
    static_cast<void>(files.close(fds[1]));
    return std::unexpected(copied.error());
  }
  return 0;
}

}  // namespace

SyscallResult sys_pipe(const SyscallArguments& arguments) {
  return make_pipe_pair(arguments.get<UserAddress>(0), 0);
}

SyscallResult sys_pipe2(const SyscallArguments& arguments) {
  return make_pipe_pair(arguments.get<UserAddress>(0), arguments.get<std::uint32_t>(1));
}

}  // namespace belljar::kernel
