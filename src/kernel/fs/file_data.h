// Ranges of the arena that hold contents of files: contiguous, of a power of two of pages.
#pragma once

#include <cstdint>

#include "kernel/arena/layout.h"
#include "kernel/base/result.h"

namespace belljar::kernel {

struct DataRange {
  DataRange* next = nullptr;  // of a list that it is in
  std::uint64_t address = 0;
  std::uint32_t dirty_pages = 0;  // of its beginning: may not be zero until they are first used
  std::uint8_t order = 0;

  std::uint64_t pages() const { return 1ULL << order; }
  std::uint64_t arena_offset() const { return address - kArenaBase; }
  char* page(std::uint64_t index) const { return reinterpret_cast<char*>(address + index * kPageSize); }
};

inline constexpr int kDataOrderMax = 23;  // 32 GiB
// Files in ranges up to this order keep their pages when they are cut, so that small ones cost no call of the host.
inline constexpr int kKeptOrderMax = 4;

// How many ranges are free, and kept for later files.
std::uint64_t kept_ranges();

// Room for at least `pages`; ENOSPC. Sizes go in steps of 16, so that a file that grows is seldom moved.
SysResult<DataRange*> take_range(std::uint64_t pages);
// For one that must never move: with as much room above `pages` as there is address space for, up to `pages_max`.
SysResult<DataRange*> take_roomy_range(std::uint64_t pages, std::uint64_t pages_max);
// `used_pages`: how many pages of its beginning may have been written to.
void give_range(DataRange* range, std::uint64_t used_pages);
// Makes the root object; once.
SysResult<void> make_file_data_state();
// Gives pages back to the host; they read as zeros then.
void release_pages(const DataRange& range, std::uint64_t first, std::uint64_t count);

}  // namespace belljar::kernel
