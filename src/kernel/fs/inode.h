// Inodes and names. A Filesystem makes inodes; dentries name them and are the cache of names; the tree lock holds
// everything that changes names.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <string_view>

#include "kernel/arena/lock.h"
#include "kernel/arena/ref.h"
#include "kernel/base/result.h"
#include "kernel/fs/file.h"

namespace belljar::kernel {

struct Timestamp {
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;
};

// CLOCK_REALTIME_COARSE, which times of files are taken from.
Timestamp now();

// Who asks; of the calling task (credentials(7)). File modes hold between users inside against mistakes.
struct Credentials {
  std::uint32_t uid = 0, euid = 0, suid = 0, fsuid = 0;
  std::uint32_t gid = 0, egid = 0, sgid = 0, fsgid = 0;
  static constexpr std::size_t kGroupsMax = 32;
  std::uint32_t group_count = 0;
  std::uint32_t groups[kGroupsMax] = {};
};

inline constexpr std::size_t kNameMax = 255;
inline constexpr std::size_t kPathMax = 4096;

// What setting attributes changes (chmod(2), chown(2), utimensat(2), truncate(2)).
struct AttributeChange {
  bool set_mode = false, set_uid = false, set_gid = false, set_size = false, set_access = false, set_modify = false;
  std::uint32_t mode = 0, uid = 0, gid = 0;
  std::uint64_t size = 0;
  Timestamp access, modify;
};

// What inotify(7) tells of one inode; owned by fs/inotify.cc.
class Watches;
// flock(2) and record locks of one inode; owned by fs/file_locks.cc.
class FileLocks;

// A number that is changed under a lock and may be read without.
template <typename T>
class Relaxed {
 public:
  constexpr Relaxed() = default;
  explicit constexpr Relaxed(T value) : value_(value) {}
  operator T() const { return value_.load(std::memory_order_relaxed); }
  Relaxed& operator=(T value) {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }
  Relaxed& operator=(const Relaxed& other) { return *this = static_cast<T>(other); }
  Relaxed(const Relaxed& other) : Relaxed(static_cast<T>(other)) {}
  Relaxed& operator+=(T value) { return *this = *this + value; }
  Relaxed& operator-=(T value) { return *this = *this - value; }
  Relaxed& operator&=(T value) { return *this = *this & value; }
  Relaxed& operator|=(T value) { return *this = *this | value; }
  Relaxed& operator++() { return *this += 1; }
  Relaxed& operator--() { return *this -= 1; }

 private:
  std::atomic<T> value_ = 0;
};

class Inode : public Counted {
 public:
  // Read by stat(2); changed under `lock`.
  std::uint64_t number = 0;
  std::uint32_t device = 0;
  Relaxed<std::uint32_t> mode;  // type and permissions, inode(7)
  Relaxed<std::uint32_t> uid;
  Relaxed<std::uint32_t> gid;
  Relaxed<std::uint32_t> links{1};
  Relaxed<std::uint64_t> size;
  Relaxed<std::uint64_t> blocks;  // of 512 bytes
  std::uint64_t rdev = 0;
  Timestamp access_time, modify_time, change_time, birth_time;
  Lock lock{LockRank::object};
  // What is behind a named pipe or a socket while it is open: a Pipe or a UnixSocket (ipc/); under `lock`.
  Counted* endpoint = nullptr;
  std::atomic<Watches*> watches = nullptr;
  std::atomic<FileLocks*> locks = nullptr;
  std::atomic<bool> is_cut = false;  // a mapping of it reaches, or has reached, past its end

  ~Inode() override;

  bool is_folder() const { return S_ISDIR(mode); }
  bool is_link() const { return S_ISLNK(mode); }
  bool is_regular() const { return S_ISREG(mode); }

  // Of folders; called with the tree lock held. EROFS and ENOTDIR unless overridden.
  // A name that is not cached: the inode, or ENOENT. Called once for each name; the answer is kept as a dentry. Of a
  // folder whose keeps_names() is false it is called without the tree lock, so that it may take locks of lower ranks.
  virtual SysResult<Ref<Inode>> lookup(std::string_view name);
  virtual SysResult<Ref<Inode>> create(std::string_view name, std::uint32_t mode, std::uint64_t rdev,
                                       const Credentials& who);
  virtual SysResult<Ref<Inode>> make_symlink(std::string_view name, std::string_view target, const Credentials& who);
  virtual SysResult<void> link(std::string_view name, Inode& inode);
  virtual SysResult<void> unlink(std::string_view name, Inode& inode);
  virtual SysResult<void> remove_folder(std::string_view name, Inode& inode);
  // Both folders are of this file system. `replaced` may be null; with `exchange` the two change places.
  virtual SysResult<void> rename(std::string_view from, Inode& moved, Inode& to_folder, std::string_view to,
                                 Inode* replaced, bool exchange);
  virtual bool is_empty_folder() { return true; }
  // False: names come and go by themselves (/proc), so that dentries are not kept.
  virtual bool keeps_names() const { return true; }
  // A file without a name (O_TMPFILE of open(2)). EOPNOTSUPP unless overridden.
  virtual SysResult<Ref<Inode>> make_nameless(std::uint32_t mode, const Credentials& who);
  // Of such a file: link(2) may give it a name.
  virtual void let_link() {}
  // Somebody has it open for writing: it is not executed then (ETXTBSY).
  virtual bool is_open_for_writing() const { return false; }
  // Writing to it is EROFS.
  virtual bool is_read_only() const { return false; }

  // Of symbolic links: a target that never changes, valid as long as the inode (the default says that there is none),
  // or one that is copied each time: at most `size` bytes; returns how many. One of the two is overridden; called
  // without the tree lock unless target() answers.
  virtual SysResult<std::string_view> target() { return std::string_view(); }
  virtual SysResult<std::size_t> read_link(char* to, std::size_t size);
  // Of links whose target is a place, not a text (/proc/self/fd/N, /proc/self/cwd). Null: an ordinary link. Called
  // without the tree lock where is_magic() says so.
  virtual bool is_magic() const { return false; }
  virtual SysResult<Ref<Dentry>> follow_magic() { return Ref<Dentry>(); }

  // A new open file description. `flags` as in open(2), permissions checked already; O_TRUNC is done by the caller. The
  // caller sets the file's flags too. Called without locks, and may wait (FIFOs).
  virtual SysResult<Ref<File>> open(Ref<Dentry> dentry, std::uint32_t flags) = 0;
  virtual SysResult<void> change(const AttributeChange& change);
  // A mapping of it (File::map) is to reach up to `end` of the file now (mremap(2)). ENOMEM: it can't, where it is.
  virtual SysResult<void> extend_map(std::uint64_t /*end*/, bool /*is_shared*/) { return error(ENOMEM); }
  virtual SysResult<void> fill_stat(struct stat* status);

  // Extended attributes (xattr(7)): names with their prefix. `size` 0 asks for the size needed; ERANGE where it is too
  // small.
  virtual SysResult<std::size_t> get_xattr(std::string_view name, char* to, std::size_t size);
  virtual SysResult<void> set_xattr(std::string_view name, std::string_view value, int flags);
  virtual SysResult<std::size_t> list_xattr(char* to, std::size_t size);
  virtual SysResult<void> remove_xattr(std::string_view name);

  // statfs(2): f_type, f_bsize, blocks and files.
  struct Space {
    std::uint64_t magic = 0, blocks = 0, blocks_free = 0, inodes = 0, inodes_free = 0;
    bool is_read_only = false;
  };
  virtual Space space() { return {}; }
};

// A name in a folder. Lives as long as something refers to it: its children, open files, working folders, the cache.
// The tree lock holds all of it.
class Dentry final : public Counted {
 public:
  ~Dentry() override;

  Ref<Dentry> parent;         // null for the root of a file system
  Ref<Inode> inode;           // null: it is known that there is no such name
  Dentry* mounted = nullptr;  // the root of the file system mounted here; kept for ever
  Dentry* covers = nullptr;   // of such a root: where it is mounted
  std::uint32_t hash = 0;
  std::uint8_t name_size = 0;
  bool is_unlinked = false;
  bool is_cached = false;  // in the cache, which holds a reference
  bool was_used = false;   // since the cache looked for what to drop
  char* name_text = nullptr;

  std::string_view name() const { return {name_text, name_size}; }
  SysResult<void> set_name(std::string_view name);

 private:
  friend class DentryCache;
  void drop_name();

  Dentry* hash_next_ = nullptr;
  // Of cached ones: the children of one parent, and the ring of all.
  Dentry* first_child_ = nullptr;
  Dentry* next_sibling_ = nullptr;
  Dentry* previous_sibling_ = nullptr;
  Dentry* ring_next_ = nullptr;
  Dentry* ring_previous_ = nullptr;
  char short_name_[16];
};

}  // namespace belljar::kernel
