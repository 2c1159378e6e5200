// Open files that are an inode's: what regular files, folders and places (O_PATH) share.
#pragma once

#include "kernel/fs/file.h"
#include "kernel/fs/inode.h"

namespace belljar::kernel {

class InodeFile : public File {
 public:
  InodeFile(Ref<Inode> inode, Ref<Dentry> dentry, LockRank position_rank = LockRank::memory)
      : File(position_rank), inode_(std::move(inode)), dentry_(std::move(dentry)) {}
  // Tells inotify(7), gives flock(2) up.
  ~InodeFile() override;

  Inode* inode() const final { return inode_.get(); }
  Dentry* dentry() const final { return dentry_.get(); }
  SysResult<void> sync() override { return {}; }
  SysResult<void> truncate(std::uint64_t size) override;
  void closed_by(std::uint32_t process_id) override;

 private:
  Ref<Inode> inode_;
  Ref<Dentry> dentry_;
};

// A place in the tree only, opened with O_PATH.
class PlaceFile final : public InodeFile {
 public:
  using InodeFile::InodeFile;
};

// Writes records of getdents64(2), as many as fit.
class EntryWriter {
 public:
  explicit EntryWriter(Buffers& to) : to_(to) {}
  // `next`: the position after this entry. False: it does not fit any more.
  SysResult<bool> add(std::uint64_t number, std::uint32_t mode, std::string_view name, std::uint64_t next);
  // To be called at the end. EINVAL where not even the first entry fitted.
  SysResult<std::uint64_t> finish();

 private:
  SysResult<void> flush();

  Buffers& to_;
  std::uint64_t written_ = 0;
  bool was_full_ = false;
  std::size_t used_ = 0;
  alignas(8) char block_[2048];  // so that guest memory is not touched for each entry
};

}  // namespace belljar::kernel
