// What a file does where its kind does not say otherwise.
#include "kernel/fs/file.h"

#include <string.h>

#include "kernel/arena/layout.h"
#include "kernel/fs/inode.h"

namespace belljar::kernel {

SysResult<std::uint64_t> File::read(Buffers&, std::uint64_t*) {
  return error(EINVAL);
}

SysResult<std::uint64_t> File::write(Buffers&, std::uint64_t*) {
  return error(EINVAL);
}

SysResult<std::uint64_t> File::seek_from_content(std::uint64_t, int) {
  return error(EINVAL);
}

SysResult<std::uint64_t> File::ioctl(std::uint32_t, std::uint64_t) {
  return error(ENOTTY);
}

SysResult<MapSource> File::map(std::uint64_t, std::uint64_t, bool, bool) {
  return error(ENODEV);
}

SysResult<std::uint64_t> File::list(Buffers&, std::uint64_t*) {
  return error(ENOTDIR);
}

SysResult<Ref<File>> File::reopen(std::uint32_t) {
  return error(ENXIO);
}

SysResult<void> File::stat(struct stat* status) {
  if (Inode* const named = inode()) return named->fill_stat(status);
  *status = {};
  status->st_mode = S_IRUSR | S_IWUSR;
  status->st_nlink = 1;
  status->st_blksize = kPageSize;
  return {};
}

SysResult<void> File::truncate(std::uint64_t) {
  return error(EINVAL);
}

SysResult<void> File::allocate(int, std::uint64_t, std::uint64_t) {
  return error(is_seekable() ? ENODEV : ESPIPE);
}

std::size_t File::describe(char* text, std::size_t size) const {
  constexpr std::string_view kText = "anon_inode:[file]";
  const std::size_t count = kText.size() < size ? kText.size() : size;
  memcpy(text, kText.data(), count);
  return count;
}

}  // namespace belljar::kernel
