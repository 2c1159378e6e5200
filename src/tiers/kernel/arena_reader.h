// Reads the files that a program has left in the memory of its user-space kernel, when every process of the sandbox is
// gone, and writes them into folders of this process's own. Runs as a program of its own, alone in a sandbox of the
// container tier: what is in that memory is hostile, and all that it can do is to have other files written there, as a
// program of that tier can.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kernel/arena/layout.h"

namespace belljar::kernel {
class Inode;
class TmpFile;
class TmpFolder;
class TmpLink;
}  // namespace belljar::kernel

namespace belljar::broker {

class ArenaReader {
 public:
  // Maps the arena, which is descriptor `arena_fd`, where guests had it: so its pointers hold.
  static SysResult<ArenaReader> open(int arena_fd, std::uint64_t entries_max);

  // Writes what is in the sandbox's writable folder `index` (ArenaRoots::writable) into the folder `path`. EBADMSG:
  // what the arena has there is damaged; other errors are of files that are written.
  SysResult<void> write_folder(std::uint32_t index, const char* path);

 private:
  explicit ArenaReader(std::uint64_t entries_max) : entries_left_(entries_max) {}

  // `address` as an object that lies in the kernel's heap as a whole; EBADMSG.
  template <typename T>
  static SysResult<const T*> object(const void* address, std::size_t size = sizeof(T));

  SysResult<void> write_names(const kernel::TmpFolder& folder, int fd, const std::string& path, unsigned depth);
  SysResult<void> write_entry(const void* inode, int fd, const std::string& name, const std::string& path,
                              unsigned depth);
  SysResult<void> write_subfolder(const kernel::TmpFolder& folder, int fd, const std::string& name,
                                  const std::string& path, unsigned depth);
  static SysResult<void> write_file(const kernel::TmpFile& file, int fd, const std::string& name);
  static SysResult<void> write_pages(const kernel::TmpFile& file, int fd);
  static SysResult<void> write_link(const kernel::TmpLink& link, int fd, const std::string& name);

  std::uint64_t entries_left_;
  std::map<const void*, std::string> written_;  // files that may have more names, and the first of them
};

// The main function of the program in that form: arguments are the most entries that there may be, and the folders in
// the order of ArenaRoots::writable. Returns the exit status.
int read_arena(std::span<char* const> arguments);

}  // namespace belljar::broker
