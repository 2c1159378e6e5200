#include "files/same_content.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/sha256.h"

namespace belljar {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{128} << 10;

// The bytes at `offset`, fewer than wanted only at the end; -1 where they can't be read.
ssize_t read_block(int fd, char* block, off_t offset) {
  std::size_t filled = 0;
  while (filled < kBlockBytes) {
    const ssize_t count = ::pread(fd, block + filled, kBlockBytes - filled, offset + static_cast<off_t>(filled));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  return static_cast<ssize_t>(filled);
}

}  // namespace

bool have_same_content(int fd, int other_fd) {
  std::vector<char> block(kBlockBytes);
  std::vector<char> other_block(kBlockBytes);
  for (off_t offset = 0;; offset += static_cast<off_t>(kBlockBytes)) {
    const ssize_t count = read_block(fd, block.data(), offset);
    if (count < 0 || count != read_block(other_fd, other_block.data(), offset)) return false;
    if (std::memcmp(block.data(), other_block.data(), static_cast<std::size_t>(count)) != 0) return false;
    if (count < static_cast<ssize_t>(kBlockBytes)) return true;
  }
}

SysResult<std::string> content_sha256(int fd) {
  std::vector<char> block(kBlockBytes);
  Sha256 hash;
  for (off_t offset = 0;; offset += static_cast<off_t>(kBlockBytes)) {
    const ssize_t count = read_block(fd, block.data(), offset);
    if (count < 0) return std::unexpected(Errno{errno});
    hash.update({block.data(), static_cast<std::size_t>(count)});
    if (count < static_cast<ssize_t>(kBlockBytes)) return hash.finish();
  }
}

}  // namespace belljar
