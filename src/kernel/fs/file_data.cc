#include "kernel/fs/file_data.h"

#include <string.h>
#include <sys/mman.h>

#include <bit>

#include "kernel/arena/heap.h"
#include "kernel/arena/roots.h"
#include "kernel/host/calls.h"

namespace belljar::kernel {

// The root object of file data.
class FileDataState {
 public:
  Lock lock{LockRank::file_data};
  DataRange* free[kDataOrderMax + 1] = {};
  std::uint64_t fresh = kArenaBase + kFileDataOffset;  // nothing beyond it was ever used
  std::uint64_t warm_pages = 0;
  std::uint64_t free_count = 0;
};

namespace {

constexpr std::uint64_t kAreaEnd = kArenaBase + kFileDataOffset + kFileDataSize;
// Ranges up to this order keep their pages when they are given back, up to so many pages in all: clearing them again
// costs far less than the host's page faults.
constexpr int kWarmOrderMax = 8;
constexpr std::uint64_t kWarmPagesMax = 2048;
constexpr int kOrderStep = 4;
// A roomy range may be this large while most of the address space is free, and else this many times what is needed.
constexpr int kRoomyOrderMax = 18;
constexpr int kRoomyOrderFew = 8;

FileDataState& state() {
  return *arena_roots().file_data;
}

int order_of(std::uint64_t pages) {
  return pages <= 1 ? 0 : static_cast<int>(std::bit_width(pages - 1));
}

std::uint64_t fresh_left() {
  LockGuard guard(state().lock);
  return kAreaEnd - state().fresh;
}

void put_free(FileDataState& data, DataRange* range) {
  range->next = data.free[range->order];
  data.free[range->order] = range;
  ++data.free_count;
}

DataRange* take_free(FileDataState& data, int order) {
  LockGuard guard(data.lock);
  DataRange* const range = data.free[order];
  if (range == nullptr) return nullptr;
  data.free[order] = range->next;
  --data.free_count;
  data.warm_pages -= range->dirty_pages;
  range->next = nullptr;
  return range;
}

SysResult<DataRange*> take_order(int order) {
  if (order > kDataOrderMax) return error(EFBIG);
  FileDataState& data = state();
  if (DataRange* const range = take_free(data, order)) return range;
  DataRange* const range = make_object<DataRange>();
  if (range == nullptr) return error(ENOMEM);
  range->order = static_cast<std::uint8_t>(order);
  const std::uint64_t size = range->pages() * kPageSize;
  {
    LockGuard guard(data.lock);
    if (kAreaEnd - data.fresh >= size) {
      range->address = data.fresh;
      data.fresh += size;
    }
  }
  if (range->address != 0) return range;
  delete_object(range);
  return error(ENOSPC);
}

}  // namespace

std::uint64_t kept_ranges() {
  LockGuard guard(state().lock);
  return state().free_count;
}

SysResult<DataRange*> take_range(std::uint64_t pages) {
  const int exact = order_of(pages);
  const int generous = (exact + kOrderStep - 1) / kOrderStep * kOrderStep;
  if (generous <= kDataOrderMax) {
    const auto range = take_order(generous);
    if (range) return range;
  }
  return take_order(exact);
}

SysResult<DataRange*> take_roomy_range(std::uint64_t pages, std::uint64_t pages_max) {
  const int exact = order_of(pages);
  int order = order_of(pages_max);
  if (order > kRoomyOrderMax) order = kRoomyOrderMax;
  if (fresh_left() < kFileDataSize / 2) order = kRoomyOrderFew;
  if (order > exact) {
    const auto range = take_order(order);
    if (range) return range;
  }
  return take_order(exact);
}

void release_pages(const DataRange& range, std::uint64_t first, std::uint64_t count) {
  if (count == 0) return;
  const std::uint64_t address = range.address + first * kPageSize;
  if (host::madvise(address, count * kPageSize, MADV_REMOVE) == 0) return;
  memset(reinterpret_cast<void*>(address), 0, count * kPageSize);
}

void give_range(DataRange* range, std::uint64_t used_pages) {
  FileDataState& data = state();
  const std::uint64_t dirty = used_pages > range->dirty_pages ? used_pages : range->dirty_pages;
  if (range->order <= kWarmOrderMax) {
    LockGuard guard(data.lock);
    if (data.warm_pages + dirty <= kWarmPagesMax) {
      range->dirty_pages = static_cast<std::uint32_t>(dirty);
      data.warm_pages += dirty;
      put_free(data, range);
      return;
    }
  }
  release_pages(*range, 0, dirty);
  range->dirty_pages = 0;
  LockGuard guard(data.lock);
  put_free(data, range);
}

SysResult<void> make_file_data_state() {
  ArenaRoots& roots = arena_roots();
  if (roots.file_data == nullptr) roots.file_data = make_object<FileDataState>();
  if (roots.file_data == nullptr) return error(ENOMEM);
  return {};
}

}  // namespace belljar::kernel
