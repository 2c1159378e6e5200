#include "kernel/fs/tmpfs.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "kernel/base/text.h"
#include "kernel/fs/dentry_cache.h"
#include "kernel/fs/tmp_folder.h"
#include "kernel/fs/tmp_inode.h"
#include "kernel/host/calls.h"
#include "kernel/ipc/pipe.h"
#include "kernel/task/process.h"

namespace belljar::kernel {
namespace {

SysResult<void> take(std::atomic<std::uint64_t>& used, std::uint64_t count, std::uint64_t used_max,
                     std::atomic<bool>& was_full) {
  const std::uint64_t before = used.fetch_add(count, std::memory_order_relaxed);
  if (before + count <= used_max) return {};
  used.fetch_sub(count, std::memory_order_relaxed);
  was_full = true;
  return error(ENOSPC);
}

// An open regular file of tmpfs.
class TmpOpenFile final : public InodeFile {
 public:
  enum class Keeps : bool { open, from_execution };  // execve(2) of a file that is open for writing is ETXTBSY

  TmpOpenFile(Ref<Inode> inode, Ref<Dentry> dentry, Keeps keeps)
      : InodeFile(std::move(inode), std::move(dentry)), writers_(keeps == Keeps::from_execution ? 1 : 0) {
    ++file().open_count;
    file().writer_count += writers_;
  }
  ~TmpOpenFile() override {
    --file().open_count;
    file().writer_count -= writers_;
  }

  bool is_seekable() const override { return true; }
  SysResult<std::uint64_t> read(Buffers& to, std::uint64_t* position) override {
    const std::uint64_t count = TRY(file().read(to, *position));
    *position += count;
    return count;
  }
  SysResult<std::uint64_t> write(Buffers& from, std::uint64_t* position) override {
    const bool appends = (flags() & O_APPEND) != 0;
    const std::uint64_t begin = appends ? file().size : *position;
    const std::uint64_t limit = current_process().limits[RLIMIT_FSIZE].rlim_cur;
    if (begin >= limit && from.left() != 0) TRY_VOID(check_file_size(begin + 1));
    if (begin < limit) from.cut(limit - begin);
    return file().write(from, position, appends);
  }
  SysResult<MapSource> map(std::uint64_t offset, std::uint64_t size, bool is_shared, bool is_write) override {
    if (is_shared && is_write && (file().seals() & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0) return error(EPERM);
    return file().map(offset, size, is_shared, is_writable());
  }
  SysResult<std::uint64_t> seek_from_content(std::uint64_t offset, int whence) override {
    return file().seek(offset, whence);
  }
  SysResult<void> allocate(int mode, std::uint64_t offset, std::uint64_t size) override {
    return file().allocate(mode, offset, size);
  }
  SysResult<std::uint32_t> seals() override { return file().seals(); }
  SysResult<void> add_seals(std::uint32_t seals) override {
    // Mappings hold the dentry, and so does each open file.
    const bool is_mapped = dentry() == nullptr || dentry()->count() > file().open_count;
    return file().add_seals(seals, is_mapped);
  }

 private:
  TmpFile& file() const { return static_cast<TmpFile&>(*inode()); }

  std::uint32_t writers_;
};

constexpr std::uint32_t kModeBits = 07777;
// The file system of all files of memfd_create(2).
constexpr std::uint32_t kMemoryFileDevice = 1;

}  // namespace

Timestamp now() {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const std::uint64_t time = host::clock_ns(CLOCK_REALTIME_COARSE);
  return {static_cast<std::int64_t>(time / kSecond), static_cast<std::uint32_t>(time % kSecond)};
}

SysResult<void> TmpSpace::take_pages(std::uint64_t count) {
  return take(pages_, count, pages_max_, was_full_);
}

void TmpSpace::give_pages(std::uint64_t count) {
  pages_.fetch_sub(count, std::memory_order_relaxed);
}

SysResult<void> TmpSpace::take_inode() {
  return take(inodes_, 1, inodes_max_, were_inodes_full_);
}

void TmpSpace::give_inode() {
  inodes_.fetch_sub(1, std::memory_order_relaxed);
}

Inode::Space TmpSpace::space() const {
  Inode::Space result;
  result.magic = TMPFS_MAGIC;
  result.blocks = pages_max_;
  const std::uint64_t pages = pages_;
  const std::uint64_t inodes = inodes_;
  result.blocks_free = pages < pages_max_ ? pages_max_ - pages : 0;
  result.inodes = inodes_max_;
  result.inodes_free = inodes < inodes_max_ ? inodes_max_ - inodes : 0;
  return result;
}

TmpInode::TmpInode(Ref<TmpSpace> space, std::uint32_t device_number, std::uint32_t file_mode)
    : space_(std::move(space)) {
  number = new_inode_number();
  device = device_number;
  mode = file_mode;
  access_time = modify_time = change_time = birth_time = now();
}

TmpInode::~TmpInode() {
  if (is_counted) space_->give_inode();
}

SysResult<void> TmpInode::change(const AttributeChange& change) {
  LockGuard guard(lock);
  if (change.set_size) {
    if (is_folder()) return error(EISDIR);
    TRY_VOID(resize(change.size));
    touch_modify();
  }
  if (change.set_mode) mode = (mode & S_IFMT) | (change.mode & kModeBits);
  if (change.set_uid || change.set_gid || change.set_size) drop_set_ids();
  if (change.set_uid) uid = change.uid;
  if (change.set_gid) gid = change.gid;
  if (change.set_access) access_time = change.access;
  if (change.set_modify) modify_time = change.modify;
  touch_change();
  return {};
}

SysResult<void> TmpInode::resize(std::uint64_t) {
  return error(EINVAL);
}

SysResult<Ref<File>> TmpInode::open(Ref<Dentry> dentry, std::uint32_t flags) {
  if (S_ISFIFO(mode)) return open_fifo(*this, flags, std::move(dentry));
  return error(ENXIO);
}

SysResult<std::size_t> TmpInode::get_xattr(std::string_view name, char* to, std::size_t to_size) {
  LockGuard guard(lock);
  return xattrs_.get(name, to, to_size);
}

SysResult<void> TmpInode::set_xattr(std::string_view name, std::string_view value, int flags) {
  LockGuard guard(lock);
  TRY_VOID(xattrs_.set(name, value, flags));
  touch_change();
  return {};
}

SysResult<std::size_t> TmpInode::list_xattr(char* to, std::size_t to_size) {
  LockGuard guard(lock);
  return xattrs_.list(to, to_size);
}

SysResult<void> TmpInode::remove_xattr(std::string_view name) {
  LockGuard guard(lock);
  TRY_VOID(xattrs_.remove(name));
  touch_change();
  return {};
}

SysResult<void> TmpLink::set_target(std::string_view text) {
  text_ = static_cast<char*>(heap_allocate(text.size()));
  if (text_ == nullptr) return error(ENOSPC);
  memcpy(text_, text.data(), text.size());
  size = text.size();
  return {};
}

SysResult<Ref<File>> TmpFile::open(Ref<Dentry> dentry, std::uint32_t flags) {
  using Keeps = TmpOpenFile::Keeps;
  const Keeps keeps = (flags & O_ACCMODE) != O_RDONLY ? Keeps::from_execution : Keeps::open;
  auto file = make_ref<TmpOpenFile>(Ref<Inode>::of(this), std::move(dentry), keeps);
  if (!file) return error(ENOMEM);
  return Ref<File>(std::move(file));
}

SysResult<Ref<Inode>> make_tmpfs(Ref<TmpSpace> space, std::uint32_t mode, std::uint32_t uid, std::uint32_t gid) {
  TRY_VOID(space->take_inode());
  auto root = make_ref<TmpFolder>(space, new_device_number(), S_IFDIR | mode);
  if (!root) return error(ENOMEM);
  root->is_counted = true;
  root->uid = uid;
  root->gid = gid;
  root->links = 2;
  root->size = TmpFolder::kEmptySize;
  return Ref<Inode>(std::move(root));
}

SysResult<Ref<File>> make_memory_file(Ref<TmpSpace> space, std::string_view name, bool may_be_sealed,
                                      const Credentials& who) {
  TRY_VOID(space->take_inode());
  auto inode = make_ref<TmpFile>(space, kMemoryFileDevice, S_IFREG | 0777);
  if (!inode) return error(ENOMEM);
  inode->is_counted = true;
  inode->uid = who.fsuid;
  inode->gid = who.fsgid;
  inode->links = 0;
  if (may_be_sealed) inode->allow_seals();
  // A name that is in no folder, so that /proc can tell it.
  auto dentry = make_ref<Dentry>();
  if (!dentry) return error(ENOMEM);
  char text[kNameMax];
  TextWriter writer(text, sizeof text);
  writer << "memfd:" << name;
  TRY_VOID(dentry->set_name(writer.text()));
  dentry->inode = inode;
  dentry->is_unlinked = true;
  auto file = make_ref<TmpOpenFile>(Ref<Inode>(std::move(inode)), std::move(dentry), TmpOpenFile::Keeps::open);
  if (!file) return error(ENOMEM);
  file->set_flags(O_RDWR | kLargeFileFlag);
  return Ref<File>(std::move(file));
}

}  // namespace belljar::kernel
