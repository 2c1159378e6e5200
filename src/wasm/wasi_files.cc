#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "wasm/wasi_calls.h"
#include "wasm/wasi_results.h"

namespace belljar::wasm::calls {
namespace {

// The parts of memory that a read or write is about. What would not fit one call of the host's is left to the next.
std::expected<std::vector<iovec>, WasiErrno> gather(const Wasi& wasi, u32 vectors, u32 count) {
  if (!wasi.memory().bytes(vectors, u64{count} * sizeof(GuestVector))) return std::unexpected(WasiErrno::fault);
  std::vector<iovec> parts;
  for (u32 i = 0; i < std::min<u32>(count, IOV_MAX); ++i) {
    const auto part = wasi.memory().load<GuestVector>(vectors + i * static_cast<u32>(sizeof(GuestVector)));
    const auto bytes = part ? wasi.memory().bytes(part->address, part->size) : std::nullopt;
    if (!bytes) return std::unexpected(WasiErrno::fault);
    parts.push_back({bytes->data(), bytes->size()});
  }
  return parts;
}

// `move` is readv(2) or one of its family, for one descriptor.
template <typename Move>
WasiErrno move_bytes(Wasi& wasi, u32 vectors, u32 count, u32 size_out, Move move) {
  const std::vector<iovec> parts = WASI_TRY(gather(wasi, vectors, count));
  while (true) {
    const ssize_t moved = move(parts.data(), static_cast<int>(parts.size()));
    if (moved >= 0) return stored(wasi, size_out, static_cast<u32>(moved));
    if (errno != EINTR) return wasi_errno(errno);
  }
}

bool is_offset(u64 value) {
  return value <= static_cast<u64>(INT64_MAX);
}

std::expected<OpenFile*, WasiErrno> find_any(Wasi& wasi, u32 fd) {
  return wasi.find_with(fd, 0);
}

// One entry of a folder as the host's kernel lays it out, getdents64(2).
struct HostEntry {
  u64 inode;
  u64 next;
  std::uint16_t size;
  unsigned char kind;
  char name[];
};

// Appends an entry to what is left of the module's buffer, cut short where it does not fit. False once it is full.
bool add_entry(const HostEntry& entry, std::span<std::byte>* left, u32* used) {
  const std::size_t name_size = std::strlen(entry.name);
  const DirectoryEntry header{.next = entry.next,
                              .inode = entry.inode,
                              .name_size = static_cast<u32>(name_size),
                              .kind = file_kind_of_entry(entry.kind),
                              .padding = {}};
  const auto add = [&](const void* bytes, std::size_t size) {
    const std::size_t taken = std::min(size, left->size());
    std::memcpy(left->data(), bytes, taken);
    *left = left->subspan(taken);
    *used += static_cast<u32>(taken);
    return taken == size;
  };
  return add(&header, sizeof header) && add(entry.name, name_size);
}

}  // namespace

WasiErrno fd_read(Wasi& wasi, u32 fd, u32 vectors, u32 count, u32 size_out) {
  const OpenFile* const file = WASI_TRY(wasi.find_with(fd, rights::kRead));
  return move_bytes(wasi, vectors, count, size_out,
                    [&](const iovec* parts, int size) { return ::readv(file->fd(), parts, size); });
}

WasiErrno fd_write(Wasi& wasi, u32 fd, u32 vectors, u32 count, u32 size_out) {
  const OpenFile* const file = WASI_TRY(wasi.find_with(fd, rights::kWrite));
  return move_bytes(wasi, vectors, count, size_out,
                    [&](const iovec* parts, int size) { return ::writev(file->fd(), parts, size); });
}

WasiErrno fd_pread(Wasi& wasi, u32 fd, u32 vectors, u32 count, u64 offset, u32 size_out) {
  const OpenFile* const file = WASI_TRY(wasi.find_with(fd, rights::kRead));
  if (!is_offset(offset)) return WasiErrno::inval;
  return move_bytes(wasi, vectors, count, size_out, [&](const iovec* parts, int size) {
    return ::preadv(file->fd(), parts, size, static_cast<off_t>(offset));
  });
}

WasiErrno fd_pwrite(Wasi& wasi, u32 fd, u32 vectors, u32 count, u64 offset, u32 size_out) {
  const OpenFile* const file = WASI_TRY(wasi.find_with(fd, rights::kWrite));
  if (!is_offset(offset)) return WasiErrno::inval;
  return move_bytes(wasi, vectors, count, size_out, [&](const iovec* parts, int size) {
    return ::pwritev(file->fd(), parts, size, static_cast<off_t>(offset));
  });
}

WasiErrno fd_seek(Wasi& wasi, u32 fd, u64 offset, u32 whence, u32 out) {
  const OpenFile* const file = WASI_TRY(wasi.find_with(fd, 0));
  if ((file->rights & rights::kSeek) == 0) return WasiErrno::spipe;
  constexpr int kWhence[] = {SEEK_SET, SEEK_CUR, SEEK_END};
  if (whence >= std::size(kWhence)) return WasiErrno::inval;
  const off_t place = ::lseek(file->fd(), static_cast<off_t>(offset), kWhence[whence]);
  return place < 0 ? wasi_errno(errno) : stored(wasi, out, static_cast<u64>(place));
}

WasiErrno fd_tell(Wasi& wasi, u32 fd, u32 out) {
  const OpenFile* const file = WASI_TRY(wasi.find_with(fd, 0));
  if ((file->rights & rights::kTell) == 0) return WasiErrno::spipe;
  const off_t place = ::lseek(file->fd(), 0, SEEK_CUR);
  return place < 0 ? wasi_errno(errno) : stored(wasi, out, static_cast<u64>(place));
}

WasiErrno fd_close(Wasi& wasi, u32 fd) {
  return wasi.close(fd) ? WasiErrno::success : WasiErrno::badf;
}

WasiErrno fd_renumber(Wasi& wasi, u32 from, u32 to) {
  return wasi.renumber(from, to) ? WasiErrno::success : WasiErrno::badf;
}

WasiErrno fd_sync(Wasi& wasi, u32 fd) {
  return errno_of(::fsync(WASI_TRY(find_any(wasi, fd))->fd()));
}

WasiErrno fd_datasync(Wasi& wasi, u32 fd) {
  return errno_of(::fdatasync(WASI_TRY(find_any(wasi, fd))->fd()));
}

WasiErrno fd_advise(Wasi& wasi, u32 fd, u64 offset, u64 size, u32 advice) {
  const OpenFile* const file = WASI_TRY(find_any(wasi, fd));
  constexpr int kAdvice[] = {POSIX_FADV_NORMAL,   POSIX_FADV_SEQUENTIAL, POSIX_FADV_RANDOM,
                             POSIX_FADV_WILLNEED, POSIX_FADV_DONTNEED,   POSIX_FADV_NOREUSE};
  if (advice >= std::size(kAdvice) || !is_offset(offset) || !is_offset(size)) return WasiErrno::inval;
  const int error = ::posix_fadvise(file->fd(), static_cast<off_t>(offset), static_cast<off_t>(size), kAdvice[advice]);
  return error == 0 ? WasiErrno::success : wasi_errno(error);
}

WasiErrno fd_allocate(Wasi& wasi, u32 fd, u64 offset, u64 size) {
  const OpenFile* const file = WASI_TRY(wasi.find_with(fd, rights::kAllocate));
  if (!is_offset(offset) || !is_offset(size) || size == 0) return WasiErrno::inval;
  return errno_of(::fallocate(file->fd(), 0, static_cast<off_t>(offset), static_cast<off_t>(size)));
}

WasiErrno fd_fdstat_get(Wasi& wasi, u32 fd, u32 out) {
  const OpenFile* const file = WASI_TRY(find_any(wasi, fd));
  const int host = ::fcntl(file->fd(), F_GETFL);
  if (host < 0) return wasi_errno(errno);
  u32 flags = 0;
  if ((host & O_APPEND) != 0) flags |= fdflag::kAppend;
  if ((host & O_NONBLOCK) != 0) flags |= fdflag::kNonblock;
  if ((host & O_SYNC) == O_SYNC) {
    flags |= fdflag::kSync;
  } else if ((host & O_DSYNC) != 0) {
    flags |= fdflag::kDsync;
  }
  return stored(wasi, out,
                FdStat{.kind = file->kind,
                       .padding = 0,
                       .flags = static_cast<std::uint16_t>(flags),
                       .more_padding = 0,
                       .rights = file->rights,
                       .rights_inheriting = file->rights_inheriting});
}

WasiErrno fd_fdstat_set_flags(Wasi& wasi, u32 fd, u32 flags) {
  const OpenFile* const file = WASI_TRY(find_any(wasi, fd));
  return errno_of(::fcntl(file->fd(), F_SETFL, WASI_TRY(to_host_flags(flags))));
}

WasiErrno fd_fdstat_set_rights(Wasi& wasi, u32 fd, u64 base, u64 inheriting) {
  OpenFile* const file = WASI_TRY(find_any(wasi, fd));
  if ((base & ~file->rights) != 0 || (inheriting & ~file->rights_inheriting) != 0) return WasiErrno::notcapable;
  file->rights = base;
  file->rights_inheriting = inheriting;
  return WasiErrno::success;
}

WasiErrno fd_filestat_get(Wasi& wasi, u32 fd, u32 out) {
  const OpenFile* const file = WASI_TRY(find_any(wasi, fd));
  struct stat status{};
  if (::fstat(file->fd(), &status) != 0) return wasi_errno(errno);
  return stored(wasi, out, to_file_stat(status));
}

WasiErrno fd_filestat_set_size(Wasi& wasi, u32 fd, u64 size) {
  const OpenFile* const file = WASI_TRY(wasi.find_with(fd, rights::kSetSize));
  if (!is_offset(size)) return WasiErrno::inval;
  return errno_of(::ftruncate(file->fd(), static_cast<off_t>(size)));
}

WasiErrno fd_filestat_set_times(Wasi& wasi, u32 fd, u64 access_ns, u64 modify_ns, u32 flags) {
  const OpenFile* const file = WASI_TRY(find_any(wasi, fd));
  const FileTimes times = WASI_TRY(to_file_times(access_ns, modify_ns, flags));
  return errno_of(::futimens(file->fd(), times.times));
}

WasiErrno fd_prestat_get(Wasi& wasi, u32 fd, u32 out) {
  const OpenFile* const file = WASI_TRY(find_any(wasi, fd));
  if (file->preopened_as.empty()) return WasiErrno::badf;
  return stored(wasi, out, Prestat{.tag = 0, .name_size = static_cast<u32>(file->preopened_as.size())});
}

WasiErrno fd_prestat_dir_name(Wasi& wasi, u32 fd, u32 buffer, u32 size) {
  const OpenFile* const file = WASI_TRY(find_any(wasi, fd));
  const std::string& name = file->preopened_as;
  if (name.empty()) return WasiErrno::badf;
  if (size < name.size()) return WasiErrno::nametoolong;
  const auto place = wasi.memory().bytes(buffer, name.size());
  if (!place) return WasiErrno::fault;
  std::memcpy(place->data(), name.data(), name.size());
  return WasiErrno::success;
}

// A cookie is where the host's kernel goes on, so that nothing is kept between two calls.
WasiErrno fd_readdir(Wasi& wasi, u32 fd, u32 buffer, u32 size, u64 cookie, u32 size_out) {
  const OpenFile* const file = WASI_TRY(wasi.find_with(fd, rights::kReaddir));
  if (file->kind != FileKind::directory) return WasiErrno::notdir;
  auto left = wasi.memory().bytes(buffer, size);
  if (!left || !is_offset(cookie)) return left ? WasiErrno::inval : WasiErrno::fault;
  if (::lseek(file->fd(), static_cast<off_t>(cookie), SEEK_SET) < 0) return wasi_errno(errno);
  alignas(HostEntry) std::array<char, 16384> entries;
  u32 used = 0;
  while (!left->empty()) {
    const ssize_t count = ::getdents64(file->fd(), entries.data(), entries.size());
    if (count < 0) return wasi_errno(errno);
    if (count == 0) break;
    for (ssize_t at = 0; at < count;) {
      const auto* const entry = reinterpret_cast<const HostEntry*>(entries.data() + at);
      if (!add_entry(*entry, &*left, &used)) return stored(wasi, size_out, used);
      at += entry->size;
    }
  }
  return stored(wasi, size_out, used);
}

}  // namespace belljar::wasm::calls
