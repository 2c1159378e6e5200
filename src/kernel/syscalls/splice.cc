// splice(2), tee(2), vmsplice(2): moving bytes into, out of and between pipes.
#include <fcntl.h>
#include <poll.h>

#include <algorithm>

#include "kernel/ipc/pipe.h"
#include "kernel/syscalls/syscalls.h"

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kFlags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT;

// Tries until it is not EAGAIN, or may not wait any longer.
template <typename Try>
auto wait_on(WaitQueue& queue, Events events, bool may_wait, Try try_once) -> decltype(try_once()) {
  auto result = try_once();
  if (result || value_of(result.error()) != EAGAIN || !may_wait) return result;
  Waiting waiting(queue, events);
  while (true) {
    result = try_once();
    if (result || value_of(result.error()) != EAGAIN) return result;
    TRY_VOID(waiting.sleep());
  }
}

SysResult<void> reserve(Pipe& pipe, bool may_wait) {
  SysResult<void> reserved = wait_on(pipe.queue, POLLOUT, may_wait, [&] { return pipe.reserve(); });
  if (!reserved && value_of(reserved.error()) == EPIPE) raise_signal(SIGPIPE);
  return reserved;
}

SysResult<PipeSlot> take_slot(Pipe& pipe, std::uint32_t size, bool may_wait) {
  return wait_on(pipe.queue, POLLIN, may_wait, [&] { return pipe.take_slot(size); });
}

std::uint32_t part_of(std::uint64_t left) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(left, kPipePage));
}

// What was moved counts, also where an error came after it.
SyscallResult moved_or(std::uint64_t moved, Errno code) {
  if (moved != 0) return moved;
  return std::unexpected(code);
}

// One side that is no pipe: read or written at the caller's offset, or at its own.
struct PlainFile {
  File& file;
  std::uint64_t* offset;  // null: the file's own

  SysResult<std::uint64_t> move(Buffers& buffers, bool writes) {
    if (offset != nullptr || !file.is_seekable()) return move_at(buffers, writes, offset);
    LockGuard guard(file.position_lock);
    return move_at(buffers, writes, &file.current_position);
  }

 private:
  SysResult<std::uint64_t> move_at(Buffers& buffers, bool writes, std::uint64_t* position) {
    return writes ? file.write(buffers, position) : file.read(buffers, position);
  }
};

SyscallResult pipe_to_file(Pipe& from, PlainFile to, std::uint64_t size, bool may_wait) {
  std::uint64_t moved = 0;
  while (moved < size) {
    SysResult<PipeSlot> slot = take_slot(from, part_of(size - moved), may_wait && moved == 0);
    if (!slot) return moved_or(moved, slot.error());
    if (slot->page == nullptr) break;
    const Area area{reinterpret_cast<std::uint64_t>(slot->page + slot->begin), slot->size};
    Buffers bytes = Buffers::of_kernel(area);
    const SysResult<std::uint64_t> written = to.move(bytes, true);
    const auto count = static_cast<std::uint32_t>(written.value_or(0));
    if (count < slot->size) {
      slot->begin += count;
      slot->size -= count;
      from.return_slot(*slot);
    } else {
      free_slot(*slot);
      from.finish_taken();
    }
    moved += count;
    if (!written) return moved_or(moved, written.error());
    if (count < area.size) break;
  }
  return moved;
}

SyscallResult file_to_pipe(PlainFile from, Pipe& to, std::uint64_t size, bool may_wait) {
  std::uint64_t moved = 0;
  while (moved < size) {
    // What was moved is not held back by waiting for more.
    if (moved != 0 && (from.file.ready() & (POLLIN | POLLHUP)) == 0) break;
    const SysResult<void> reserved = reserve(to, may_wait && moved == 0);
    if (!reserved) return moved_or(moved, reserved.error());
    PipeSlot slot{.page = static_cast<char*>(heap_allocate(kPipePage))};
    SysResult<std::uint64_t> count = error(ENOMEM);
    if (slot.page != nullptr) {
      const Area area{reinterpret_cast<std::uint64_t>(slot.page), part_of(size - moved)};
      Buffers bytes = Buffers::of_kernel(area);
      count = from.move(bytes, false);
    }
    slot.size = static_cast<std::uint32_t>(count.value_or(0));
    to.fill_reserved(slot);
    if (!count) return moved_or(moved, count.error());
    if (*count == 0) break;
    moved += *count;
  }
  return moved;
}

SyscallResult pipe_to_pipe(Pipe& from, Pipe& to, std::uint64_t size, bool may_wait) {
  std::uint64_t moved = 0;
  while (moved < size) {
    const SysResult<void> reserved = reserve(to, may_wait && moved == 0);
    if (!reserved) return moved_or(moved, reserved.error());
    SysResult<PipeSlot> slot = take_slot(from, part_of(size - moved), may_wait && moved == 0);
    if (!slot || slot->page == nullptr) {
      to.fill_reserved({});
      if (!slot) return moved_or(moved, slot.error());
      break;
    }
    moved += slot->size;
    to.fill_reserved(*slot);
    from.finish_taken();
  }
  return moved;
}

SyscallResult copy_slots(Pipe& from, Pipe& to, std::uint64_t size, bool may_wait) {
  std::uint64_t moved = 0;
  for (std::uint32_t index = 0; moved < size; ++index) {
    const SysResult<void> reserved = reserve(to, may_wait && moved == 0);
    if (!reserved) return moved_or(moved, reserved.error());
    const auto copy = [&]() -> SysResult<PipeSlot> {
      SysResult<PipeSlot> slot = from.copy_slot(index, part_of(size - moved));
      const bool is_end = !slot && value_of(slot.error()) == ENOENT && from.ends().writers == 0;
      if (is_end) return PipeSlot{};
      if (!slot && value_of(slot.error()) == ENOENT) return error(EAGAIN);
      return slot;
    };
    const SysResult<PipeSlot> slot = wait_on(from.queue, POLLIN, may_wait && moved == 0, copy);
    to.fill_reserved(slot ? *slot : PipeSlot{});
    if (!slot) return moved_or(moved, slot.error());
    if (slot->page == nullptr) break;
    moved += slot->size;
  }
  return moved;
}

struct Sides {
  Ref<File> from;
  Ref<File> to;
};

SysResult<Sides> get_sides(int from, int to, std::uint32_t flags) {
  if ((flags & ~kFlags) != 0) return error(EINVAL);
  Sides sides{TRY(current().files->get(from)), TRY(current().files->get(to))};
  if (!sides.from->is_readable() || !sides.to->is_writable()) return error(EBADF);
  return sides;
}

SyscallResult splice(Sides& sides, std::uint64_t* from_offset, std::uint64_t* to_offset, std::uint64_t size,
                     bool is_nonblocking) {
  Pipe* const from = pipe_of(*sides.from);
  Pipe* const to = pipe_of(*sides.to);
  if (from == nullptr && to == nullptr) return error(EINVAL);
  if ((from != nullptr && from_offset != nullptr) || (to != nullptr && to_offset != nullptr)) return error(ESPIPE);
  if (from != nullptr && to != nullptr) {
    if (from == to) return error(EINVAL);
    const bool waits = !is_nonblocking && !sides.from->is_nonblocking() && !sides.to->is_nonblocking();
    return pipe_to_pipe(*from, *to, size, waits);
  }
  File& plain = from != nullptr ? *sides.to : *sides.from;
  std::uint64_t* const offset = from != nullptr ? to_offset : from_offset;
  if (offset != nullptr && !plain.is_seekable()) return error(EINVAL);
  if (from != nullptr && (plain.flags() & O_APPEND) != 0) return error(EINVAL);
  File& pipe_file = from != nullptr ? *sides.from : *sides.to;
  const bool waits = !is_nonblocking && !pipe_file.is_nonblocking();
  return from != nullptr ? pipe_to_file(*from, {plain, offset}, size, waits)
                         : file_to_pipe({plain, offset}, *to, size, waits);
}

}  // namespace

SyscallResult sys_splice(const SyscallArguments& arguments) {
  const auto flags = arguments.get<std::uint32_t>(5);
  const UserAddress from_at = arguments.values[1];
  const UserAddress to_at = arguments.values[3];
  const std::uint64_t size = std::min(arguments.values[4], kTransferMax);
  if (size == 0) return 0;
  Sides sides = TRY(get_sides(arguments.get<int>(0), arguments.get<int>(2), flags));
  std::uint64_t from_offset = 0;
  std::uint64_t to_offset = 0;
  if (from_at != 0) TRY_VOID(copy_in(&from_offset, from_at, sizeof from_offset));
  if (to_at != 0) TRY_VOID(copy_in(&to_offset, to_at, sizeof to_offset));
  const std::uint64_t moved = TRY(splice(sides, from_at == 0 ? nullptr : &from_offset,
                                         to_at == 0 ? nullptr : &to_offset, size, (flags & SPLICE_F_NONBLOCK) != 0));
  if (from_at != 0) TRY_VOID(copy_out(from_at, from_offset));
  if (to_at != 0) TRY_VOID(copy_out(to_at, to_offset));
  return moved;
}

SyscallResult sys_tee(const SyscallArguments& arguments) {
  const auto flags = arguments.get<std::uint32_t>(3);
  Sides sides = TRY(get_sides(arguments.get<int>(0), arguments.get<int>(1), flags));
  Pipe* const from = pipe_of(*sides.from);
  Pipe* const to = pipe_of(*sides.to);
  if (from == nullptr || to == nullptr || from == to) return error(EINVAL);
  const bool waits = (flags & SPLICE_F_NONBLOCK) == 0 && !sides.from->is_nonblocking() && !sides.to->is_nonblocking();
  return copy_slots(*from, *to, std::min(arguments.values[2], kTransferMax), waits);
}

SyscallResult sys_vmsplice(const SyscallArguments& arguments) {
  const auto flags = arguments.get<std::uint32_t>(3);
  if ((flags & ~kFlags) != 0) return error(EINVAL);
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  Pipe* const pipe = pipe_of(*file);
  if (pipe == nullptr) return error(EBADF);
  const AreaList areas = TRY(AreaList::read(arguments.values[1], arguments.values[2]));
  Buffers bytes = areas.buffers();
  if (bytes.left() == 0) return 0;
  const bool may_wait = (flags & SPLICE_F_NONBLOCK) == 0 && !file->is_nonblocking();
  if (file->is_writable()) {
    const SyscallResult written =
        wait_on(pipe->queue, POLLOUT, may_wait, [&] { return pipe->write_some(bytes, false); });
    if (!written && value_of(written.error()) == EPIPE) raise_signal(SIGPIPE);
    return written;
  }
  return wait_on(pipe->queue, POLLIN, may_wait, [&] { return pipe->read_some(bytes); });
}

}  // namespace belljar::kernel
