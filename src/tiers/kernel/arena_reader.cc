#include "tiers/kernel/arena_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/fd.h"
#include "kernel/arena/roots.h"
#include "kernel/fs/tmp_folder.h"
#include "kernel/fs/tmp_inode.h"

namespace belljar::broker {
namespace {

using kernel::kArenaBase;
using kernel::kPageSize;

// Deeper ones are not collected (files/collect.h); each costs a descriptor here.
constexpr unsigned kDepthMax = 120;
constexpr std::uint64_t kHeapBegin = kArenaBase + kernel::kHeapOffset;
constexpr std::uint64_t kHeapEnd = kHeapBegin + kernel::kHeapSize;
constexpr std::uint64_t kDataBegin = kArenaBase + kernel::kFileDataOffset;
constexpr std::uint64_t kDataEnd = kArenaBase + kernel::kArenaSize;

std::unexpected<Errno> damaged() {
  return std::unexpected(Errno{EBADMSG});
}

SysResult<void> check_call(long result) {
  if (result < 0) return std::unexpected(Errno{errno});
  return {};
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kernel::kNameMax && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

}  // namespace

SysResult<ArenaReader> ArenaReader::open(int arena_fd, std::uint64_t entries_max) {
  struct stat status{};
  TRY_VOID(check_call(::fstat(arena_fd, &status)));
  if (static_cast<std::uint64_t>(status.st_size) != kernel::kArenaSize) return damaged();
  const void* const mapped = ::mmap(reinterpret_cast<void*>(kArenaBase), kernel::kArenaSize, PROT_READ,
                                    MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED_NOREPLACE, arena_fd, 0);
  if (mapped == MAP_FAILED) return std::unexpected(Errno{errno});
  return ArenaReader(entries_max);
}

template <typename T>
SysResult<const T*> ArenaReader::object(const void* address, std::size_t size) {
  const auto at = reinterpret_cast<std::uint64_t>(address);
  if (at < kHeapBegin || at >= kHeapEnd || size > kHeapEnd - at || at % alignof(T) != 0) return damaged();
  return static_cast<const T*>(address);
}

SysResult<void> ArenaReader::write_folder(std::uint32_t index, const char* path) {
  const kernel::ArenaRoots& roots = kernel::arena_roots();
  if (index >= kernel::ArenaRoots::kWritableMax) return damaged();
  if (index >= roots.writable_count) return {};  // it ended before it had one
  const auto* const folder = TRY(object<kernel::TmpFolder>(roots.writable[index]));
  const Fd fd = TRY(open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  return write_names(*folder, fd.get(), path, 0);
}

SysResult<void> ArenaReader::write_names(const kernel::TmpFolder& folder, int fd, const std::string& path,
                                         unsigned depth) {
  using Entry = kernel::TmpFolder::Entry;
  for (const void* next = folder.first_; next != nullptr;) {
    if (entries_left_-- == 0) return damaged();
    const auto* const entry = TRY(object<Entry>(next));
    TRY(object<Entry>(entry, sizeof(Entry) + entry->name_size));
    const std::string name(reinterpret_cast<const char*>(entry + 1), entry->name_size);
    if (!is_name(name)) return damaged();
    TRY_VOID(write_entry(entry->inode.get(), fd, name, path + "/" + name, depth));
    next = entry->next;
  }
  return {};
}

SysResult<void> ArenaReader::write_entry(const void* inode, int fd, const std::string& name, const std::string& path,
                                         unsigned depth) {
  const std::uint32_t mode = TRY(object<kernel::TmpInode>(inode))->mode;
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return write_subfolder(*TRY(object<kernel::TmpFolder>(inode)), fd, name, path, depth);
    case S_IFREG: {
      const auto* const file = TRY(object<kernel::TmpFile>(inode));
      if (const auto known = written_.find(inode); known != written_.end()) {
        return check_call(::linkat(AT_FDCWD, known->second.c_str(), fd, name.c_str(), 0));
      }
      if (file->links > 1) written_.emplace(inode, path);
      return write_file(*file, fd, name);
    }
    case S_IFLNK:
      return write_link(*TRY(object<kernel::TmpLink>(inode)), fd, name);
    case S_IFIFO:
    case S_IFSOCK:
      return check_call(::mknodat(fd, name.c_str(), (mode & S_IFMT) | 0600, 0));
    default:
      return damaged();
  }
}

SysResult<void> ArenaReader::write_subfolder(const kernel::TmpFolder& folder, int fd, const std::string& name,
                                             const std::string& path, unsigned depth) {
  TRY_VOID(check_call(::mkdirat(fd, name.c_str(), 0700)));
  const Fd inner = TRY(open_at(fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (depth < kDepthMax) TRY_VOID(write_names(folder, inner.get(), path, depth + 1));
  return check_call(::fchmod(inner.get(), folder.mode & 0777));
}

SysResult<void> ArenaReader::write_file(const kernel::TmpFile& file, int fd, const std::string& name) {
  const Fd to(::openat(fd, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!to.is_open()) return std::unexpected(Errno{errno});
  const std::uint64_t size = file.size;
  if (size > INT64_MAX) return damaged();
  TRY_VOID(check_call(::ftruncate(to.get(), static_cast<off_t>(size))));
  if (file.range_ != nullptr) TRY_VOID(write_pages(file, to.get()));
  return check_call(::fchmod(to.get(), file.mode & 0777));
}

// Those that are there; the rest are holes.
SysResult<void> ArenaReader::write_pages(const kernel::TmpFile& file, int fd) {
  const auto* const range = TRY(object<kernel::DataRange>(file.range_));
  const std::uint64_t address = range->address;
  const std::uint8_t order = range->order;
  if (address < kDataBegin || address >= kDataEnd || address % kPageSize != 0 || order > kernel::kDataOrderMax ||
      (kPageSize << order) > kDataEnd - address) {
    return damaged();
  }
  const std::uint64_t bit_count = file.bit_count_;
  const std::uint64_t* bits = &file.few_bits_;
  if (bit_count > 64) bits = TRY(object<std::uint64_t>(file.bits_, bit_count / 8));
  const std::uint64_t size = file.size;
  const std::uint64_t size_pages = size / kPageSize + (size % kPageSize != 0 ? 1 : 0);
  const std::uint64_t pages = std::min({size_pages, bit_count, std::uint64_t{1} << order});
  for (std::uint64_t page = 0; page < pages; ++page) {
    if ((bits[page / 64] >> (page % 64) & 1) == 0) continue;
    const std::uint64_t at = page * kPageSize;
    const std::uint64_t count = std::min(kPageSize, size - at);
    const ssize_t written = ::pwrite(fd, reinterpret_cast<const void*>(address + at), count, static_cast<off_t>(at));
    if (written < 0) return std::unexpected(Errno{errno});
    if (static_cast<std::uint64_t>(written) != count) return std::unexpected(Errno{ENOSPC});
  }
  return {};
}

SysResult<void> ArenaReader::write_link(const kernel::TmpLink& link, int fd, const std::string& name) {
  const std::uint64_t size = link.size;
  if (size == 0 || size >= kernel::kPathMax) return damaged();
  const std::string target(TRY(object<char>(link.text_, size)), size);
  return check_call(::symlinkat(target.c_str(), fd, name.c_str()));
}

int read_arena(std::span<char* const> arguments) {
  constexpr int kArenaDescriptor = 3;
  std::uint64_t entries_max = 0;
  if (arguments.empty()) return 2;
  std::from_chars(arguments[0], arguments[0] + std::strlen(arguments[0]), entries_max);
  // As the program left it, HOME may be gone.
  if (::chdir("/") != 0) return 2;
  ::rmdir("/tmp/home");
  auto reader = ArenaReader::open(kArenaDescriptor, entries_max);
  if (!reader) return 2;
  for (std::uint32_t i = 1; i < arguments.size(); ++i) {
    if (!reader->write_folder(i - 1, arguments[i])) return 1;
  }
  return 0;
}

}  // namespace belljar::broker
