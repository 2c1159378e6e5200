#include "files/install_file.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "files/nameless_file.h"
#include "files/workspace.h"

namespace belljar {
namespace {

constexpr unsigned kFileMode = 0666;
constexpr unsigned kExecutableMode = 0777;
constexpr unsigned kMayExecute = 0111;

// Leave to execute for whoever may read.
unsigned with_execution(unsigned mode, bool is_executable) {
  mode &= 0777;
  return is_executable ? mode | ((mode & 0444) >> 2) : mode & ~kMayExecute;
}

// A file without a name, or under the temporary one where the file system has no such.
struct NewFile {
  Fd file;
  bool has_name = false;
};

SysResult<NewFile> make_file(const Installation& installation) {
  const unsigned mode = installation.is_executable ? kExecutableMode : kFileMode;
  auto nameless = make_nameless_file(installation.folder_fd, mode);
  if (nameless) return NewFile{std::move(*nameless), false};
  if (nameless.error().value != EOPNOTSUPP) return std::unexpected(nameless.error());
  const char* const name = installation.temporary_name.c_str();
  return NewFile{TRY(open_at(installation.folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode)), true};
}

// Holes stay holes.
SysResult<void> copy_content(int from, int to) {
  struct stat status{};
  if (::fstat(from, &status) != 0) return std::unexpected(Errno{errno});
  for (off_t offset = 0; offset < status.st_size;) {
    const off_t begin = ::lseek(from, offset, SEEK_DATA);
    if (begin < 0 && errno == ENXIO) break;  // the rest is a hole
    if (begin > 0 && ::lseek(to, begin, SEEK_SET) < 0) return std::unexpected(Errno{errno});
    offset = std::max(offset, begin);
    const off_t end = ::lseek(from, offset, SEEK_HOLE);
    const off_t size = (end < 0 ? status.st_size : end) - offset;
    const ssize_t count = ::sendfile(to, from, &offset, static_cast<std::size_t>(size));
    if (count == 0) return std::unexpected(Errno{EIO});
    if (count < 0 && errno != EINTR) return std::unexpected(Errno{errno});
  }
  if (::ftruncate(to, status.st_size) != 0) return std::unexpected(Errno{errno});
  return {};
}

SysResult<void> take_over(const struct stat& from, int file, bool is_executable) {
  struct stat now{};
  if (::fstat(file, &now) != 0) return std::unexpected(Errno{errno});
  const bool has_owner = now.st_uid == from.st_uid && now.st_gid == from.st_gid;
  if (!has_owner && ::fchown(file, from.st_uid, from.st_gid) != 0) return std::unexpected(Errno{errno});
  if (::fchmod(file, with_execution(from.st_mode, is_executable)) != 0) return std::unexpected(Errno{errno});
  return {};
}

SysResult<void> name_file(const Installation& installation, const NewFile& made) {
  const int folder = installation.folder_fd;
  const char* const temporary = installation.temporary_name.c_str();
  const char* const name = installation.name.c_str();
  if (installation.replaced == nullptr && !made.has_name)
    return link_nameless_file(made.file.get(), folder, installation.name);
  if (!made.has_name) TRY_VOID(link_nameless_file(made.file.get(), folder, installation.temporary_name));
  int result = -1;
  if (installation.replaced == nullptr) {
    result = ::linkat(folder, temporary, folder, name, 0);
    if (result == 0) ::unlinkat(folder, temporary, 0);
  } else {
    struct stat now{};
    const bool is_there = ::fstatat(folder, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(now.st_mode) &&
                          stamp_of(now) == stamp_of(*installation.replaced);
    errno = ESTALE;
    if (is_there) result = ::renameat(folder, temporary, folder, name);
  }
  if (result == 0) return {};
  const int error = errno;
  ::unlinkat(folder, temporary, 0);
  return std::unexpected(Errno{error});
}

}  // namespace

SysResult<void> install_file(const Installation& installation) {
  const NewFile made = TRY(make_file(installation));
  SysResult<void> done = copy_content(installation.content_fd, made.file.get());
  if (done && installation.replaced != nullptr) {
    done = take_over(*installation.replaced, made.file.get(), installation.is_executable);
  }
  if (done) return name_file(installation, made);
  if (made.has_name) ::unlinkat(installation.folder_fd, installation.temporary_name.c_str(), 0);
  return done;
}

}  // namespace belljar
