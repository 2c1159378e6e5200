// epoll_create(2), epoll_ctl(2), epoll_wait(2).
#include <fcntl.h>
#include <sys/epoll.h>
#include <time.h>

#include "kernel/ipc/call_mask.h"
#include "kernel/ipc/epoll.h"
#include "kernel/ipc/poll.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/time/clocks.h"

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kExclusiveAllowed =
    EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP | static_cast<std::uint32_t>(EPOLLET) | EPOLLEXCLUSIVE;
constexpr std::uint64_t kEventsMax = INT32_MAX / sizeof(epoll_event);

SyscallResult create(std::uint32_t flags) {
  return TRY(add_new_file(make_ref<Epoll>(), O_RDWR, flags));
}

SysResult<void> check_exclusive(int operation, const File& file, std::uint32_t events) {
  if ((events & EPOLLEXCLUSIVE) == 0) return {};
  if (operation == EPOLL_CTL_MOD || file.kind() == FileKind::epoll) return error(EINVAL);
  if ((events & ~kExclusiveAllowed) != 0) return error(EINVAL);
  return {};
}

SyscallResult wait(int fd, std::uint64_t events, int count, Deadline deadline) {
  if (count <= 0 || static_cast<std::uint64_t>(count) > kEventsMax) return error(EINVAL);
  const Ref<File> file = TRY(current().files->get(fd));
  Epoll* const epoll = epoll_of(*file);
  if (epoll == nullptr) return error(EINVAL);
  return epoll->wait(events, static_cast<std::uint32_t>(count), deadline);
}

Deadline deadline_of_ms(int timeout_ms) {
  return timeout_ms < 0 ? kNever : deadline_after(static_cast<std::uint64_t>(timeout_ms) * 1'000'000);
}

SyscallResult wait_with_mask(const SyscallArguments& arguments, Deadline deadline) {
  const auto mask = arguments.get<UserAddress>(4);
  TRY_VOID(begin_call_mask(mask, arguments.values[5]));
  const SyscallResult result = wait(arguments.get<int>(0), arguments.values[1], arguments.get<int>(2), deadline);
  end_call_mask(mask, !result && value_of(result.error()) == kRestartNoHandler);
  return result;
}

}  // namespace

SyscallResult sys_epoll_create(const SyscallArguments& arguments) {
  if (arguments.get<int>(0) <= 0) return error(EINVAL);
  return create(0);
}

SyscallResult sys_epoll_create1(const SyscallArguments& arguments) {
  const auto flags = arguments.get<std::uint32_t>(0);
  if ((flags & ~static_cast<std::uint32_t>(EPOLL_CLOEXEC)) != 0) return error(EINVAL);
  return create(flags);
}

SyscallResult sys_epoll_ctl(const SyscallArguments& arguments) {
  const auto operation = arguments.get<int>(1);
  const auto fd = arguments.get<int>(2);
  epoll_event event{};
  if (operation != EPOLL_CTL_DEL) event = TRY(copy_in<epoll_event>(arguments.values[3]));
  const Ref<File> own = TRY(current().files->get(arguments.get<int>(0)));
  Ref<File> file = TRY(current().files->get(fd));
  if (file->queue() == nullptr) return error(EPERM);
  Epoll* const epoll = epoll_of(*own);
  if (epoll == nullptr || own.get() == file.get()) return error(EINVAL);
  TRY_VOID(check_exclusive(operation, *file, event.events));
  event.events |= EPOLLERR | EPOLLHUP;
  switch (operation) {
    case EPOLL_CTL_ADD:
      TRY_VOID(epoll->add(std::move(file), fd, event));
      return 0;
    case EPOLL_CTL_MOD:
      TRY_VOID(epoll->modify(*file, fd, event));
      return 0;
    case EPOLL_CTL_DEL:
      TRY_VOID(epoll->remove(*file, fd));
      return 0;
    default:
      return error(EINVAL);
  }
}

SyscallResult sys_epoll_wait(const SyscallArguments& arguments) {
  return wait(arguments.get<int>(0), arguments.values[1], arguments.get<int>(2), deadline_of_ms(arguments.get<int>(3)));
}

SyscallResult sys_epoll_pwait(const SyscallArguments& arguments) {
  return wait_with_mask(arguments, deadline_of_ms(arguments.get<int>(3)));
}

SyscallResult sys_epoll_pwait2(const SyscallArguments& arguments) {
  Deadline deadline = kNever;
  if (arguments.values[3] != 0) {
    const auto time = TRY(copy_in<timespec>(arguments.values[3]));
    deadline = deadline_after(TRY(to_nanoseconds(time)));
  }
  return wait_with_mask(arguments, deadline);
}

}  // namespace belljar::kernel
