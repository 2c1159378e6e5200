// Regular files of tmpfs: pages in a range of the arena, holes, seals.
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/memfd.h>
#include <string.h>
#include <unistd.h>

#include <bit>
#include <limits>

#include "kernel/fs/tmp_inode.h"
#include "kernel/mm/address_space.h"

namespace belljar::kernel {
namespace {

constexpr std::uint64_t kSizeMax = std::numeric_limits<std::int64_t>::max();

constexpr std::uint64_t pages_of(std::uint64_t bytes) {
  return (bytes + kPageSize - 1) / kPageSize;
}

std::uint64_t count_bits(std::uint64_t word) {
  word = word - ((word >> 1) & 0x5555'5555'5555'5555);
  word = (word & 0x3333'3333'3333'3333) + ((word >> 2) & 0x3333'3333'3333'3333);
  return (((word + (word >> 4)) & 0x0f0f'0f0f'0f0f'0f0f) * 0x0101'0101'0101'0101) >> 56;
}

// The bits of one word that lie in [first, end).
std::uint64_t mask_of(std::uint64_t word_index, std::uint64_t first, std::uint64_t end) {
  const std::uint64_t begin = word_index * 64;
  std::uint64_t mask = ~0ULL;
  if (first > begin) mask &= ~0ULL << (first - begin);
  if (end < begin + 64) mask &= ~0ULL >> (begin + 64 - end);
  return mask;
}

}  // namespace

TmpFile::~TmpFile() {
  own_space()->give_pages(blocks / 8);
  if (range_ != nullptr) give_range(range_, is_mapped_ ? range_->pages() : used_end_);
  while (retired_ != nullptr) {
    DataRange* const range = retired_;
    retired_ = range->next;
    give_range(range, range->pages());
  }
  if (bit_count_ > 64) heap_free(bits_, bit_count_ / 8);
}

void TmpFile::set_pages(std::uint64_t first, std::uint64_t end, bool value) {
  for (std::uint64_t i = first / 64; i * 64 < end; ++i) {
    const std::uint64_t mask = mask_of(i, first, end);
    bits()[i] = value ? bits()[i] | mask : bits()[i] & ~mask;
  }
}

std::uint64_t TmpFile::count_pages(std::uint64_t first, std::uint64_t end) const {
  if (end > bit_count_) end = bit_count_;
  std::uint64_t count = 0;
  for (std::uint64_t i = first / 64; i * 64 < end; ++i) count += count_bits(bits()[i] & mask_of(i, first, end));
  return count;
}

std::uint64_t TmpFile::next_page(std::uint64_t first, std::uint64_t end, bool is_there) const {
  while (first < end) {
    if (first >= bit_count_) return is_there ? end : first;
    const std::uint64_t word = is_there ? bits()[first / 64] : ~bits()[first / 64];
    const std::uint64_t rest = word >> (first % 64);
    if (rest != 0) {
      const std::uint64_t found = first + static_cast<std::uint64_t>(std::countr_zero(rest));
      return found < end ? found : end;
    }
    first = (first / 64 + 1) * 64;
  }
  return end;
}

SysResult<void> TmpFile::grow_bits(std::uint64_t pages) {
  if (pages <= bit_count_) return {};
  const std::uint64_t count = std::bit_ceil(pages);
  auto* const bits_new = static_cast<std::uint64_t*>(heap_allocate(count / 8));
  if (bits_new == nullptr) return error(ENOSPC);
  memcpy(bits_new, bits(), bit_count_ / 8);
  if (bit_count_ > 64) heap_free(bits_, bit_count_ / 8);
  bits_ = bits_new;
  bit_count_ = count;
  return {};
}

SysResult<void> TmpFile::make_room(std::uint64_t pages) {
  TRY_VOID(grow_bits(pages));
  if (range_ != nullptr && range_->pages() >= pages) return {};
  if (is_shared_) return error(ENOSPC);
  DataRange* const range = TRY(take_range(pages));
  return move_to(range);
}

SysResult<void> TmpFile::move_to(DataRange* range) {
  const std::uint64_t end = range_ == nullptr ? 0 : range_->pages();
  std::uint64_t used_end = 0;
  for (std::uint64_t page = next_page(0, end, true); page < end; page = next_page(used_end, end, true)) {
    used_end = next_page(page, end, false);
    memcpy(range->page(page), range_->page(page), (used_end - page) * kPageSize);
  }
  if (range_ != nullptr && is_mapped_) {
    range_->next = retired_;
    retired_ = range_;
    is_mapped_ = false;
  } else if (range_ != nullptr) {
    give_range(range_, used_end_);
  }
  range_ = range;
  used_end_ = used_end;
  return {};
}

std::uint64_t TmpFile::provide(std::uint64_t first, std::uint64_t end) {
  const std::uint64_t missing = end - first - count_pages(first, end);
  if (missing == 0) return end;
  TmpSpace& space = *own_space();
  std::uint64_t taken = missing;
  if (!space.take_pages(missing)) {
    taken = 0;
    std::uint64_t page = first;
    for (; page < end; ++page) {
      if (has_page(page)) continue;
      if (!space.take_pages(1)) break;
      ++taken;
    }
    end = page;
  }
  const std::uint64_t dirty_end = end < range_->dirty_pages ? end : range_->dirty_pages;
  for (std::uint64_t page = first; page < dirty_end; ++page) {
    if (!has_page(page)) memset(range_->page(page), 0, kPageSize);
  }
  set_pages(first, end, true);
  blocks += taken * 8;
  if (end > used_end_) used_end_ = end;
  return end;
}

void TmpFile::drop_pages(std::uint64_t first, std::uint64_t end) {
  if (range_ == nullptr) return;
  if (end > range_->pages()) end = range_->pages();
  if (first >= end) return;
  const std::uint64_t count = count_pages(first, end);
  if (count == 0 && !is_mapped_) return;
  if (is_mapped_ || range_->order > kKeptOrderMax) {
    release_pages(*range_, first, end - first);
  } else if (end > range_->dirty_pages) {
    range_->dirty_pages = static_cast<std::uint32_t>(end);
  }
  set_pages(first, end < bit_count_ ? end : bit_count_, false);
  blocks -= count * 8;
  own_space()->give_pages(count);
}

void TmpFile::drop_all() {
  if (range_ == nullptr) return;
  own_space()->give_pages(blocks / 8);
  blocks = 0;
  set_pages(0, bit_count_, false);
  give_range(range_, used_end_);
  range_ = nullptr;
  used_end_ = 0;
}

void TmpFile::clear_bytes(std::uint64_t begin, std::uint64_t end) {
  while (begin < end) {
    const std::uint64_t page = begin / kPageSize;
    const std::uint64_t page_end = (page + 1) * kPageSize;
    const std::uint64_t stop = end < page_end ? end : page_end;
    if (has_page(page)) memset(range_->page(page) + begin % kPageSize, 0, stop - begin);
    begin = stop;
  }
}

SysResult<void> TmpFile::reveal(std::uint64_t new_size) {
  if (!is_shared_ || new_size <= size) return {};
  const std::uint64_t whole = page_up(size);
  clear_bytes(size, new_size < whole ? new_size : whole);
  const std::uint64_t first = whole / kPageSize;
  std::uint64_t end = pages_of(new_size);
  if (end > range_->pages()) end = range_->pages();
  if (first >= end) return {};
  drop_pages(first, end);
  const std::uint64_t charged_end = end < shared_end_ ? end : shared_end_;
  if (charged_end <= first) return {};
  TRY_VOID(grow_bits(charged_end));
  if (provide(first, charged_end) == charged_end) return {};
  drop_pages(first, charged_end);
  return error(ENOSPC);
}

void TmpFile::set_size(std::uint64_t new_size) {
  const bool has_other_pages = pages_of(new_size) != pages_of(size);
  if (new_size < size && is_mapped_) is_cut = true;
  size = new_size;
  if (has_other_pages && is_cut) announce_file_sizes();
}

SysResult<void> TmpFile::resize(std::uint64_t new_size) {
  if (new_size > kSizeMax) return error(EINVAL);
  if (new_size < size) {
    if ((seals_ & F_SEAL_SHRINK) != 0) return error(EPERM);
    if (new_size == 0 && !is_mapped_) {
      drop_all();
    } else {
      clear_bytes(new_size, page_up(new_size));
      drop_pages(pages_of(new_size), pages_of(size));
    }
  } else if (new_size > size) {
    if ((seals_ & F_SEAL_GROW) != 0) return error(EPERM);
    TRY_VOID(reveal(new_size));
  }
  set_size(new_size);
  return {};
}

SysResult<std::uint64_t> TmpFile::read(Buffers& to, std::uint64_t position) {
  LockGuard guard(lock);
  if (position >= size) return 0;
  std::uint64_t count = size - position;
  if (to.left() < count) count = to.left();
  if (count == 0) return 0;
  if (access_time.seconds < modify_time.seconds ||
      (access_time.seconds == modify_time.seconds && access_time.nanoseconds <= modify_time.nanoseconds)) {
    access_time = now();
  }
  const std::uint64_t end = pages_of(position + count);
  std::uint64_t done = 0;
  while (done < count) {
    const std::uint64_t at = position + done;
    const std::uint64_t page = at / kPageSize;
    const bool is_there = has_page(page);
    const std::uint64_t run_end = next_page(page + 1, end, !is_there) * kPageSize;
    const std::uint64_t part = run_end - at < count - done ? run_end - at : count - done;
    const auto moved = is_there ? to.put(range_->page(0) + at, part) : to.put_zeros(part);
    if (!moved) {
      if (done == 0) return std::unexpected(moved.error());
      break;
    }
    done += part;
  }
  return done;
}

SysResult<std::uint64_t> TmpFile::write(Buffers& from, std::uint64_t* position, bool appends) {
  LockGuard guard(lock);
  if (appends) *position = size;
  const std::uint64_t begin = *position;
  std::uint64_t count = from.left();
  if (count == 0) return 0;
  if (begin >= kSizeMax) return error(EFBIG);
  if (count > kSizeMax - begin) count = kSizeMax - begin;
  if ((seals_ & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0) return error(EPERM);
  if ((seals_ & F_SEAL_GROW) != 0 && begin + count > size) {
    if (begin >= size) return error(EPERM);
    count = size - begin;
  }
  TRY_VOID(make_room(pages_of(begin + count)));
  if (begin + count > size) TRY_VOID(reveal(begin + count));
  const std::uint64_t there = provide(begin / kPageSize, pages_of(begin + count)) * kPageSize;
  if (there <= begin) return error(ENOSPC);
  if (count > there - begin) count = there - begin;
  const auto moved = from.take(range_->page(0) + begin, count);
  if (!moved) {
    if (begin + count > size) clear_bytes(begin > size ? begin : size, begin + count);
    return std::unexpected(moved.error());
  }
  *position = begin + count;
  if (*position > size) set_size(*position);
  drop_set_ids();
  touch_modify();
  return count;
}

SysResult<MapSource> TmpFile::map(std::uint64_t offset, std::uint64_t map_size, bool is_shared, bool may_write) {
  LockGuard guard(lock);
  if (is_shared && may_write && (seals_ & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0) may_write = false;
  const std::uint64_t end = pages_of(offset + map_size);
  const std::uint64_t pages = end > pages_of(size) ? end : pages_of(size);
  TRY_VOID(grow_bits(pages));
  if (is_shared && !is_shared_) {
    DataRange* const roomy = TRY(take_roomy_range(pages, own_space()->space().blocks));
    TRY_VOID(move_to(roomy));
    is_shared_ = true;
  }
  TRY_VOID(make_room(pages));
  TRY_VOID(open_to_maps(offset / kPageSize, end, is_shared && may_write));
  MapSource source;
  source.kind = MapSource::Kind::arena;
  source.offset = range_->arena_offset() + offset;
  source.may_write_shared = may_write;
  return source;
}

SysResult<void> TmpFile::open_to_maps(std::uint64_t first, std::uint64_t end, bool may_write_shared) {
  for (std::uint64_t page = 0; page < range_->dirty_pages; ++page) {
    if (!has_page(page)) memset(range_->page(page), 0, kPageSize);
  }
  range_->dirty_pages = 0;
  is_mapped_ = true;
  if (!may_write_shared) return {};
  const std::uint64_t charged_end = end < pages_of(size) ? end : pages_of(size);
  if (first < charged_end && provide(first, charged_end) != charged_end) return error(ENOMEM);
  if (end > shared_end_) shared_end_ = end;
  return {};
}

SysResult<void> TmpFile::extend_map(std::uint64_t map_end, bool is_shared) {
  LockGuard guard(lock);
  const std::uint64_t end = pages_of(map_end);
  // An earlier range may be the one that is mapped.
  if (range_ == nullptr || !is_mapped_ || retired_ != nullptr || range_->pages() < end) return error(ENOMEM);
  TRY_VOID(grow_bits(end));
  return open_to_maps(0, end, is_shared && shared_end_ != 0);
}

SysResult<std::uint64_t> TmpFile::seek(std::uint64_t offset, int whence) {
  LockGuard guard(lock);
  if (whence == SEEK_END) return size;
  if (offset >= size) return error(ENXIO);
  const std::uint64_t end = pages_of(size);
  const bool wants_data = whence == SEEK_DATA;
  const std::uint64_t page = next_page(offset / kPageSize, end, wants_data);
  if (page == end) {
    if (wants_data) return error(ENXIO);
    return size;
  }
  const std::uint64_t found = page * kPageSize;
  return found > offset ? found : offset;
}

SysResult<void> TmpFile::punch(std::uint64_t begin, std::uint64_t end) {
  if ((seals_ & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0) return error(EPERM);
  if (end > page_up(size)) end = page_up(size);
  if (begin >= end) return {};
  const std::uint64_t whole_begin = page_up(begin);
  const std::uint64_t whole_end = page_down(end);
  if (whole_begin >= whole_end) {
    clear_bytes(begin, end);
  } else {
    clear_bytes(begin, whole_begin);
    clear_bytes(whole_end, end);
    drop_pages(whole_begin / kPageSize, whole_end / kPageSize);
  }
  touch_modify();
  return {};
}

SysResult<void> TmpFile::allocate(int how, std::uint64_t offset, std::uint64_t count) {
  LockGuard guard(lock);
  if (how == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)) return punch(offset, offset + count);
  if ((how & ~FALLOC_FL_KEEP_SIZE) != 0) return error(EOPNOTSUPP);
  const std::uint64_t end = offset + count;
  if ((seals_ & F_SEAL_GROW) != 0 && end > size) return error(EPERM);
  const std::uint64_t first = offset / kPageSize;
  const std::uint64_t missing = pages_of(end) - first - count_pages(first, pages_of(end));
  if (own_space()->space().blocks_free < missing) return error(ENOSPC);
  TRY_VOID(make_room(pages_of(end)));
  if (end > size) TRY_VOID(reveal(end));
  if (provide(first, pages_of(end)) != pages_of(end)) return error(ENOSPC);
  if (how == 0 && end > size) set_size(end);
  touch_change();
  return {};
}

std::uint32_t TmpFile::seals() {
  LockGuard guard(lock);
  return seals_;
}

SysResult<void> TmpFile::add_seals(std::uint32_t seals, bool is_mapped) {
  LockGuard guard(lock);
  if ((seals_ & F_SEAL_SEAL) != 0) return error(EPERM);
  if ((seals & F_SEAL_WRITE) != 0 && shared_end_ != 0 && is_mapped) return error(EBUSY);
  seals_ |= seals;
  return {};
}

}  // namespace belljar::kernel
