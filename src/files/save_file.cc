#include "files/save_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "base/fd.h"
#include "base/sha256.h"
#include "files/list_folder.h"
#include "files/nameless_file.h"

namespace belljar {
namespace {

constexpr unsigned kBytesPerBlock = 512;  // of st_blocks, stat(2)
constexpr std::array<char, 4096> kZeros{};
constexpr off_t kCancelCheckBytes = off_t{16} << 20;  // of a hole

bool is_sparse(const struct stat& status) {
  return status.st_blocks * kBytesPerBlock < status.st_size;
}

struct Temporary {
  std::string name;  // empty: it has none
  Fd file;
};

// Calls `make` with names of our own until one is free. A Belljar that was killed may have left such names.
template <typename Make>
SysResult<std::string> take_own_name(unsigned* count, Make make) {
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    std::string name = fmt::format(".belljar-{}-{}.part", ::getpid(), (*count)++);
    const SysResult<void> made = make(name);
    if (made) return name;
    if (made.error().value != EEXIST) return std::unexpected(made.error());
  }
  return std::unexpected(Errno{EBUSY});
}

// A new file, with a name of our own only where the file system has none without.
SysResult<Temporary> make_temporary(int folder_fd, unsigned mode, unsigned* count) {
  auto nameless = make_nameless_file(folder_fd, mode);
  if (nameless) return Temporary{{}, std::move(*nameless)};
  if (nameless.error().value != EOPNOTSUPP) return std::unexpected(nameless.error());
  Temporary temporary;
  temporary.name = TRY(take_own_name(count, [&](const std::string& name) -> SysResult<void> {
    temporary.file = TRY(open_at(folder_fd, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
    return {};
  }));
  return temporary;
}

// Gives the finished file its name, where nothing has it yet.
SysResult<void> link_new(int folder_fd, const Temporary& temporary, const std::string& name) {
  if (temporary.name.empty()) return link_nameless_file(temporary.file.get(), folder_fd, name);
  const char* const old_name = temporary.name.c_str();
  if (::renameat2(folder_fd, old_name, folder_fd, name.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno != EINVAL) return std::unexpected(Errno{errno});
  // A file system without that flag.
  if (::linkat(folder_fd, old_name, folder_fd, name.c_str(), 0) != 0) return std::unexpected(Errno{errno});
  ::unlinkat(folder_fd, old_name, 0);
  return {};
}

// The same in the place of another. Only a file with a name can take another's.
SysResult<void> replace(int folder_fd, Temporary& temporary, const std::string& name, unsigned* count) {
  if (temporary.name.empty()) {
    temporary.name = TRY(take_own_name(
        count, [&](const std::string& own) { return link_nameless_file(temporary.file.get(), folder_fd, own); }));
  }
  if (::renameat(folder_fd, temporary.name.c_str(), folder_fd, name.c_str()) == 0) return {};
  return std::unexpected(Errno{errno});
}

}  // namespace

SaveFailure save_failure(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EROFS:
    case EIO:
      return {fmt::format("can't be saved: {}", errno_text(error)), true};
    case ECANCELED:
      return {"stopped by the caller", true};
    case ESTALE:
      return {"it changed while it was read"};
    case EEXIST:
      return {"a file of that name is there already (--collect-overwrite replaces it)"};
    default:
      return {fmt::format("can't be saved: {}", errno_text(error))};
  }
}

bool FileSaver::is_cancelled() const {
  pollfd wanted{cancel_fd_, POLLIN, 0};
  return cancel_fd_ >= 0 && ::poll(&wanted, 1, 0) > 0;
}

// The copying of one file's content.
class FileSaver::Copy {
 public:
  Copy(FileSaver& saver, int from, int to) : saver_(saver), from_(from), to_(to) {}

  SysResult<void> data(off_t begin, off_t end) {
    while (begin < end) {
      if (saver_.is_cancelled()) return std::unexpected(Errno{ECANCELED});
      const auto wanted = std::min<std::size_t>(saver_.buffer_.size(), static_cast<std::size_t>(end - begin));
      const ssize_t count = ::pread(from_, saver_.buffer_.data(), wanted, begin);
      if (count < 0) {
        if (errno == EINTR) continue;
        return std::unexpected(Errno{errno});
      }
      if (count == 0) return std::unexpected(Errno{ESTALE});
      const std::string_view bytes(saver_.buffer_.data(), static_cast<std::size_t>(count));
      hash_.update(bytes);
      TRY_VOID(write_all(to_, bytes));
      begin += count;
    }
    return {};
  }

  SysResult<void> sparse(off_t size) {
    off_t at = 0;
    while (at < size) {
      off_t begin = ::lseek(from_, at, SEEK_DATA);
      if (begin < 0 && errno != ENXIO) return data(at, size);  // a file system that does not tell holes
      begin = begin < 0 ? size : std::min(begin, size);
      TRY_VOID(hole(begin - at));
      if (::lseek(to_, begin, SEEK_SET) < 0) return std::unexpected(Errno{errno});
      if (begin == size) break;
      const off_t end = ::lseek(from_, begin, SEEK_HOLE);
      at = end < 0 ? size : std::min(end, size);
      TRY_VOID(data(begin, at));
    }
    if (::ftruncate(to_, size) != 0) return std::unexpected(Errno{errno});
    return {};
  }

  std::string digest() { return hash_.finish(); }

 private:
  SysResult<void> hole(off_t size) {
    while (size > 0) {
      if (size % kCancelCheckBytes < static_cast<off_t>(kZeros.size()) && saver_.is_cancelled()) {
        return std::unexpected(Errno{ECANCELED});
      }
      const auto count = std::min<std::size_t>(kZeros.size(), static_cast<std::size_t>(size));
      hash_.update({kZeros.data(), count});
      size -= static_cast<off_t>(count);
    }
    return {};
  }

  FileSaver& saver_;
  int from_;
  int to_;
  Sha256 hash_;
};

std::expected<SavedFile, SaveFailure> FileSaver::save(int source_fd, const struct stat& status, int folder_fd,
                                                      const std::string& name, ExistingFiles existing) {
  struct stat there{};
  const bool is_there = ::fstatat(folder_fd, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0;
  const FileKind kind = is_there ? kind_of_mode(there.st_mode) : FileKind::unknown;
  if (is_there && kind != FileKind::regular) {
    return std::unexpected(SaveFailure{fmt::format("{} is in its place, and is never replaced", kind_text(kind))});
  }
  if (is_there && existing == ExistingFiles::keep) return std::unexpected(save_failure(EEXIST));

  const unsigned mode = (status.st_mode & S_IXUSR) != 0 ? 0777 : 0666;
  auto temporary = make_temporary(folder_fd, mode, &count_);
  if (!temporary) return std::unexpected(save_failure(temporary.error().value));
  Copy copy(*this, source_fd, temporary->file.get());
  SysResult<void> done = is_sparse(status) ? copy.sparse(status.st_size) : copy.data(0, status.st_size);
  if (done) done = is_there ? replace(folder_fd, *temporary, name, &count_) : link_new(folder_fd, *temporary, name);
  if (done) return SavedFile{copy.digest(), is_there ? FileChange::modified : FileChange::added};
  if (!temporary->name.empty()) ::unlinkat(folder_fd, temporary->name.c_str(), 0);
  return std::unexpected(save_failure(done.error().value));
}

}  // namespace belljar
