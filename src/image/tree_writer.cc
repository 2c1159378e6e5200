#include "image/tree_writer.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/utf8.h"
#include "host/open_path.h"
#include "image/cache_folder.h"
#include "spec/errors.h"

namespace belljar {
namespace {

std::unexpected<Error> refuse(std::string_view path, std::string_view why) {
  return fail(ErrorCode::bad_image, fmt::format("entry {}: {}", quote(path), why));
}

std::unexpected<Error> failed(std::string_view path, int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return fail(ErrorCode::no_resources, fmt::format("no room on the disk for entry {}", quote(path)));
    case ELOOP:
      return refuse(path, "a folder above it is a symbolic link, which is not followed");
    case ENOTDIR:
      return refuse(path, "what should be the folder above it is none");
    default:
      return refuse(path, fmt::format("can't be made: {}", errno_text(error)));
  }
}

const char* last_name(const std::string& path) {
  return path.c_str() + (path.rfind('/') + 1);  // npos + 1 is 0
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

bool is_folder_at(int parent_fd, const char* name) {
  struct stat status{};
  return ::fstatat(parent_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

timespec sound_time(timespec time) {
  if (time.tv_nsec < 0 || time.tv_nsec > 999'999'999) time.tv_nsec = 0;  // else utimensat(2) reads a wish of its own
  return time;
}

bool is_zero(std::string_view bytes) {
  return bytes.empty() || (bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

unsigned image_id(std::uint64_t id) {
  return id > kImageIdMax ? kNobody : static_cast<unsigned>(id);
}

SysResult<std::vector<std::string>> names_in(int folder_fd) {
  Fd copy = TRY(open_at(folder_fd, ".", O_RDONLY | O_DIRECTORY));
  DIR* const stream = ::fdopendir(copy.get());
  if (stream == nullptr) return std::unexpected(Errno{errno});
  (void)copy.release();
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream)) {  // NOLINT(concurrency-mt-unsafe): one stream, one thread
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
      names.emplace_back(entry->d_name);
  }
  ::closedir(stream);
  return names;
}

}  // namespace

TreeWriter::TreeWriter(int root_fd, Ownership ownership, const TreeLimits& limits, LayerPlace place,
                       const TreeCounts& counts)
    : root_fd_(root_fd), ownership_(ownership), limits_(limits), place_(place), counts_(counts) {}

Result<void> TreeWriter::add(const TreeEntry& entry, const ContentReader& next_block) {
  using Kind = TreeEntry::Kind;
  TRY_VOID(count(entry));
  remember(entry.path);
  const int parent_fd = TRY(parent_of(entry.path));
  if (entry.kind == Kind::folder) return add_folder(parent_fd, entry);
  TRY_VOID(make_room(parent_fd, entry));
  switch (entry.kind) {
    case Kind::file:
      return add_file(parent_fd, entry, next_block);
    case Kind::link:
      return add_link(parent_fd, entry);
    case Kind::hard_link:
      return add_hard_link(parent_fd, entry);
    default:
      return {};
  }
}

Result<void> TreeWriter::count(const TreeEntry& entry) {
  if (++counts_.entries > limits_.entries_max) {
    return fail(ErrorCode::bad_image,
                fmt::format("more than {} entries; belljar image load --max-entries allows more", limits_.entries_max));
  }
  if (entry.kind == TreeEntry::Kind::special) ++counts_.special_files;
  if (entry.kind != TreeEntry::Kind::link && (entry.mode & (S_ISUID | S_ISGID)) != 0) ++counts_.set_id_bits;
  if (entry.uid > kImageIdMax || entry.gid > kImageIdMax) ++counts_.foreign_ids;
  if (entry.kind != TreeEntry::Kind::file) return {};
  if (entry.size > limits_.bytes_max - std::min(counts_.bytes, limits_.bytes_max)) {
    return fail(ErrorCode::bad_image, fmt::format("entry {}: with it the image is larger than {} MiB unpacked; "
                                                  "belljar image load --max-size allows more",
                                                  quote(entry.path), limits_.bytes_max >> 20));
  }
  counts_.bytes += entry.size;
  return {};
}

// In the first layer nothing lies below, so that nothing has to be told apart from it.
void TreeWriter::remember(const std::string& path) {
  if (place_ == LayerPlace::first) return;
  for (std::string each = path; !each.empty(); each = folder_of(each)) {
    if (!written_.insert(each).second) break;
  }
}

// Opens the folder `path`, making what is missing of it.
Result<Fd> TreeWriter::open_parent(const std::string& path) {
  constexpr int kFlags = O_PATH | O_DIRECTORY;
  auto opened = host::open_beneath(root_fd_, path.empty() ? "." : path.c_str(), kFlags);
  if (opened) return std::move(*opened);
  if (opened.error().value != ENOENT) return failed(path, opened.error().value);
  const Fd above = TRY(open_parent(folder_of(path)));
  if (::mkdirat(above.get(), last_name(path), 0755) != 0) return failed(path, errno);
  ++counts_.entries;
  opened = host::open_beneath(above.get(), last_name(path), kFlags);
  if (!opened) return failed(path, opened.error().value);
  return std::move(*opened);
}

Result<int> TreeWriter::parent_of(const std::string& path) {
  std::string folder = folder_of(path);
  if (!parent_.is_open() || folder != parent_path_) {
    parent_ = TRY(open_parent(folder));
    parent_path_ = std::move(folder);
  }
  return parent_.get();
}

// Removes what is in the entry's place.
Result<void> TreeWriter::make_room(int parent_fd, const TreeEntry& entry) {
  const char* const name = last_name(entry.path);
  if (::unlinkat(parent_fd, name, 0) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR) return failed(entry.path, errno);
  if (!remove_tree(parent_fd, name)) return refuse(entry.path, "the folder in its place can't be removed");
  return {};
}

Result<void> TreeWriter::set_owner(int fd, const TreeEntry& entry) const {
  if (ownership_ == Ownership::caller) return {};
  if (::fchown(fd, image_id(entry.uid), image_id(entry.gid)) != 0) return failed(entry.path, errno);
  return {};
}

Result<void> TreeWriter::add_folder(int parent_fd, const TreeEntry& entry) {
  const char* const name = last_name(entry.path);
  if (::mkdirat(parent_fd, name, 0700) != 0) {
    if (errno != EEXIST) return failed(entry.path, errno);
    if (!is_folder_at(parent_fd, name)) {
      TRY_VOID(make_room(parent_fd, entry));
      if (::mkdirat(parent_fd, name, 0700) != 0) return failed(entry.path, errno);
    }
  }
  const auto folder = open_at(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder) return failed(entry.path, folder.error().value);
  TRY_VOID(set_owner(folder->get(), entry));
  if (::fchmod(folder->get(), entry.mode & 01777) != 0) return failed(entry.path, errno);
  folder_times_.emplace_back(entry.path, sound_time(entry.modified));
  return {};
}

Result<void> TreeWriter::add_file(int parent_fd, const TreeEntry& entry, const ContentReader& next_block) {
  const auto file = open_at(parent_fd, last_name(entry.path), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!file) return failed(entry.path, file.error().value);
  TRY_VOID(write_content(file->get(), entry, next_block));
  TRY_VOID(set_owner(file->get(), entry));
  if (::fchmod(file->get(), entry.mode & 0777) != 0) return failed(entry.path, errno);
  const timespec times[2] = {sound_time(entry.modified), sound_time(entry.modified)};
  if (::futimens(file->get(), times) != 0) return failed(entry.path, errno);
  return {};
}

// Blocks of zeros become holes: a few KiB of a packed layer can stand for many GiB of them.
Result<void> TreeWriter::write_content(int fd, const TreeEntry& entry, const ContentReader& next_block) {
  std::uint64_t end = 0;
  while (true) {
    const std::optional<ContentBlock> block = TRY(next_block());
    if (!block) break;
    if (block->offset < end || block->offset > entry.size || block->bytes.size() > entry.size - block->offset) {
      return refuse(entry.path, "its content is not where its size says");
    }
    end = block->offset + block->bytes.size();
    if (is_zero(block->bytes)) continue;
    std::string_view rest = block->bytes;
    auto offset = static_cast<off_t>(block->offset);
    while (!rest.empty()) {
      const ssize_t count = ::pwrite(fd, rest.data(), rest.size(), offset);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return failed(entry.path, errno);
      rest.remove_prefix(static_cast<std::size_t>(count));
      offset += count;
    }
  }
  if (::ftruncate(fd, static_cast<off_t>(entry.size)) != 0) return failed(entry.path, errno);
  return {};
}

Result<void> TreeWriter::add_link(int parent_fd, const TreeEntry& entry) {
  const char* const name = last_name(entry.path);
  if (entry.target.empty() || entry.target.find('\0') != std::string::npos) {
    return refuse(entry.path, "a link to nothing");
  }
  if (::symlinkat(entry.target.c_str(), parent_fd, name) != 0) return failed(entry.path, errno);
  if (ownership_ == Ownership::image &&
      ::fchownat(parent_fd, name, image_id(entry.uid), image_id(entry.gid), AT_SYMLINK_NOFOLLOW) != 0) {
    return failed(entry.path, errno);
  }
  const timespec times[2] = {sound_time(entry.modified), sound_time(entry.modified)};
  if (::utimensat(parent_fd, name, times, AT_SYMLINK_NOFOLLOW) != 0) return failed(entry.path, errno);
  return {};
}

Result<void> TreeWriter::add_hard_link(int parent_fd, const TreeEntry& entry) {
  const std::string folder = folder_of(entry.target);
  const auto source = host::open_beneath(root_fd_, folder.empty() ? "." : folder.c_str(), O_PATH | O_DIRECTORY);
  if (!source || ::linkat(source->get(), last_name(entry.target), parent_fd, last_name(entry.path), 0) != 0) {
    const int error = source ? errno : source.error().value;
    return refuse(entry.path, fmt::format("can't be a hard link to {}: {}", quote(entry.target), errno_text(error)));
  }
  return {};
}

Result<void> TreeWriter::remove(const std::string& path) {
  if (place_ == LayerPlace::first) return {};
  const std::string folder = folder_of(path);
  const auto parent = host::open_beneath(root_fd_, folder.empty() ? "." : folder.c_str(), O_PATH | O_DIRECTORY);
  if (!parent) return parent.error().value == ENOENT ? Result<void>() : failed(path, parent.error().value);
  return remove_lower(parent->get(), path);
}

Result<void> TreeWriter::make_opaque(const std::string& path) {
  if (place_ == LayerPlace::first) return {};
  const auto folder = host::open_beneath(root_fd_, path.empty() ? "." : path.c_str(), O_PATH | O_DIRECTORY);
  if (!folder) return folder.error().value == ENOENT ? Result<void>() : failed(path, folder.error().value);
  return empty_lower(folder->get(), path);
}

Result<void> TreeWriter::remove_lower(int parent_fd, const std::string& path) {
  const char* const name = last_name(path);
  if (!written_.contains(path)) {
    forget_parent();
    if (!remove_tree(parent_fd, name)) return refuse(path, "can't be removed, as this layer wants");
    return {};
  }
  if (!is_folder_at(parent_fd, name)) return {};
  const auto folder = open_at(parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!folder) return failed(path, folder.error().value);
  return empty_lower(folder->get(), path);
}

Result<void> TreeWriter::empty_lower(int folder_fd, const std::string& path) {
  const auto names = names_in(folder_fd);
  if (!names) return failed(path, names.error().value);
  for (const std::string& name : *names) {
    TRY_VOID(remove_lower(folder_fd, path.empty() ? name : path + '/' + name));
  }
  return {};
}

Result<void> TreeWriter::finish() {
  forget_parent();
  for (const auto& [path, time] : folder_times_) {
    const auto folder = host::open_beneath(root_fd_, path.c_str(), O_RDONLY | O_DIRECTORY);
    if (!folder) continue;  // replaced or removed by a later entry
    const timespec times[2] = {time, time};
    if (::futimens(folder->get(), times) != 0) return failed(path, errno);
  }
  return {};
}

}  // namespace belljar
