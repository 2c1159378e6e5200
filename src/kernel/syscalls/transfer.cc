// Copies between files, sizes and storage: sendfile(2), copy_file_range(2), truncate(2), fallocate(2), fsync(2).
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <limits>

#include "kernel/fs/watches.h"
#include "kernel/syscalls/path_argument.h"

namespace belljar::kernel {
namespace {

// A block of the heap for copies.
class CopyBlock {
 public:
  static constexpr std::size_t kSize = 32U << 10;
  CopyBlock() : text_(static_cast<char*>(heap_allocate(kSize))) {}
  ~CopyBlock() { heap_free(text_, kSize); }
  CopyBlock(const CopyBlock&) = delete;
  CopyBlock& operator=(const CopyBlock&) = delete;
  char* text() const { return text_; }
  Area area(std::uint64_t size) const { return {reinterpret_cast<std::uint64_t>(text_), size}; }

 private:
  char* text_;
};

// Where one side of a copy is: an offset of the caller's, or the file's own.
class Side {
 public:
  SysResult<void> start(File& file, UserAddress offset) {
    file_ = &file;
    address_ = offset;
    if (offset == 0) return {};
    const auto position = TRY(copy_in<std::int64_t>(offset));
    if (position < 0) return error(EINVAL);
    if (!file.is_seekable()) return error(ESPIPE);
    own_ = static_cast<std::uint64_t>(position);
    return {};
  }
  SysResult<std::uint64_t> read(Buffers to) {
    if (address_ != 0) return file_->read(to, &own_);
    LockGuard guard(file_->position_lock);
    return file_->read(to, &file_->current_position);
  }
  SysResult<std::uint64_t> write(Buffers from) {
    if (address_ != 0 || !file_->is_seekable()) return file_->write(from, &own_);
    LockGuard guard(file_->position_lock);
    return file_->write(from, &file_->current_position);
  }
  // Gives back what was read and could not be written.
  void step_back(std::uint64_t count) {
    if (address_ != 0) {
      own_ -= count;
      return;
    }
    LockGuard guard(file_->position_lock);
    file_->current_position -= count;
  }
  SysResult<void> finish() const {
    if (address_ == 0) return {};
    return copy_out(address_, static_cast<std::int64_t>(own_));
  }
  std::uint64_t position() const {
    if (address_ != 0) return own_;
    LockGuard guard(file_->position_lock);
    return file_->current_position;
  }

 private:
  File* file_ = nullptr;
  UserAddress address_ = 0;
  std::uint64_t own_ = 0;
};

SyscallResult copy_bytes(Side& from, Side& to, std::uint64_t count) {
  const CopyBlock block;
  if (block.text() == nullptr) return error(ENOMEM);
  if (count > kTransferMax) count = kTransferMax;
  std::uint64_t moved = 0;
  while (moved < count) {
    const std::uint64_t asked = count - moved < CopyBlock::kSize ? count - moved : CopyBlock::kSize;
    const Area to_area = block.area(asked);
    const auto got = from.read(Buffers::of_kernel(to_area));
    if (!got && moved == 0) return got;
    if (!got || *got == 0) break;
    const Area from_area = block.area(*got);
    const auto put = to.write(Buffers::of_kernel(from_area));
    const std::uint64_t written = put ? *put : 0;
    from.step_back(*got - written);
    moved += written;
    if (!put && moved == 0) return put;
    if (written < *got) break;
  }
  return moved;
}

SysResult<void> check_size(Inode& inode, std::int64_t size) {
  if (size < 0) return error(EINVAL);
  if (static_cast<std::uint64_t>(size) > inode.size) TRY_VOID(check_file_size(static_cast<std::uint64_t>(size)));
  return {};
}

SyscallResult sync_file(int fd) {
  const Ref<File> file = TRY(current().files->get(fd));
  TRY_VOID(file->sync());
  return 0;
}

SysResult<void> check_copy(const File& from, const File& to) {
  if (!from.is_readable() || !to.is_writable() || (to.flags() & O_APPEND) != 0) return error(EBADF);
  const Inode* const source = from.inode();
  const Inode* const target = to.inode();
  if (source == nullptr || target == nullptr) return error(EINVAL);
  if (source->is_folder() || target->is_folder()) return error(EISDIR);
  if (!source->is_regular() || !target->is_regular()) return error(EINVAL);
  if (source->device != target->device) return error(EXDEV);
  return {};
}

}  // namespace

SyscallResult sys_sendfile(const SyscallArguments& arguments) {
  const Ref<File> to = TRY(current().files->get(arguments.get<int>(0)));
  const Ref<File> from = TRY(current().files->get(arguments.get<int>(1)));
  if (!from->is_readable() || !to->is_writable()) return error(EBADF);
  if (!from->is_seekable()) return error(arguments.get<UserAddress>(2) != 0 ? ESPIPE : EINVAL);
  if ((to->flags() & O_APPEND) != 0) return error(EINVAL);
  Side source, target;
  TRY_VOID(source.start(*from, arguments.get<UserAddress>(2)));
  TRY_VOID(target.start(*to, 0));
  const std::uint64_t moved = TRY(copy_bytes(source, target, arguments.get<std::uint64_t>(3)));
  TRY_VOID(source.finish());
  return moved;
}

SyscallResult sys_copy_file_range(const SyscallArguments& arguments) {
  const Ref<File> from = TRY(current().files->get(arguments.get<int>(0)));
  const Ref<File> to = TRY(current().files->get(arguments.get<int>(2)));
  std::uint64_t count = arguments.get<std::uint64_t>(4);
  if (arguments.get<std::uint32_t>(5) != 0) return error(EINVAL);
  TRY_VOID(check_copy(*from, *to));
  Side source, target;
  TRY_VOID(source.start(*from, arguments.get<UserAddress>(1)));
  TRY_VOID(target.start(*to, arguments.get<UserAddress>(3)));
  const std::uint64_t begin = source.position();
  const std::uint64_t to_begin = target.position();
  if (count > kTransferMax) count = kTransferMax;
  if (from->inode() == to->inode() && begin < to_begin + count && to_begin < begin + count) return error(EINVAL);
  const std::uint64_t moved = TRY(copy_bytes(source, target, count));
  TRY_VOID(source.finish());
  TRY_VOID(target.finish());
  return moved;
}

SyscallResult sys_fsync(const SyscallArguments& arguments) {
  return sync_file(arguments.get<int>(0));
}

SyscallResult sys_fdatasync(const SyscallArguments& arguments) {
  return sync_file(arguments.get<int>(0));
}

SyscallResult sys_sync(const SyscallArguments&) {
  return 0;
}

SyscallResult sys_syncfs(const SyscallArguments& arguments) {
  TRY(current().files->get(arguments.get<int>(0)));
  return 0;
}

SyscallResult sys_sync_file_range(const SyscallArguments& arguments) {
  constexpr std::uint32_t kKnown = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  const auto offset = arguments.get<std::int64_t>(1);
  const auto size = arguments.get<std::int64_t>(2);
  if ((arguments.get<std::uint32_t>(3) & ~kKnown) != 0 || offset < 0 || size < 0) return error(EINVAL);
  if (!file->is_seekable()) return error(ESPIPE);
  return 0;
}

SyscallResult sys_readahead(const SyscallArguments& arguments) {
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  if (!file->is_readable()) return error(EBADF);
  if (file->inode() == nullptr || !file->inode()->is_regular()) return error(EINVAL);
  return 0;
}

SyscallResult sys_fadvise64(const SyscallArguments& arguments) {
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  if (!file->is_seekable()) return error(ESPIPE);
  if (arguments.get<std::int64_t>(2) < 0) return error(EINVAL);
  const int advice = arguments.get<int>(3);
  if (advice < POSIX_FADV_NORMAL || advice > POSIX_FADV_NOREUSE) return error(EINVAL);
  return 0;
}

SyscallResult sys_fallocate(const SyscallArguments& arguments) {
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  const int mode = arguments.get<int>(1);
  const auto offset = arguments.get<std::int64_t>(2);
  const auto size = arguments.get<std::int64_t>(3);
  if (offset < 0 || size <= 0) return error(EINVAL);
  if ((mode & FALLOC_FL_PUNCH_HOLE) != 0 && (mode & FALLOC_FL_KEEP_SIZE) == 0) return error(EOPNOTSUPP);
  if (!file->is_writable()) return error(EBADF);
  if (file->kind() == FileKind::pipe) return error(ESPIPE);
  if (size > std::numeric_limits<std::int64_t>::max() - offset) return error(EFBIG);
  if (mode == 0) TRY_VOID(check_file_size(static_cast<std::uint64_t>(offset + size)));
  TRY_VOID(file->allocate(mode, static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(size)));
  tell_watches_of_file(*file, IN_MODIFY);
  return 0;
}

SyscallResult sys_truncate(const SyscallArguments& arguments) {
  const auto size = arguments.get<std::int64_t>(1);
  if (size < 0) return error(EINVAL);
  const Ref<Dentry> dentry = TRY(find_path(AT_FDCWD, arguments.get<UserAddress>(0), 0));
  Inode& inode = *dentry->inode;
  if (inode.is_folder()) return error(EISDIR);
  if (!inode.is_regular()) return error(EINVAL);
  TRY_VOID(check_access(inode, W_OK, current().credentials));
  TRY_VOID(check_size(inode, size));
  AttributeChange change;
  change.set_size = true;
  change.size = static_cast<std::uint64_t>(size);
  TRY_VOID(inode.change(change));
  LockGuard guard(tree_lock());
  tell_watches_of_dentry(*dentry, IN_MODIFY);
  return 0;
}

SyscallResult sys_ftruncate(const SyscallArguments& arguments) {
  const auto size = arguments.get<std::int64_t>(1);
  if (size < 0) return error(EINVAL);
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(0)));
  if (!file->is_writable() || file->inode() == nullptr || !file->inode()->is_regular()) return error(EINVAL);
  TRY_VOID(check_size(*file->inode(), size));
  TRY_VOID(file->truncate(static_cast<std::uint64_t>(size)));
  tell_watches_of_file(*file, IN_MODIFY);
  return 0;
}

}  // namespace belljar::kernel
