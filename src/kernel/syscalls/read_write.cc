// read(2), write(2) and their kin, lseek(2).
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <limits>

#include "kernel/fs/watches.h"
#include "kernel/syscalls/syscalls.h"

namespace belljar::kernel {
namespace {

enum class Direction : bool { read, write };

SysResult<Ref<File>> file_for(int fd, Direction direction) {
  Ref<File> file = TRY(current().files->get(fd));
  const bool may = direction == Direction::read ? file->is_readable() : file->is_writable();
  if (!may) return error(EBADF);
  return file;
}

SyscallResult move_bytes(File& file, Buffers& buffers, std::uint64_t* position, Direction direction) {
  buffers.cut(kTransferMax);
  const auto moved = direction == Direction::read ? file.read(buffers, position) : file.write(buffers, position);
  if (moved && *moved != 0 && has_any_watch()) [[unlikely]] {
    tell_watches_of_file(file, direction == Direction::read ? IN_ACCESS : IN_MODIFY);
  }
  return moved;
}

// At the file's own offset.
SyscallResult move_here(File& file, Buffers buffers, Direction direction) {
  if (!file.is_seekable()) {
    std::uint64_t position = 0;
    return move_bytes(file, buffers, &position, direction);
  }
  LockGuard guard(file.position_lock);
  return move_bytes(file, buffers, &file.current_position, direction);
}

SyscallResult move_at(File& file, Buffers buffers, std::int64_t offset, Direction direction) {
  if (offset < 0) return error(EINVAL);
  if (!file.is_seekable()) return error(ESPIPE);
  auto position = static_cast<std::uint64_t>(offset);
  return move_bytes(file, buffers, &position, direction);
}

SyscallResult one_buffer(const SyscallArguments& arguments, Direction direction) {
  const Ref<File> file = TRY(file_for(arguments.get<int>(0), direction));
  const Area area{arguments.get<std::uint64_t>(1), arguments.get<std::uint64_t>(2)};
  return move_here(*file, Buffers::of_guest({&area, 1}), direction);
}

SyscallResult one_buffer_at(const SyscallArguments& arguments, Direction direction) {
  const Ref<File> file = TRY(file_for(arguments.get<int>(0), direction));
  const Area area{arguments.get<std::uint64_t>(1), arguments.get<std::uint64_t>(2)};
  return move_at(*file, Buffers::of_guest({&area, 1}), arguments.get<std::int64_t>(3), direction);
}

SyscallResult vector(const SyscallArguments& arguments, Direction direction) {
  const Ref<File> file = TRY(file_for(arguments.get<int>(0), direction));
  const AreaList areas = TRY(AreaList::read(arguments.get<UserAddress>(1), arguments.get<std::uint64_t>(2)));
  return move_here(*file, areas.buffers(), direction);
}

SyscallResult vector_at(const SyscallArguments& arguments, Direction direction) {
  const Ref<File> file = TRY(file_for(arguments.get<int>(0), direction));
  const AreaList areas = TRY(AreaList::read(arguments.get<UserAddress>(1), arguments.get<std::uint64_t>(2)));
  return move_at(*file, areas.buffers(), arguments.get<std::int64_t>(3), direction);
}

SyscallResult vector_with_flags(const SyscallArguments& arguments, Direction direction) {
  constexpr int kKnown = RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_APPEND;
  const int flags = arguments.get<int>(5);
  if ((flags & ~kKnown) != 0) return error(EOPNOTSUPP);
  const bool appends = (flags & RWF_APPEND) != 0 && direction == Direction::write;
  if (!appends) {
    const bool is_here = arguments.get<std::int64_t>(3) == -1;
    return is_here ? vector(arguments, direction) : vector_at(arguments, direction);
  }
  const Ref<File> file = TRY(file_for(arguments.get<int>(0), direction));
  const AreaList areas = TRY(AreaList::read(arguments.get<UserAddress>(1), arguments.get<std::uint64_t>(2)));
  const std::uint64_t end = file->is_seekable() ? TRY(file->seek_from_content(0, SEEK_END)) : 0;
  return move_at(*file, areas.buffers(), static_cast<std::int64_t>(end), direction);
}

SysResult<std::uint64_t> sought(File& file, std::int64_t offset, int whence) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t base = 0;
  switch (whence) {
    case SEEK_SET:
      break;
    case SEEK_CUR:
      base = file.current_position;
      break;
    case SEEK_END:
      base = TRY(file.seek_from_content(0, SEEK_END));
      break;
    case SEEK_DATA:
    case SEEK_HOLE:
      if (offset < 0) return error(ENXIO);
      return file.seek_from_content(static_cast<std::uint64_t>(offset), whence);
    default:
      return error(EINVAL);
  }
  const std::uint64_t result = base + static_cast<std::uint64_t>(offset);
  if (result > kMax) return error(offset > 0 ? EOVERFLOW : EINVAL);
  return result;
}

}  // namespace

SyscallResult sys_read(const SyscallArguments& arguments) {
  return one_buffer(arguments, Direction::read);
}
SyscallResult sys_write(const SyscallArguments& arguments) {
  return one_buffer(arguments, Direction::write);
}
SyscallResult sys_pread64(const SyscallArguments& arguments) {
  return one_buffer_at(arguments, Direction::read);
}
SyscallResult sys_pwrite64(const SyscallArguments& arguments) {
  return one_buffer_at(arguments, Direction::write);
}
SyscallResult sys_readv(const SyscallArguments& arguments) {
  return vector(arguments, Direction::read);
}
SyscallResult sys_writev(const SyscallArguments& arguments) {
  return vector(arguments, Direction::write);
}
SyscallResult sys_preadv(const SyscallArguments& arguments) {
  return vector_at(arguments, Direction::read);
}
SyscallResult sys_pwritev(const SyscallArguments& arguments) {
  return vector_at(arguments, Direction::write);
}
SyscallResult sys_preadv2(const SyscallArguments& arguments) {
  return vector_with_flags(arguments, Direction::read);
}
SyscallResult sys_pwritev2(const SyscallArguments& arguments) {
  return vector_with_flags(arguments, Direction::write);
}

SyscallResult sys_lseek(const SyscallArguments& arguments) {
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  if (!file->is_seekable()) return error(ESPIPE);
  LockGuard guard(file->position_lock);
  file->current_position = TRY(sought(*file, arguments.get<std::int64_t>(1), arguments.get<int>(2)));
  return file->current_position;
}

}  // namespace belljar::kernel
