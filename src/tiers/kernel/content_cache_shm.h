// The content cache: contents of an image's files in one file, which all sandboxes of that image, user and caller map.
// Header, index, then contents in whole pages. Only keepers (cache_keeper.h) write to it; brokers and guests have it
// read-only. Nothing in it ever moves or changes once it is in the index.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernel/arena/layout.h"

namespace belljar::content_cache {

// How large the file is: the budget. What does not fit is not kept; the next sandbox begins a new file.
inline constexpr std::uint64_t kBudget = 1ULL << 30;
// Larger files would push out the rest.
inline constexpr std::uint64_t kFileMost = kBudget / 8;
inline constexpr std::uint32_t kEntriesMax = 1U << 15;

// One state of a file of the host: another state has another key.
struct Key {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t modify_s = 0, change_s = 0;
  std::int64_t modify_ns = 0, change_ns = 0;
  bool operator==(const Key&) const = default;
};

// An executable part of the file with its system calls patched (kernel/mm/text_patch.h). Trampolines lie at `offset`,
// the text kernel::kTrampolineSize behind; `size` 0: there is none.
struct PatchedText {
  std::uint64_t source = 0;  // offset of the part as it was, in this file
  std::uint64_t size = 0;    // of the part, in whole pages
  std::uint64_t distance = 0;
  std::uint64_t offset = 0;
  std::uint64_t trampoline_size = 0;
};

struct Record {
  Key key;
  std::uint64_t offset = 0;
  PatchedText text;
};

struct Entry {
  std::atomic<std::uint32_t> is_there;  // set last
  std::uint32_t checksum;               // of the record
  Record record;
};

struct Header {
  static constexpr std::size_t kNameSize = 128;
  char name[kNameSize];  // of what the file is a cache of; padded with zeros
  std::atomic<std::uint64_t> used;
  std::atomic<std::uint32_t> entry_count;
  std::atomic<std::uint32_t> is_full;
  Entry entries[kEntriesMax];  // a hash table with linear probing
};
inline constexpr std::uint64_t kContentsBegin = kernel::page_up(sizeof(Header));
static_assert(kContentsBegin < kBudget / 64 && kBudget <= kernel::kContentSize);

}  // namespace belljar::content_cache
