#include "kernel/syscalls/path_argument.h"

namespace belljar::kernel {

Places current_places() {
  FsPlaces& fs = *current().fs;
  LockGuard guard(fs.lock);
  return fs.places;
}

std::uint32_t current_umask() {
  FsPlaces& fs = *current().fs;
  LockGuard guard(fs.lock);
  return fs.umask;
}

SysResult<void> PathArgument::read(int folder_fd, UserAddress path, bool may_be_empty, bool is_scoped) {
  size_ = TRY(copy_in_string(text_, path, sizeof text_));
  if (size_ == 0 && !may_be_empty) return error(ENOENT);
  folder_fd_ = folder_fd;
  places_ = current_places();
  if (folder_fd == AT_FDCWD || (size_ != 0 && text_[0] == '/' && !is_scoped)) return {};
  const Ref<File> file = TRY(current().files->get_any(folder_fd));
  Dentry* const dentry = file->dentry();
  if (size_ == 0) {
    start_ = Ref<Dentry>::of(dentry);
    return {};
  }
  if (dentry == nullptr || !dentry->inode->is_folder()) return error(ENOTDIR);
  start_ = Ref<Dentry>::of(dentry);
  return {};
}

SysResult<Ref<Dentry>> PathArgument::walk(const Walk& how, const Credentials& who) const {
  if (size_ != 0) return kernel::walk(places_, start_, text(), who, how);
  if (folder_fd_ == AT_FDCWD) return places_.working_folder;
  if (!start_) return error(ENOENT);
  return start_;
}

SysResult<LastName> PathArgument::walk_to_last(FollowLast follow, const Credentials& who) const {
  return kernel::walk_to_last(places_, start_, text(), who, Walk{follow, 0});
}

SysResult<Ref<Dentry>> find_path(int folder_fd, UserAddress path, int flags) {
  PathArgument argument;
  TRY_VOID(argument.read(folder_fd, path, (flags & AT_EMPTY_PATH) != 0));
  const FollowLast follow = (flags & AT_SYMLINK_NOFOLLOW) != 0 ? FollowLast::no : FollowLast::yes;
  LockGuard guard(tree_lock());
  return argument.walk(Walk{follow, 0}, current().credentials);
}

}  // namespace belljar::kernel
