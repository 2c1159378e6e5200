#include "kernel/mm/user_memory.h"

#include <errno.h>

#include <utility>

#include "kernel/arena/heap.h"
#include "kernel/arena/layout.h"
#include "kernel/mm/user_copy.h"

namespace belljar::kernel {
namespace {

bool is_guest_range(UserAddress address, std::size_t size) {
  if (size > kGuestEnd || address < kGuestLowest || address > kGuestEnd - size) return false;
  return address + size <= kKernelBase || address >= kKernelEnd;
}

}  // namespace

SysResult<void> copy_in(void* to, UserAddress from, std::size_t size) {
  if (size == 0) return {};
  if (!is_guest_range(from, size) || user_copy(to, reinterpret_cast<const void*>(from), size) != 0)
    return error(EFAULT);
  return {};
}

SysResult<void> copy_out(UserAddress to, const void* from, std::size_t size) {
  if (size == 0) return {};
  if (!is_guest_range(to, size) || user_copy(reinterpret_cast<void*>(to), from, size) != 0) return error(EFAULT);
  return {};
}

SysResult<void> zero_out(UserAddress to, std::size_t size) {
  if (size == 0) return {};
  if (!is_guest_range(to, size) || user_zero(reinterpret_cast<void*>(to), size) != 0) return error(EFAULT);
  return {};
}

SysResult<std::size_t> copy_in_string(char* to, UserAddress from, std::size_t size) {
  if (!is_guest_range(from, 1)) return error(EFAULT);
  // Not past the end of the range that `from` lies in.
  const std::uint64_t end = from < kKernelBase ? kKernelBase : kGuestEnd;
  const std::size_t most = size < end - from ? size : end - from;
  const long length = user_string(to, reinterpret_cast<const char*>(from), most);
  if (length < 0) return error(EFAULT);
  if (static_cast<std::size_t>(length) == most) return error(most == size ? ENAMETOOLONG : EFAULT);
  return static_cast<std::size_t>(length);
}

Buffers::Buffers(std::span<const Area> areas, Kind kind) : areas_(areas), kind_(kind) {
  for (const Area& area : areas) left_ += area.size;
}

template <typename Move>
SysResult<void> Buffers::for_each_part(std::size_t size, Move move) {
  std::span<const Area> areas = areas_;
  std::uint64_t done = done_;
  std::size_t moved = 0;
  while (moved < size) {
    const Area& area = areas.front();
    if (done == area.size) {
      areas = areas.subspan(1);
      done = 0;
      continue;
    }
    const std::uint64_t here = area.size - done;
    const std::size_t part = size - moved < here ? size - moved : here;
    TRY_VOID(move(area.base + done, moved, part));
    moved += part;
    done += part;
  }
  areas_ = areas;
  done_ = done;
  left_ -= size;
  return {};
}

SysResult<void> Buffers::put(const void* from, std::size_t size) {
  return for_each_part(size, [&](std::uint64_t to, std::size_t at, std::size_t part) -> SysResult<void> {
    const char* const source = static_cast<const char*>(from) + at;
    if (kind_ == Kind::guest) return copy_out(to, source, part);
    __builtin_memcpy(reinterpret_cast<void*>(to), source, part);
    return {};
  });
}

SysResult<void> Buffers::put_zeros(std::size_t size) {
  return for_each_part(size, [&](std::uint64_t to, std::size_t, std::size_t part) -> SysResult<void> {
    if (kind_ == Kind::guest) return zero_out(to, part);
    __builtin_memset(reinterpret_cast<void*>(to), 0, part);
    return {};
  });
}

SysResult<void> Buffers::take(void* to, std::size_t size) {
  return for_each_part(size, [&](std::uint64_t from, std::size_t at, std::size_t part) -> SysResult<void> {
    char* const target = static_cast<char*>(to) + at;
    if (kind_ == Kind::guest) return copy_in(target, from, part);
    __builtin_memcpy(target, reinterpret_cast<const void*>(from), part);
    return {};
  });
}

SysResult<AreaList> AreaList::read(UserAddress vector, std::uint64_t count) {
  if (count > kAreasMax) return error(EINVAL);
  AreaList list;
  if (count > kFew) {
    list.areas_ = static_cast<Area*>(heap_allocate(count * sizeof(Area)));
    if (list.areas_ == nullptr) {
      list.areas_ = list.few_;
      return error(ENOMEM);
    }
  }
  list.count_ = count;
  TRY_VOID(copy_in(list.areas_, vector, count * sizeof(Area)));
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Area& area = list.areas_[i];
    if (area.size > INT64_MAX) return error(EINVAL);
    if (area.size > kTransferMax - total) area.size = kTransferMax - total;
    total += area.size;
  }
  return list;
}

AreaList::AreaList(AreaList&& other) noexcept : count_(other.count_) {
  if (other.areas_ == other.few_) {
    for (std::size_t i = 0; i < count_; ++i) few_[i] = other.few_[i];
  } else {
    areas_ = std::exchange(other.areas_, other.few_);
    other.count_ = 0;
  }
}

AreaList::~AreaList() {
  if (areas_ != few_) heap_free(areas_, count_ * sizeof(Area));
}

}  // namespace belljar::kernel
