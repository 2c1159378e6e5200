// dup(2), fcntl(2), flock(2), ioctl(2).
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <limits>

#include "kernel/fs/file_locks.h"
#include "kernel/ipc/pipe.h"
#include "kernel/syscalls/syscalls.h"

namespace belljar::kernel {
namespace {

constexpr std::uint64_t kEndOfFile = ~0ULL;
constexpr std::uint32_t kSettable = O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME | FASYNC;

SyscallResult duplicate(int fd, int lowest, CloseOnExec close_on_exec) {
  const std::uint64_t limit = current_process().limits[RLIMIT_NOFILE].rlim_cur;
  if (lowest < 0 || static_cast<std::uint64_t>(lowest) >= limit) return error(EINVAL);
  Ref<File> file = TRY(current().files->get_any(fd));
  return static_cast<std::uint64_t>(TRY(current().files->add(std::move(file), close_on_exec, lowest)));
}

SyscallResult duplicate_to(int fd, int to, CloseOnExec close_on_exec) {
  if (to < 0) return error(EBADF);
  Ref<File> file = TRY(current().files->get_any(fd));
  TRY_VOID(current().files->set(to, std::move(file), close_on_exec));
  return static_cast<std::uint64_t>(to);
}

std::int64_t position_of(File& file) {
  LockGuard guard(file.position_lock);
  return static_cast<std::int64_t>(file.current_position);
}

struct Range {
  std::uint64_t begin, end;
};

SysResult<Range> range_of(File& file, const struct flock& lock) {
  std::int64_t base = 0;
  switch (lock.l_whence) {
    case SEEK_SET:
      break;
    case SEEK_CUR:
      base = position_of(file);
      break;
    case SEEK_END:
      base = static_cast<std::int64_t>(file.inode()->size);
      break;
    default:
      return error(EINVAL);
  }
  std::int64_t begin = 0;
  if (__builtin_add_overflow(base, lock.l_start, &begin)) return error(EOVERFLOW);
  std::int64_t end = 0;
  if (__builtin_add_overflow(begin, lock.l_len, &end)) return error(EOVERFLOW);
  if (lock.l_len < 0) std::swap(begin, end);
  if (begin < 0) return error(EINVAL);
  return Range{static_cast<std::uint64_t>(begin), lock.l_len == 0 ? kEndOfFile : static_cast<std::uint64_t>(end)};
}

SyscallResult record_lock(File& file, int command, UserAddress address) {
  auto lock = TRY(copy_in<struct flock>(address));
  const bool is_of_file = command == F_OFD_GETLK || command == F_OFD_SETLK || command == F_OFD_SETLKW;
  const bool asks = command == F_GETLK || command == F_OFD_GETLK;
  if (is_of_file && lock.l_pid != 0) return error(EINVAL);
  if (file.inode() == nullptr) return error(EBADF);
  if (lock.l_type != F_RDLCK && lock.l_type != F_WRLCK && (lock.l_type != F_UNLCK || asks)) return error(EINVAL);
  const Range range = TRY(range_of(file, lock));
  const RecordOwner owner =
      is_of_file ? RecordOwner{0, &file} : RecordOwner{static_cast<std::uint32_t>(current_process().pid), nullptr};
  if (!asks) {
    if (lock.l_type == F_RDLCK && !file.is_readable()) return error(EBADF);
    if (lock.l_type == F_WRLCK && !file.is_writable()) return error(EBADF);
    const bool waits = command == F_SETLKW || command == F_OFD_SETLKW;
    TRY_VOID(lock_record(*file.inode(), owner, lock.l_type, range.begin, range.end,
                         waits ? RecordWait::yes : RecordWait::no));
    return 0;
  }
  const RecordLock found = find_conflict(*file.inode(), owner, lock.l_type, range.begin, range.end);
  lock.l_type = found.type;
  if (found.type != F_UNLCK) {
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(found.begin);
    lock.l_len = found.end == kEndOfFile ? 0 : static_cast<off_t>(found.end - found.begin);
    lock.l_pid = found.owner.process_id == 0 ? -1 : static_cast<pid_t>(found.owner.process_id);
  }
  TRY_VOID(copy_out(address, lock));
  return 0;
}

SyscallResult set_flags(File& file, std::uint32_t flags) {
  if ((flags & O_NOATIME) != 0 && file.inode() != nullptr && file.inode()->uid != current().credentials.fsuid) {
    return error(EPERM);
  }
  file.set_flags((file.flags() & ~kSettable) | (flags & kSettable));
  return 0;
}

SyscallResult add_seals(File& file, std::uint32_t seals) {
  constexpr std::uint32_t kKnown = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;
  if (!file.is_writable()) return error(EPERM);
  if ((seals & ~kKnown) != 0) return error(EINVAL);
  TRY_VOID(file.add_seals(seals));
  return 0;
}

SyscallResult control_pipe(File& file, int command, std::uint64_t argument) {
  Pipe* const pipe = pipe_of(file);
  if (pipe == nullptr) return error(EBADF);
  return command == F_GETPIPE_SZ ? pipe->capacity() : TRY(pipe->set_capacity(argument));
}

// What is no business of places (O_PATH).
SyscallResult control_file(File& file, int command, std::uint64_t argument) {
  switch (command) {
    case F_SETFL:
      return set_flags(file, static_cast<std::uint32_t>(argument));
    case F_GETLK:
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_GETLK:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
      return record_lock(file, command, argument);
    case F_GETPIPE_SZ:
    case F_SETPIPE_SZ:
      return control_pipe(file, command, argument);
    case F_GET_SEALS:
      return TRY(file.seals());
    case F_ADD_SEALS:
      return add_seals(file, static_cast<std::uint32_t>(argument));
    case F_GETLEASE:
      return F_UNLCK;
    // Signals for readiness (O_ASYNC) are not sent; who asks for them polls as well.
    case F_GETOWN:
    case F_SETOWN:
    case F_GETSIG:
    case F_SETSIG:
      return 0;
    default:
      return error(EINVAL);
  }
}

SyscallResult unread_bytes(File& file, UserAddress to) {
  const Inode* const inode = file.inode();
  if (inode == nullptr || !inode->is_regular()) return error(ENOTTY);
  const std::int64_t left = static_cast<std::int64_t>(inode->size) - position_of(file);
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  TRY_VOID(copy_out(to, static_cast<int>(left < 0 ? 0 : left > kMax ? kMax : left)));
  return 0;
}

}  // namespace

SyscallResult sys_dup(const SyscallArguments& arguments) {
  Ref<File> file = TRY(current().files->get_any(arguments.get<int>(0)));
  return static_cast<std::uint64_t>(TRY(current().files->add(std::move(file), CloseOnExec::no)));
}

SyscallResult sys_dup2(const SyscallArguments& arguments) {
  const int fd = arguments.get<int>(0);
  const int to = arguments.get<int>(1);
  if (fd != to) return duplicate_to(fd, to, CloseOnExec::no);
  TRY(current().files->get_any(fd));
  return static_cast<std::uint64_t>(to);
}

SyscallResult sys_dup3(const SyscallArguments& arguments) {
  const auto flags = arguments.get<std::uint32_t>(2);
  if ((flags & ~std::uint32_t{O_CLOEXEC}) != 0 || arguments.get<int>(0) == arguments.get<int>(1)) return error(EINVAL);
  return duplicate_to(arguments.get<int>(0), arguments.get<int>(1), flags != 0 ? CloseOnExec::yes : CloseOnExec::no);
}

SyscallResult sys_fcntl(const SyscallArguments& arguments) {
  const int fd = arguments.get<int>(0);
  const int command = arguments.get<int>(1);
  const auto argument = arguments.get<std::uint64_t>(2);
  FdTable& files = *current().files;
  switch (command) {
    case F_DUPFD:
      return duplicate(fd, static_cast<int>(argument), CloseOnExec::no);
    case F_DUPFD_CLOEXEC:
      return duplicate(fd, static_cast<int>(argument), CloseOnExec::yes);
    case F_GETFD:
      return TRY(files.closes_on_exec(fd)) ? FD_CLOEXEC : 0;
    case F_SETFD:
      TRY_VOID(files.set_closes_on_exec(fd, (argument & FD_CLOEXEC) != 0 ? CloseOnExec::yes : CloseOnExec::no));
      return 0;
    case F_GETFL: {
      const Ref<File> file = TRY(files.get_any(fd));
      return file->flags();
    }
    default: {
      const Ref<File> file = TRY(files.get(fd));
      return control_file(*file, command, argument);
    }
  }
}

SyscallResult sys_flock(const SyscallArguments& arguments) {
  const int operation = arguments.get<int>(1);
  const int kind = operation & ~LOCK_NB;
  if (kind != LOCK_SH && kind != LOCK_EX && kind != LOCK_UN) return error(EINVAL);
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  if (file->inode() == nullptr) return error(ENOLCK);
  TRY_VOID(flock_file(*file, operation));
  return 0;
}

SyscallResult sys_ioctl(const SyscallArguments& arguments) {
  const int fd = arguments.get<int>(0);
  const auto request = arguments.get<std::uint32_t>(1);
  const auto argument = arguments.get<std::uint64_t>(2);
  const Ref<File> file = TRY(current().files->get(fd));
  switch (request) {
    case FIOCLEX:
    case FIONCLEX:
      TRY_VOID(current().files->set_closes_on_exec(fd, request == FIOCLEX ? CloseOnExec::yes : CloseOnExec::no));
      return 0;
    case FIONBIO: {
      const bool is_on = TRY(copy_in<int>(argument)) != 0;
      file->set_flags(is_on ? file->flags() | O_NONBLOCK : file->flags() & ~std::uint32_t{O_NONBLOCK});
      return 0;
    }
    case FIOASYNC:
      return 0;
    default:
      break;
  }
  const auto answer = file->ioctl(request, argument);
  if (request == FIONREAD && !answer && answer.error() == Errno{ENOTTY}) return unread_bytes(*file, argument);
  return answer;
}

}  // namespace belljar::kernel
