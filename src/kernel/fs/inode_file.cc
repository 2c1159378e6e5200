#include "kernel/fs/inode_file.h"

#include <dirent.h>
#include <stddef.h>
#include <string.h>

#include "kernel/fs/file_locks.h"
#include "kernel/fs/watches.h"

namespace belljar::kernel {
namespace {

// As getdents64(2) has it.
struct EntryHead {
  std::uint64_t number;
  std::int64_t next;
  std::uint16_t size;
  std::uint8_t type;
};
constexpr std::size_t kHeadSize = offsetof(EntryHead, type) + 1;

}  // namespace

InodeFile::~InodeFile() {
  if (is_place()) return;
  tell_watches_of_file(*this, is_writable() ? IN_CLOSE_WRITE : IN_CLOSE_NOWRITE);
  release_file_locks(*this);
}

SysResult<void> InodeFile::truncate(std::uint64_t size) {
  AttributeChange change;
  change.set_size = true;
  change.size = size;
  return inode_->change(change);
}

void InodeFile::closed_by(std::uint32_t process_id) {
  release_record_locks(*inode_, process_id);
}

SysResult<bool> EntryWriter::add(std::uint64_t number, std::uint32_t mode, std::string_view name, std::uint64_t next) {
  const std::size_t size = (kHeadSize + name.size() + 1 + 7) & ~std::size_t{7};
  if (used_ + size > to_.left()) {
    was_full_ = true;
    return false;
  }
  if (used_ + size > sizeof block_) TRY_VOID(flush());
  const EntryHead head{number, static_cast<std::int64_t>(next), static_cast<std::uint16_t>(size),
                       static_cast<std::uint8_t>(IFTODT(mode))};
  char* const to = block_ + used_;
  memcpy(to, &head, kHeadSize);
  memcpy(to + kHeadSize, name.data(), name.size());
  memset(to + kHeadSize + name.size(), 0, size - kHeadSize - name.size());
  used_ += size;
  return true;
}

SysResult<void> EntryWriter::flush() {
  TRY_VOID(to_.put(block_, used_));
  written_ += used_;
  used_ = 0;
  return {};
}

SysResult<std::uint64_t> EntryWriter::finish() {
  if (used_ != 0) TRY_VOID(flush());
  if (written_ == 0 && was_full_) return error(EINVAL);
  return written_;
}

}  // namespace belljar::kernel
