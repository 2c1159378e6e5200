// The keeper: a process beside the broker that alone writes to the content cache. It takes nothing from guests: the
// broker hands it a descriptor, and it finds out by itself what file that is, and whether it may be shared with other
// sandboxes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "tiers/kernel/cache_index.h"

namespace belljar::content_cache {

// Puts files into the cache.
class Filler {
 public:
  // `cache`: open for writing. `folders`: where the image is mounted; files of other mounts are refused.
  static SysResult<Filler> open(Fd cache, std::span<const std::string> folders);

  // A regular file of the image that is open for reading. Errors: EXDEV, it belongs to something else; EAGAIN, it
  // changed a moment ago, or others are at work; ENOSPC; what reading and writing may say.
  SysResult<void> put(int file);

 private:
  Filler(Fd cache, Index index) : cache_(std::move(cache)), index_(index) {}
  bool is_of_image(int file) const;
  SysResult<std::uint64_t> take(std::uint64_t size);
  SysResult<void> copy(int file, std::uint64_t size, std::uint64_t offset) const;
  SysResult<PatchedText> patch(std::uint64_t offset, std::uint64_t size);
  SysResult<PatchedText> patch_part(std::uint64_t source, std::uint64_t size, std::uint64_t distance);
  SysResult<void> publish(const Record& record);

  Fd cache_;
  Index index_;
  std::vector<std::uint64_t> mounts_;  // their ids (statx(2))
};

// The broker's end.
class Keeper {
 public:
  // Starts the process; before the first thread. `cache` is closed here. Where that fails, nothing is kept.
  void start(Fd cache, std::span<const std::string> folders);
  // True: the file is in the index now.
  bool keep(int file) const;
  // Waits for its end.
  void stop();

 private:
  Fd socket_;
  int process_ = -1;
};

}  // namespace belljar::content_cache
