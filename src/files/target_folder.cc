#include "files/target_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "host/open_path.h"

namespace belljar {
namespace {

constexpr unsigned kNewFolderMode = 0777;  // less the caller's umask

}  // namespace

TargetFolder::TargetFolder(TargetFolder& parent, const std::string& name)
    : TargetFolder(parent, name, parent.shown_ + "/" + name) {}

TargetFolder::TargetFolder(TargetFolder& parent, std::string name, std::string shown)
    : parent_(&parent), name_(std::move(name)), shown_(std::move(shown)) {}

int TargetFolder::open_existing() {
  if (fd_.is_open() || parent_ == nullptr) return fd_.get();
  const int parent = parent_->open_existing();
  if (parent < 0) return -1;
  auto folder = host::open_beneath(parent, name_.c_str(), O_PATH | O_DIRECTORY);
  if (folder) fd_ = std::move(*folder);
  return fd_.get();
}

SysResult<int> TargetFolder::open() {
  if (fd_.is_open()) return fd_.get();
  const int parent = TRY(parent_->open());
  if (::mkdirat(parent, name_.c_str(), kNewFolderMode) != 0 && errno != EEXIST) return std::unexpected(Errno{errno});
  auto folder = host::open_beneath(parent, name_.c_str(), O_PATH | O_DIRECTORY);
  if (!folder) return std::unexpected(Errno{folder.error().value == ELOOP ? ENOTDIR : folder.error().value});
  fd_ = std::move(*folder);
  return fd_.get();
}

}  // namespace belljar
