// Writable files in the arena: /tmp, /dev/shm, memfd_create(2). Each inode's contents lie contiguous in the arena, so
// that a mapping is one mmap(2) of the host.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "kernel/arena/layout.h"
#include "kernel/fs/inode.h"

namespace belljar::kernel {

// One limit for all that are made of it: bytes in pages, and inodes. ENOSPC beyond.
class TmpSpace final : public Counted {
 public:
  TmpSpace(std::uint64_t bytes_max, std::uint64_t inodes_max) : pages_max_(bytes_max / 4096), inodes_max_(inodes_max) {}
  SysResult<void> take_pages(std::uint64_t count);
  void give_pages(std::uint64_t count);
  SysResult<void> take_inode();
  void give_inode();
  Inode::Space space() const;
  // For the result record: what is in use, and whether a limit was met.
  std::uint64_t bytes_used() const { return pages_ * kPageSize; }
  std::uint64_t inodes_used() const { return inodes_; }
  bool was_full() const { return was_full_; }
  bool were_inodes_full() const { return were_inodes_full_; }

 private:
  std::uint64_t pages_max_;
  std::uint64_t inodes_max_;
  std::atomic<std::uint64_t> pages_ = 0;
  std::atomic<std::uint64_t> inodes_ = 0;
  std::atomic<bool> was_full_ = false;
  std::atomic<bool> were_inodes_full_ = false;
};

// A new tmpfs's root folder.
SysResult<Ref<Inode>> make_tmpfs(Ref<TmpSpace> space, std::uint32_t mode, std::uint32_t uid, std::uint32_t gid);

// A nameless file as memfd_create(2) makes it. MAP_SHARED | MAP_ANONYMOUS is the host's.
SysResult<Ref<File>> make_memory_file(Ref<TmpSpace> space, std::string_view name, bool may_be_sealed,
                                      const Credentials& who);

}  // namespace belljar::kernel
