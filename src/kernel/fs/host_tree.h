// The read-only tree of the host or of an image, as the broker shows it. What is asked is kept: each name is asked
// once.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string_view>

#include "kernel/base/result.h"
#include "kernel/fs/inode.h"

namespace belljar::kernel {

// Asks the broker. Paths are relative to the root, without "." or "..", and no part of one is a link ("" is the root).
// A call blocks the thread, with signals held back. Tests put their own in place.
class HostTree {
 public:
  struct Facts {
    std::uint64_t number = 0, size = 0, blocks = 0, rdev = 0;
    std::uint32_t mode = 0, uid = 0, gid = 0, links = 1, device = 0;
    Timestamp access_time, modify_time, change_time;
  };
  // One name of a folder with its facts (as of lstat(2)).
  using Visit = void (*)(void* context, std::string_view name, const Facts& facts);

  virtual SysResult<Facts> stat(std::string_view path) = 0;
  // All names of a folder, without "." and "..".
  virtual SysResult<void> list(std::string_view path, Visit visit, void* context) = 0;
  virtual SysResult<std::size_t> read_link(std::string_view path, char* to, std::size_t size) = 0;
  // Brings a regular file's contents into the content file; returns the offset there. `size` may differ from what stat
  // told.
  struct Content {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t image_id = 0;
    PatchedText text;
    bool is_in_parts = false;  // they are not there: read() tells them
  };
  enum class Wanted : std::uint8_t { any, whole };  // `whole`: not in parts
  virtual SysResult<Content> fetch(std::string_view path, Wanted wanted) = 0;
  // What a regular file has from `offset` on, as much of it as `to` has room for and one request carries; 0 at the end.
  virtual SysResult<std::uint64_t> read(std::string_view path, std::uint64_t offset, Buffers& to) = 0;
  // A file whose contents are made when it is read, and differ each time (/proc/meminfo of the container): at most
  // `size` bytes from `offset`.
  virtual SysResult<std::size_t> read_live(std::string_view path, std::uint64_t offset, char* to, std::size_t size) = 0;

 protected:
  ~HostTree() = default;
};

// The file system over a HostTree, or over what is at `path` of it: the sandbox's "/", or a place of the caller's.
// Names are read one by one at first, and a folder as a whole (list) once several of its names were asked for.
SysResult<Ref<Inode>> make_host_file_system(HostTree& tree, std::string_view path = {});

}  // namespace belljar::kernel
