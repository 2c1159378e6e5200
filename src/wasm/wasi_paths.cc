#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "wasm/walk.h"
#include "wasm/wasi_calls.h"
#include "wasm/wasi_results.h"

namespace belljar::wasm::calls {
namespace {

LastLink last_link(u32 lookup) {
  return (lookup & kFollowLinks) != 0 ? LastLink::follow : LastLink::keep;
}

std::expected<int, WasiErrno> find_folder(Wasi& wasi, u32 fd) {
  const OpenFile* const file = wasi.find(fd);
  if (file == nullptr) return std::unexpected(WasiErrno::badf);
  if (file->kind != FileKind::directory) return std::unexpected(WasiErrno::notdir);
  return file->fd();
}

std::expected<Place, WasiErrno> find_place(Wasi& wasi, u32 fd, u32 path, u32 size, LastLink last = LastLink::keep) {
  const auto folder = find_folder(wasi, fd);
  if (!folder) return std::unexpected(folder.error());
  const auto text = wasi.memory().text(path, size);
  if (!text) return std::unexpected(WasiErrno::fault);
  return walk(*folder, *text, last);
}

// What is asked of an open file: reading, writing or both, and how it is opened.
std::expected<int, WasiErrno> open_flags_of(u32 open_flags, u32 fd_flags, u64 wanted) {
  const auto more = to_host_flags(fd_flags);
  if (!more) return std::unexpected(more.error());
  const auto has = [open_flags](u32 flag) { return (open_flags & flag) != 0; };
  constexpr u64 kWrites = rights::kWrite | rights::kAllocate | rights::kSetSize;
  const bool writes = (wanted & kWrites) != 0;
  const bool reads = (wanted & (rights::kRead | rights::kReaddir)) != 0;
  int flags = *more | (writes ? reads ? O_RDWR : O_WRONLY : O_RDONLY);
  // A folder is asked for with every right there is.
  if (has(oflag::kDirectory)) flags = *more | O_RDONLY | O_DIRECTORY;
  if (has(oflag::kCreate)) flags |= O_CREAT;
  if (has(oflag::kExclusive)) flags |= O_EXCL;
  if (has(oflag::kTruncate)) flags |= O_TRUNC;
  return flags;
}

bool is_writing(int flags) {
  return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
}

std::expected<Fd, WasiErrno> open_place(const Place& place, int flags) {
  if (place.must_be_folder) flags |= O_DIRECTORY;
  constexpr unsigned kMode = 0666;
  auto file = open_at(place.folder.get(), place.name.c_str(), flags | O_NOFOLLOW | O_NOCTTY, kMode);
  // A module that asks for everything may still have a folder to read.
  const bool may_be_folder = !file && file.error().value == EISDIR && (flags & (O_CREAT | O_TRUNC)) == 0;
  if (may_be_folder) {
    file = open_at(place.folder.get(), place.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  }
  if (!file) return std::unexpected(wasi_errno(file.error().value));
  return std::move(*file);
}

u64 rights_of(FileKind kind, int flags) {
  if (kind == FileKind::directory) return rights::kAll & ~(rights::kRead | rights::kWrite | rights::kSeek);
  u64 held = rights::kAll;
  const int mode = flags & O_ACCMODE;
  if (mode == O_WRONLY) held &= ~rights::kRead;
  if (mode == O_RDONLY) held &= ~(rights::kWrite | rights::kAllocate | rights::kSetSize);
  if (kind != FileKind::regular_file && kind != FileKind::block_device) held &= ~(rights::kSeek | rights::kTell);
  return held;
}

}  // namespace

WasiErrno path_open(Wasi& wasi, u32 fd, u32 lookup, u32 path, u32 size, u32 open_flags, u64 rights_base,
                    u64 rights_inheriting, u32 fd_flags, u32 out) {
  const int flags = WASI_TRY(open_flags_of(open_flags, fd_flags, rights_base));
  const bool makes_new = (open_flags & (oflag::kCreate | oflag::kExclusive)) == (oflag::kCreate | oflag::kExclusive);
  const Place place = WASI_TRY(find_place(wasi, fd, path, size, makes_new ? LastLink::keep : last_link(lookup)));
  if (place.must_be_folder && is_writing(flags)) return WasiErrno::isdir;
  Fd file = WASI_TRY(open_place(place, flags));
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return wasi_errno(errno);
  const FileKind kind = file_kind_of_mode(status.st_mode);
  OpenFile opened{.owned = std::move(file), .kind = kind, .rights = rights_of(kind, flags) & rights_base};
  if (kind == FileKind::directory) opened.rights_inheriting = rights_inheriting & rights::kAll;
  return stored(wasi, out, WASI_TRY(wasi.add(std::move(opened))));
}

WasiErrno path_create_directory(Wasi& wasi, u32 fd, u32 path, u32 size) {
  const Place place = WASI_TRY(find_place(wasi, fd, path, size));
  return errno_of(::mkdirat(place.folder.get(), place.name.c_str(), 0777));
}

WasiErrno path_filestat_get(Wasi& wasi, u32 fd, u32 lookup, u32 path, u32 size, u32 out) {
  const Place place = WASI_TRY(find_place(wasi, fd, path, size, last_link(lookup)));
  struct stat status{};
  if (::fstatat(place.folder.get(), place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return wasi_errno(errno);
  if (place.must_be_folder && !S_ISDIR(status.st_mode)) return WasiErrno::notdir;
  return stored(wasi, out, to_file_stat(status));
}

WasiErrno path_filestat_set_times(Wasi& wasi, u32 fd, u32 lookup, u32 path, u32 size, u64 access_ns, u64 modify_ns,
                                  u32 flags) {
  const FileTimes times = WASI_TRY(to_file_times(access_ns, modify_ns, flags));
  const Place place = WASI_TRY(find_place(wasi, fd, path, size, last_link(lookup)));
  return errno_of(::utimensat(place.folder.get(), place.name.c_str(), times.times, AT_SYMLINK_NOFOLLOW));
}

WasiErrno path_link(Wasi& wasi, u32 fd, u32 lookup, u32 path, u32 size, u32 new_fd, u32 new_path, u32 new_size) {
  const Place from = WASI_TRY(find_place(wasi, fd, path, size, last_link(lookup)));
  const Place to = WASI_TRY(find_place(wasi, new_fd, new_path, new_size));
  if (from.must_be_folder || to.must_be_folder) return WasiErrno::notdir;
  return errno_of(::linkat(from.folder.get(), from.name.c_str(), to.folder.get(), to.name.c_str(), 0));
}

WasiErrno path_readlink(Wasi& wasi, u32 fd, u32 path, u32 size, u32 buffer, u32 buffer_size, u32 size_out) {
  const Place place = WASI_TRY(find_place(wasi, fd, path, size));
  const auto target = wasi.memory().bytes(buffer, buffer_size);
  if (!target) return WasiErrno::fault;
  std::array<char, PATH_MAX> text;
  const ssize_t count = ::readlinkat(place.folder.get(), place.name.c_str(), text.data(), text.size());
  if (count < 0) return wasi_errno(errno);
  const std::size_t taken = std::min(static_cast<std::size_t>(count), target->size());
  std::memcpy(target->data(), text.data(), taken);
  return stored(wasi, size_out, static_cast<u32>(taken));
}

WasiErrno path_remove_directory(Wasi& wasi, u32 fd, u32 path, u32 size) {
  const Place place = WASI_TRY(find_place(wasi, fd, path, size));
  return errno_of(::unlinkat(place.folder.get(), place.name.c_str(), AT_REMOVEDIR));
}

WasiErrno path_unlink_file(Wasi& wasi, u32 fd, u32 path, u32 size) {
  const Place place = WASI_TRY(find_place(wasi, fd, path, size));
  if (place.must_be_folder) return WasiErrno::notdir;
  return errno_of(::unlinkat(place.folder.get(), place.name.c_str(), 0));
}

WasiErrno path_rename(Wasi& wasi, u32 fd, u32 path, u32 size, u32 new_fd, u32 new_path, u32 new_size) {
  const Place from = WASI_TRY(find_place(wasi, fd, path, size));
  const Place to = WASI_TRY(find_place(wasi, new_fd, new_path, new_size));
  return errno_of(::renameat(from.folder.get(), from.name.c_str(), to.folder.get(), to.name.c_str()));
}

// No link that leads out is followed here. An absolute one is not even made, since it can lead nowhere for a module; of
// a relative one that depends on where it lies, and is moved to: who meets it outside must not follow it blindly.
WasiErrno path_symlink(Wasi& wasi, u32 text, u32 text_size, u32 fd, u32 path, u32 size) {
  const auto target = wasi.memory().text(text, text_size);
  if (!target) return WasiErrno::fault;
  if (target->empty() || target->find('\0') != std::string_view::npos) return WasiErrno::inval;
  if (target->starts_with('/')) return WasiErrno::notcapable;
  const Place place = WASI_TRY(find_place(wasi, fd, path, size));
  if (place.must_be_folder) return WasiErrno::noent;
  return errno_of(::symlinkat(std::string(*target).c_str(), place.folder.get(), place.name.c_str()));
}

}  // namespace belljar::wasm::calls
