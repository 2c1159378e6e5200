#include "kernel/ipc/pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstring>

#include "kernel/arena/heap.h"
#include "kernel/task/process.h"

namespace belljar::kernel {
namespace {

constexpr Events kReadable = POLLIN | POLLRDNORM;
constexpr Events kWritable = POLLOUT | POLLWRNORM;

}  // namespace

void free_slot(PipeSlot& slot) {
  if (slot.page != nullptr) heap_free(slot.page, kPipePage);
  slot = {};
}

Ref<Pipe> Pipe::make() {
  Ref<Pipe> pipe = make_ref<Pipe>();
  if (!pipe) return pipe;
  pipe->slots_ = static_cast<PipeSlot*>(heap_allocate(kPipeSlotsDefault * sizeof(PipeSlot)));
  if (pipe->slots_ == nullptr) return {};
  pipe->slot_count_ = kPipeSlotsDefault;
  return pipe;
}

Pipe::~Pipe() {
  for (std::uint32_t i = 0; i < used_; ++i) free_slot(slot(i));
  if (slots_ != nullptr) heap_free(slots_, slot_count_ * sizeof(PipeSlot));
  if (spare_ != nullptr) heap_free(spare_, kPipePage);
}

char* Pipe::take_page() {
  if (spare_ != nullptr) return std::exchange(spare_, nullptr);
  return static_cast<char*>(heap_allocate(kPipePage));
}

void Pipe::give_page(char* page) {
  if (spare_ == nullptr) {
    spare_ = page;
  } else {
    heap_free(page, kPipePage);
  }
}

void Pipe::drop_first() {
  give_page(slot(0).page);
  slot(0) = {};
  first_ = (first_ + 1) % slot_count_;
  --used_;
}

SysResult<std::uint64_t> Pipe::read_some(Buffers& to) {
  std::uint64_t moved = 0;
  bool was_full = false;
  {
    LockGuard guard(lock_);
    if (used_ == 0) {
      if (ends_.writers == 0) return 0;
      return error(EAGAIN);
    }
    was_full = is_full();
    while (used_ != 0 && to.left() != 0) {
      PipeSlot& first = slot(0);
      const auto size = static_cast<std::uint32_t>(std::min<std::uint64_t>(first.size, to.left()));
      const SysResult<void> put = to.put(first.page + first.begin, size);
      if (!put) {
        if (moved == 0) return std::unexpected(put.error());
        break;
      }
      moved += size;
      first.begin += size;
      first.size -= size;
      const bool is_packet = first.is_packet;
      if (first.size == 0 || is_packet) drop_first();
      if (is_packet) break;
    }
    was_full = was_full && !is_full();
  }
  if (was_full) queue.wake_all(kWritable);
  return moved;
}

// At most a page: what fits into the last one, or a new one. 0: full.
SysResult<std::uint32_t> Pipe::write_part(Buffers& from, bool is_packet) {
  const auto size = static_cast<std::uint32_t>(std::min<std::uint64_t>(from.left(), kPipePage));
  if (!is_packet && used_ != 0) {
    PipeSlot& last = slot(used_ - 1);
    // Of a long write only the part that is no whole page joins the last one.
    const auto odd = static_cast<std::uint32_t>(from.left() % kPipePage == 0 ? size : from.left() % kPipePage);
    if (!last.is_packet && last.begin + last.size + odd <= kPipePage) {
      TRY_VOID(from.take(last.page + last.begin + last.size, odd));
      last.size += odd;
      return odd;
    }
  }
  if (is_full()) return 0U;
  char* const page = take_page();
  if (page == nullptr) return error(ENOMEM);
  const SysResult<void> taken = from.take(page, size);
  if (!taken) {
    give_page(page);
    return std::unexpected(taken.error());
  }
  slot(used_) = {.page = page, .begin = 0, .size = size, .is_packet = is_packet};
  ++used_;
  return size;
}

SysResult<std::uint64_t> Pipe::write_some(Buffers& from, bool is_packet) {
  std::uint64_t moved = 0;
  {
    LockGuard guard(lock_);
    if (ends_.readers == 0) return error(EPIPE);
    while (from.left() != 0) {
      const SysResult<std::uint32_t> part = write_part(from, is_packet);
      if (!part && moved == 0) return std::unexpected(part.error());
      if (!part || *part == 0) break;
      moved += *part;
    }
  }
  if (moved == 0) return error(EAGAIN);
  queue.wake_all(kReadable);
  return moved;
}

std::uint64_t Pipe::bytes() {
  LockGuard guard(lock_);
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < used_; ++i) sum += slot(i).size;
  return sum;
}

std::uint32_t Pipe::capacity() {
  LockGuard guard(lock_);
  return slot_count_ * kPipePage;
}

SysResult<std::uint32_t> Pipe::set_capacity(std::uint64_t bytes) {
  if (bytes > 1U << 31) return error(EINVAL);
  std::uint32_t size = kPipePage;
  while (size < bytes) size *= 2;
  const std::uint32_t count = size / kPipePage;
  if (size > kPipeBytesMax) return error(EPERM);
  auto* const slots = static_cast<PipeSlot*>(heap_allocate(count * sizeof(PipeSlot)));
  if (slots == nullptr) return error(ENOMEM);
  {
    LockGuard guard(lock_);
    if (used_ + reserved_ > count) {
      heap_free(slots, count * sizeof(PipeSlot));
      return error(EBUSY);
    }
    for (std::uint32_t i = 0; i < used_; ++i) slots[i] = slot(i);
    heap_free(slots_, slot_count_ * sizeof(PipeSlot));
    slots_ = slots;
    slot_count_ = count;
    first_ = 0;
  }
  queue.wake_all(kWritable);
  return size;
}

SysResult<PipeSlot> Pipe::take_slot(std::uint32_t size_max) {
  LockGuard guard(lock_);
  if (used_ == 0) {
    if (ends_.writers == 0) return PipeSlot{};
    return error(EAGAIN);
  }
  PipeSlot& first = slot(0);
  PipeSlot taken = first;
  if (first.size <= size_max) {
    first = {};
    first_ = (first_ + 1) % slot_count_;
    --used_;
    ++reserved_;
    return taken;
  }
  // Only a part: copied out, so that the rest stays where it is. The place that is kept is not a new one then.
  char* const page = take_page();
  if (page == nullptr) return error(ENOMEM);
  taken = {.page = page, .begin = 0, .size = size_max, .is_packet = first.is_packet};
  std::memcpy(page, first.page + first.begin, size_max);
  first.begin += size_max;
  first.size -= size_max;
  ++reserved_;
  return taken;
}

void Pipe::return_slot(PipeSlot returned) {
  LockGuard guard(lock_);
  --reserved_;
  if (used_ != 0) {
    // Taken from the front of a page that is still there: join them again.
    PipeSlot& first = slot(0);
    if (first.begin >= returned.size && used_ == slot_count_) {
      first.begin -= returned.size;
      first.size += returned.size;
      std::memcpy(first.page + first.begin, returned.page + returned.begin, returned.size);
      give_page(returned.page);
      return;
    }
  }
  first_ = (first_ + slot_count_ - 1) % slot_count_;
  slot(0) = returned;
  ++used_;
}

void Pipe::finish_taken() {
  {
    LockGuard guard(lock_);
    --reserved_;
  }
  queue.wake_all(kWritable);
}

SysResult<void> Pipe::reserve() {
  LockGuard guard(lock_);
  if (ends_.readers == 0) return error(EPIPE);
  if (is_full()) return error(EAGAIN);
  ++reserved_;
  return {};
}

void Pipe::fill_reserved(PipeSlot filled) {
  {
    LockGuard guard(lock_);
    --reserved_;
    if (filled.size != 0) {
      slot(used_) = filled;
      ++used_;
    }
  }
  if (filled.size != 0) {
    queue.wake_all(kReadable);
  } else {
    free_slot(filled);
    queue.wake_all(kWritable);
  }
}

SysResult<PipeSlot> Pipe::copy_slot(std::uint32_t index, std::uint32_t size_max) {
  LockGuard guard(lock_);
  if (index >= used_) return error(ENOENT);
  const PipeSlot& from = slot(index);
  char* const page = take_page();
  if (page == nullptr) return error(ENOMEM);
  const std::uint32_t size = std::min(from.size, size_max);
  std::memcpy(page, from.page + from.begin, size);
  return PipeSlot{.page = page, .begin = 0, .size = size, .is_packet = from.is_packet};
}

void Pipe::add_ends(bool reads, bool writes) {
  {
    LockGuard guard(lock_);
    ends_.readers += reads;
    ends_.writers += writes;
    ends_.reads_opened += reads;
    ends_.writes_opened += writes;
  }
  queue.wake_all(kAllEvents);
}

void Pipe::remove_ends(bool reads, bool writes) {
  bool is_hung_up = false;
  {
    LockGuard guard(lock_);
    ends_.readers -= reads;
    ends_.writers -= writes;
    is_hung_up = ends_.readers == 0 || ends_.writers == 0;
  }
  if (is_hung_up) queue.wake_all(kReadable | kWritable | POLLHUP | POLLERR);
}

Pipe::Ends Pipe::ends() {
  LockGuard guard(lock_);
  return ends_;
}

Events Pipe::ready(bool reads, bool writes, std::uint32_t seen_writers) {
  LockGuard guard(lock_);
  Events events = 0;
  if (reads) {
    if (used_ != 0) events |= kReadable;
    if (ends_.writers == 0 && ends_.writes_opened != seen_writers) events |= POLLHUP;
  }
  if (writes) {
    if (!is_full()) events |= kWritable;
    if (ends_.readers == 0) events |= POLLERR;
  }
  return events;
}

Pipe* pipe_of(File& file) {
  return file.kind() == FileKind::pipe ? &static_cast<PipeFile&>(file).pipe() : nullptr;
}

SysResult<PipePair> make_pipe(std::uint32_t flags) {
  Ref<Pipe> pipe = Pipe::make();
  if (!pipe) return error(ENOMEM);
  PipePair pair;
  pair.reader = make_ref<PipeFile>(pipe, O_RDONLY | (flags & O_NONBLOCK), Ref<Inode>(), Ref<Dentry>());
  pair.writer = make_ref<PipeFile>(pipe, O_WRONLY | (flags & (O_NONBLOCK | O_DIRECT)), Ref<Inode>(), Ref<Dentry>());
  if (!pair.reader || !pair.writer) return error(ENOMEM);
  return pair;
}

}  // namespace belljar::kernel
