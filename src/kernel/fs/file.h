// An open file description (open(2)): what descriptors refer to.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>

#include "kernel/arena/lock.h"
#include "kernel/arena/ref.h"
#include "kernel/base/result.h"
#include "kernel/mm/user_memory.h"
#include "kernel/task/wait_queue.h"

namespace belljar::kernel {

class Inode;
class Dentry;

// Text of the file whose system calls are patched already (mm/text_patch.h); places are offsets of contents.
// Trampolines begin at `offset`, the text kTrampolineSize behind.
struct PatchedText {
  std::uint64_t source = 0;  // the part of the file that it stands for
  std::uint64_t size = 0;    // 0: there is none
  std::uint64_t distance = 0;
  std::uint64_t offset = 0;
  std::uint64_t trampoline_size = 0;
};

// What can be mapped (mmap(2)): a contiguous part of one of the two shared files.
struct MapSource {
  enum class Kind : std::uint8_t { anonymous, arena, content };
  Kind kind = Kind::anonymous;
  std::uint64_t offset = 0;  // in that file
  // How much from there on belongs to what is mapped, in whole pages; what lies behind is something else's.
  std::uint64_t size = ~0ULL;
  bool may_write_shared = false;
  std::uint64_t image_id = 0;  // of content: names the file, so that its patched text can be found; 0: none
  PatchedText text;
};

// Files that some calls treat in a way of their own; each kind is one class.
enum class FileKind : std::uint8_t {
  other,
  pipe,
  socket,
  epoll,
  timerfd,
  signalfd,
  pidfd,
  terminal,
  inotify,
  message_queue
};

class EpollItem;

// O_LARGEFILE, which the kernel sets of all files with a name and F_GETFL tells; the C library's own is 0.
inline constexpr std::uint32_t kLargeFileFlag = 0100000;

class File : public Counted {
 public:
  explicit File(LockRank position_rank = LockRank::memory) : position_lock(position_rank) {}
  virtual FileKind kind() const { return FileKind::other; }

  // open(2) flags that can be changed later (F_SETFL) and those that stay: access mode, O_APPEND, O_NONBLOCK ...
  std::uint32_t flags() const { return flags_.load(std::memory_order_relaxed); }
  void set_flags(std::uint32_t flags) { flags_.store(flags, std::memory_order_relaxed); }
  bool is_readable() const { return (flags() & 3) == 0 || (flags() & 3) == 2; }
  bool is_writable() const { return (flags() & 3) == 1 || (flags() & 3) == 2; }
  // Opened with O_PATH: a place only; reading, writing and mapping are EBADF.
  bool is_place() const { return (flags() & 010000000) != 0; }
  bool is_nonblocking() const { return (flags() & 04000) != 0; }

  // Access modes are checked by the caller. `position`: where in the file, moved on by the call; streams ignore it.
  // A count of 0 from read is the end of the file.
  virtual SysResult<std::uint64_t> read(Buffers& to, std::uint64_t* position);
  virtual SysResult<std::uint64_t> write(Buffers& from, std::uint64_t* position);
  // False: no offset (pipes, sockets, terminals): pread(2) and lseek(2) are ESPIPE.
  virtual bool is_seekable() const { return false; }
  // For SEEK_END, SEEK_DATA and SEEK_HOLE.
  virtual SysResult<std::uint64_t> seek_from_content(std::uint64_t offset, int whence);

  // What is ready now, as poll(2) tells it; and the queue that is woken when that may have changed. No queue: always
  // ready, and epoll_ctl(2) is EPERM.
  virtual Events ready() { return 0x0145; }  // POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM
  virtual WaitQueue* queue() { return nullptr; }

  virtual SysResult<std::uint64_t> ioctl(std::uint32_t request, std::uint64_t argument);
  // The part of the shared file stays in place until the File goes: whoever maps it keeps a reference to the File.
  virtual SysResult<MapSource> map(std::uint64_t offset, std::uint64_t size, bool is_shared, bool is_write);
  // getdents64(2): entries from `*position` on, at most `to.left()` bytes.
  virtual SysResult<std::uint64_t> list(Buffers& to, std::uint64_t* position);
  virtual SysResult<void> stat(struct stat* status);
  virtual SysResult<void> truncate(std::uint64_t size);
  // fallocate(2), with its mode.
  virtual SysResult<void> allocate(int mode, std::uint64_t offset, std::uint64_t size);
  // F_GET_SEALS and F_ADD_SEALS of fcntl(2).
  virtual SysResult<std::uint32_t> seals() { return error(EINVAL); }
  virtual SysResult<void> add_seals(std::uint32_t /*seals*/) { return error(EINVAL); }
  // fsync(2) and fdatasync(2).
  virtual SysResult<void> sync() { return error(EINVAL); }
  // Each close(2) of a descriptor of it, for POSIX record locks.
  virtual void closed_by(std::uint32_t process_id) { (void)process_id; }
  // What /proc/self/fd/N shows where there is no dentry: "pipe:[7]", "anon_inode:[eventpoll]". Returns its length.
  virtual std::size_t describe(char* text, std::size_t size) const;

  // Of a pidfd: its process. 0: this is none.
  virtual std::int32_t process_id() const { return 0; }
  // A new open file description of the same thing, for /proc/self/fd/N of a file without a name. ENXIO where there is
  // none.
  virtual SysResult<Ref<File>> reopen(std::uint32_t flags);

  // Both null where the file has no name: a pipe, a socket.
  virtual Inode* inode() const { return nullptr; }
  virtual Dentry* dentry() const { return nullptr; }

  // The file's own offset, and the lock that read(2), write(2) and lseek(2) hold over it.
  Lock position_lock;
  std::uint64_t current_position = 0;

  // The epoll instances that watch this file; owned by ipc/epoll.cc.
  std::atomic<EpollItem*> epoll_items = nullptr;

 protected:
  void retire() override;

 private:
  std::atomic<std::uint32_t> flags_ = 0;
};

}  // namespace belljar::kernel
