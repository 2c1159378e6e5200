// What an inode does where its file system does not say otherwise.
#include "kernel/fs/inode.h"

#include <string.h>

#include "kernel/fs/file_locks.h"
#include "kernel/fs/watches.h"

namespace belljar::kernel {

Inode::~Inode() {
  drop_watches(*this);
  drop_file_locks(*this);
}

SysResult<Ref<Inode>> Inode::lookup(std::string_view) {
  return error(is_folder() ? ENOENT : ENOTDIR);
}

SysResult<Ref<Inode>> Inode::create(std::string_view, std::uint32_t, std::uint64_t, const Credentials&) {
  return error(EROFS);
}

SysResult<Ref<Inode>> Inode::make_symlink(std::string_view, std::string_view, const Credentials&) {
  return error(EROFS);
}

SysResult<Ref<Inode>> Inode::make_nameless(std::uint32_t, const Credentials&) {
  return error(is_read_only() ? EROFS : EOPNOTSUPP);
}

SysResult<void> Inode::link(std::string_view, Inode&) {
  return error(EROFS);
}

SysResult<void> Inode::unlink(std::string_view, Inode&) {
  return error(EROFS);
}

SysResult<void> Inode::remove_folder(std::string_view, Inode&) {
  return error(EROFS);
}

SysResult<void> Inode::rename(std::string_view, Inode&, Inode&, std::string_view, Inode*, bool) {
  return error(EROFS);
}

SysResult<std::size_t> Inode::read_link(char* to, std::size_t to_size) {
  if (!is_link()) return error(EINVAL);
  const std::string_view text = TRY(target());
  const std::size_t count = text.size() < to_size ? text.size() : to_size;
  memcpy(to, text.data(), count);
  return count;
}

SysResult<void> Inode::change(const AttributeChange&) {
  return error(is_read_only() ? EROFS : EPERM);
}

SysResult<void> Inode::fill_stat(struct stat* status) {
  const auto time = [](const Timestamp& from) { return timespec{from.seconds, static_cast<long>(from.nanoseconds)}; };
  LockGuard guard(lock);
  *status = {};
  status->st_dev = device;
  status->st_ino = number;
  status->st_nlink = links;
  status->st_mode = mode;
  status->st_uid = uid;
  status->st_gid = gid;
  status->st_rdev = rdev;
  status->st_size = static_cast<off_t>(size);
  status->st_blksize = 4096;
  status->st_blocks = static_cast<blkcnt_t>(blocks);
  status->st_atim = time(access_time);
  status->st_mtim = time(modify_time);
  status->st_ctim = time(change_time);
  return {};
}

SysResult<std::size_t> Inode::get_xattr(std::string_view, char*, std::size_t) {
  return error(EOPNOTSUPP);
}

SysResult<void> Inode::set_xattr(std::string_view, std::string_view, int) {
  return error(is_read_only() ? EROFS : EOPNOTSUPP);
}

SysResult<std::size_t> Inode::list_xattr(char*, std::size_t) {
  return 0;
}

SysResult<void> Inode::remove_xattr(std::string_view) {
  return error(is_read_only() ? EROFS : EOPNOTSUPP);
}

}  // namespace belljar::kernel
