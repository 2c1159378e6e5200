#include "files/list_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace belljar {
namespace {

FileKind kind_of_entry(int folder_fd, const dirent64& entry) {
  if (entry.d_type != DT_UNKNOWN) return kind_of_mode(DTTOIF(entry.d_type));
  struct stat status{};
  const bool is_seen = ::fstatat(folder_fd, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0;
  return is_seen ? kind_of_mode(status.st_mode) : FileKind::unknown;
}

}  // namespace

const char* kind_text(FileKind kind) {
  switch (kind) {
    case FileKind::regular:
      return "a file";
    case FileKind::folder:
      return "a folder";
    case FileKind::link:
      return "a symbolic link";
    case FileKind::pipe:
      return "a named pipe";
    case FileKind::socket:
      return "a socket";
    case FileKind::device:
      return "a device";
    case FileKind::unknown:
      break;
  }
  return "neither a file nor a folder";
}

FileKind kind_of_mode(unsigned mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return FileKind::regular;
    case S_IFDIR:
      return FileKind::folder;
    case S_IFLNK:
      return FileKind::link;
    case S_IFIFO:
      return FileKind::pipe;
    case S_IFSOCK:
      return FileKind::socket;
    case S_IFCHR:
    case S_IFBLK:
      return FileKind::device;
    default:
      return FileKind::unknown;
  }
}

SysResult<FolderListing> list_folder(int folder_fd, std::size_t entries_max) {
  FolderListing listing;
  alignas(dirent64) std::array<char, 32768> buffer;
  while (!listing.is_cut) {
    const ssize_t size = ::getdents64(folder_fd, buffer.data(), buffer.size());
    if (size < 0) return std::unexpected(Errno{errno});
    if (size == 0) break;
    for (ssize_t at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
      at += entry->d_reclen;
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      listing.is_cut = listing.entries.size() == entries_max;
      if (listing.is_cut) break;
      listing.entries.push_back({std::string(name), kind_of_entry(folder_fd, *entry)});
    }
  }
  std::ranges::sort(listing.entries, {}, &FolderEntry::name);
  return listing;
}

}  // namespace belljar
