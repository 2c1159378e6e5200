#include "kernel/fs/dev.h"

#include <linux/magic.h>

#include <algorithm>

#include "kernel/arena/random.h"
#include "kernel/fs/inode_file.h"
#include "kernel/task/process.h"
#include "kernel/terminal/devices.h"

namespace belljar::kernel {
namespace {

// Large transfers are made in parts, between which a signal is seen.
constexpr std::uint64_t kPart = 1U << 20;

// null(4), zero(4), full(4), random(4): their positions mean nothing.
class MemoryDevice : public InodeFile {
 public:
  using InodeFile::InodeFile;
  bool is_seekable() const override { return true; }
  SysResult<std::uint64_t> seek_from_content(std::uint64_t, int) override { return 0; }
};

SysResult<std::uint64_t> swallow(Buffers& from) {
  return from.left();
}

SysResult<std::uint64_t> read_zeros(Buffers& to) {
  std::uint64_t done = 0;
  while (to.left() > 0) {
    const std::uint64_t size = std::min(to.left(), kPart);
    if (const auto put = to.put_zeros(size); !put) {
      if (done == 0) return std::unexpected(put.error());
      break;
    }
    done += size;
    if (has_signal()) break;
  }
  return done;
}

class NullDevice final : public MemoryDevice {
 public:
  using MemoryDevice::MemoryDevice;
  SysResult<std::uint64_t> read(Buffers&, std::uint64_t*) override { return 0; }
  SysResult<std::uint64_t> write(Buffers& from, std::uint64_t*) override { return swallow(from); }
};

class ZeroDevice final : public MemoryDevice {
 public:
  using MemoryDevice::MemoryDevice;
  SysResult<std::uint64_t> read(Buffers& to, std::uint64_t*) override { return read_zeros(to); }
  SysResult<std::uint64_t> write(Buffers& from, std::uint64_t*) override { return swallow(from); }
  SysResult<MapSource> map(std::uint64_t, std::uint64_t, bool, bool) override {
    return MapSource{.may_write_shared = true};
  }
};

class FullDevice final : public MemoryDevice {
 public:
  using MemoryDevice::MemoryDevice;
  SysResult<std::uint64_t> read(Buffers& to, std::uint64_t*) override { return read_zeros(to); }
  SysResult<std::uint64_t> write(Buffers&, std::uint64_t*) override { return error(ENOSPC); }
};

class RandomDevice final : public MemoryDevice {
 public:
  using MemoryDevice::MemoryDevice;
  SysResult<std::uint64_t> read(Buffers& to, std::uint64_t*) override {
    RandomKey key;
    std::uint8_t part[256];
    std::uint64_t done = 0;
    while (to.left() > 0 && done < kPart) {
      const std::size_t size = std::min<std::uint64_t>(to.left(), sizeof part);
      key.fill({part, size});
      if (const auto put = to.put(part, size); !put) {
        if (done == 0) return std::unexpected(put.error());
        break;
      }
      done += size;
    }
    return done;
  }
  // The pool needs nothing from programs.
  SysResult<std::uint64_t> write(Buffers& from, std::uint64_t*) override { return swallow(from); }
};

template <typename T>
SysResult<Ref<File>> open_device(Ref<Inode> inode, Ref<Dentry> dentry, std::uint32_t) {
  Ref<T> file = make_ref<T>(std::move(inode), std::move(dentry));
  if (!file) return error(ENOMEM);
  return Ref<File>(std::move(file));
}

SysResult<Ref<File>> open_own_terminal(Ref<Inode> inode, Ref<Dentry> dentry, std::uint32_t flags) {
  return open_controlling_terminal(flags, std::move(inode), std::move(dentry));
}

constexpr std::uint64_t device(std::uint64_t major_number, std::uint64_t minor_number) {
  return major_number << 8 | minor_number;
}

constexpr std::uint32_t kDevice = S_IFCHR | 0666;
constexpr std::uint32_t kLink = S_IFLNK | 0777;

constexpr GeneratedRow kRows[] = {
    {.path = "fd", .mode = kLink, .constant = "/proc/self/fd"},
    {.path = "full", .mode = kDevice, .open = open_device<FullDevice>, .rdev = device(1, 7)},
    {.path = "null", .mode = kDevice, .open = open_device<NullDevice>, .rdev = device(1, 3)},
    {.path = "ptmx", .mode = kLink, .constant = "pts/ptmx"},
    {.path = "pts", .mode = S_IFDIR | 0755},
    {.path = "random", .mode = kDevice, .open = open_device<RandomDevice>, .rdev = device(1, 8)},
    {.path = "shm", .mode = S_IFDIR | 01777},
    {.path = "stderr", .mode = kLink, .constant = "/proc/self/fd/2"},
    {.path = "stdin", .mode = kLink, .constant = "/proc/self/fd/0"},
    {.path = "stdout", .mode = kLink, .constant = "/proc/self/fd/1"},
    {.path = "tty", .mode = kDevice, .open = open_own_terminal, .rdev = device(5, 0)},
    {.path = "urandom", .mode = kDevice, .open = open_device<RandomDevice>, .rdev = device(1, 9)},
    {.path = "zero", .mode = kDevice, .open = open_device<ZeroDevice>, .rdev = device(1, 5)},
};

constexpr GeneratedTree kTree{.rows = kRows, .magic = TMPFS_MAGIC, .device = 21};

}  // namespace

SysResult<Ref<Inode>> make_dev_file_system() {
  return make_generated_file_system(kTree);
}

}  // namespace belljar::kernel
