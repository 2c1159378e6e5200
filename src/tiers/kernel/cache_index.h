// The index of a content cache that is mapped: looking things up, and making room.
#pragma once

#include <sys/stat.h>

#include <optional>

#include "base/result.h"
#include "tiers/kernel/content_cache_shm.h"

namespace belljar::content_cache {

Key key_of(const struct stat& status);

class Index {
 public:
  // Maps the index of `file`, which is kBudget large: for reading, or for keepers. Errors: mmap(2).
  static SysResult<Index> map(int file, bool is_writable);

  // What is damaged is not found.
  std::optional<Record> find(const Key& key) const;

  // The rest is for keepers, one at a time (lock in cache_keeper.cc).

  // Room for `size` bytes, in whole pages; nothing where the budget or the index is used up, which is noted.
  std::optional<std::uint64_t> take(std::uint64_t size);
  // After all that it refers to is written. False: the index is full.
  bool add(const Record& record);

 private:
  explicit Index(Header* header) : header_(header) {}
  Header* header_;  // mapped until the process ends
};

}  // namespace belljar::content_cache
