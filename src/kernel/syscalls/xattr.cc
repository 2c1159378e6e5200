// Extended attributes: setxattr(2), getxattr(2), listxattr(2), removexattr(2).
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "kernel/fs/watches.h"
#include "kernel/syscalls/path_argument.h"

namespace belljar::kernel {
namespace {

constexpr std::size_t kValueMax = 65536;

const Credentials& caller() {
  return current().credentials;
}

// A name with its prefix.
class Name {
 public:
  SysResult<void> read(UserAddress address) {
    const auto size = copy_in_string(text_, address, sizeof text_);
    if (!size) return error(size.error() == Errno{ENAMETOOLONG} ? ERANGE : value_of(size.error()));
    if (*size == 0) return error(ERANGE);
    size_ = *size;
    return {};
  }
  std::string_view text() const { return {text_, size_}; }
  bool is_users() const { return text().starts_with("user."); }
  bool is_trusted() const { return text().starts_with("trusted."); }
  bool is_security() const { return text().starts_with("security."); }

 private:
  std::size_t size_ = 0;
  char text_[kNameMax + 1];
};

// Room for a value or a list.
class Value {
 public:
  explicit Value(std::size_t size)
      : size_(size), text_(size == 0 ? nullptr : static_cast<char*>(heap_allocate(size))) {}
  ~Value() { heap_free(text_, size_); }
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;
  bool is_missing() const { return size_ != 0 && text_ == nullptr; }
  char* text() const { return text_; }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  char* text_;
};

SysResult<Ref<Inode>> inode_of_path(UserAddress path, int flags) {
  const Ref<Dentry> dentry = TRY(find_path(AT_FDCWD, path, flags));
  return dentry->inode;
}

SysResult<Ref<Inode>> inode_of_file(int fd) {
  const Ref<File> file = TRY(current().files->get(fd));
  if (file->inode() == nullptr) return error(EOPNOTSUPP);
  return Ref<Inode>::of(file->inode());
}

bool may_have_users(const Inode& inode) {
  return inode.is_regular() || inode.is_folder();
}

// Only attributes of users are kept; there is nobody who may set the others.
SysResult<void> check_change(const Inode& inode, const Name& name) {
  if (inode.is_read_only()) return error(EROFS);
  if (name.is_trusted() || name.is_security()) return error(EPERM);
  if (!name.is_users()) return error(EOPNOTSUPP);
  if (!may_have_users(inode)) return error(EPERM);
  if ((inode.mode & S_ISVTX) != 0 && inode.is_folder() && !owns(inode, caller())) return error(EPERM);
  return check_access(inode, W_OK, caller());
}

SyscallResult set(SysResult<Ref<Inode>> found, const SyscallArguments& arguments) {
  const Ref<Inode> inode = TRY(std::move(found));
  const auto size = arguments.get<std::size_t>(3);
  const int flags = arguments.get<int>(4);
  if ((flags & ~(XATTR_CREATE | XATTR_REPLACE)) != 0) return error(EINVAL);
  Name name;
  TRY_VOID(name.read(arguments.get<UserAddress>(1)));
  if (size > kValueMax) return error(E2BIG);
  const Value value(size);
  if (value.is_missing()) return error(ENOMEM);
  TRY_VOID(copy_in(value.text(), arguments.get<UserAddress>(2), size));
  TRY_VOID(check_change(*inode, name));
  TRY_VOID(inode->set_xattr(name.text(), {value.text(), size}, flags));
  tell_watches(*inode, IN_ATTRIB);
  return 0;
}

SyscallResult get(SysResult<Ref<Inode>> found, const SyscallArguments& arguments) {
  const Ref<Inode> inode = TRY(std::move(found));
  const auto asked = arguments.get<std::size_t>(3);
  Name name;
  TRY_VOID(name.read(arguments.get<UserAddress>(1)));
  if (name.is_trusted() || name.is_security()) return error(ENODATA);
  if (!name.is_users()) return error(EOPNOTSUPP);
  if (!may_have_users(*inode)) return error(ENODATA);
  TRY_VOID(check_access(*inode, R_OK, caller()));
  const Value value(asked < kValueMax ? asked : kValueMax);
  if (value.is_missing()) return error(ENOMEM);
  const std::size_t size = TRY(inode->get_xattr(name.text(), value.text(), value.size()));
  if (asked != 0) TRY_VOID(copy_out(arguments.get<UserAddress>(2), value.text(), size));
  return size;
}

SyscallResult list(SysResult<Ref<Inode>> found, const SyscallArguments& arguments) {
  const Ref<Inode> inode = TRY(std::move(found));
  const auto asked = arguments.get<std::size_t>(2);
  const Value value(asked < kValueMax ? asked : kValueMax);
  if (value.is_missing()) return error(ENOMEM);
  const std::size_t size = TRY(inode->list_xattr(value.text(), value.size()));
  if (asked != 0) TRY_VOID(copy_out(arguments.get<UserAddress>(1), value.text(), size));
  return size;
}

SyscallResult remove(SysResult<Ref<Inode>> found, const SyscallArguments& arguments) {
  const Ref<Inode> inode = TRY(std::move(found));
  Name name;
  TRY_VOID(name.read(arguments.get<UserAddress>(1)));
  TRY_VOID(check_change(*inode, name));
  TRY_VOID(inode->remove_xattr(name.text()));
  tell_watches(*inode, IN_ATTRIB);
  return 0;
}

}  // namespace

SyscallResult sys_setxattr(const SyscallArguments& arguments) {
  return set(inode_of_path(arguments.get<UserAddress>(0), 0), arguments);
}
SyscallResult sys_lsetxattr(const SyscallArguments& arguments) {
  return set(inode_of_path(arguments.get<UserAddress>(0), AT_SYMLINK_NOFOLLOW), arguments);
}
SyscallResult sys_fsetxattr(const SyscallArguments& arguments) {
  return set(inode_of_file(arguments.get<int>(0)), arguments);
}
SyscallResult sys_getxattr(const SyscallArguments& arguments) {
  return get(inode_of_path(arguments.get<UserAddress>(0), 0), arguments);
}
SyscallResult sys_lgetxattr(const SyscallArguments& arguments) {
  return get(inode_of_path(arguments.get<UserAddress>(0), AT_SYMLINK_NOFOLLOW), arguments);
}
SyscallResult sys_fgetxattr(const SyscallArguments& arguments) {
  return get(inode_of_file(arguments.get<int>(0)), arguments);
}
SyscallResult sys_listxattr(const SyscallArguments& arguments) {
  return list(inode_of_path(arguments.get<UserAddress>(0), 0), arguments);
}
SyscallResult sys_llistxattr(const SyscallArguments& arguments) {
  return list(inode_of_path(arguments.get<UserAddress>(0), AT_SYMLINK_NOFOLLOW), arguments);
}
SyscallResult sys_flistxattr(const SyscallArguments& arguments) {
  return list(inode_of_file(arguments.get<int>(0)), arguments);
}
SyscallResult sys_removexattr(const SyscallArguments& arguments) {
  return remove(inode_of_path(arguments.get<UserAddress>(0), 0), arguments);
}
SyscallResult sys_lremovexattr(const SyscallArguments& arguments) {
  return remove(inode_of_path(arguments.get<UserAddress>(0), AT_SYMLINK_NOFOLLOW), arguments);
}
SyscallResult sys_fremovexattr(const SyscallArguments& arguments) {
  return remove(inode_of_file(arguments.get<int>(0)), arguments);
}

}  // namespace belljar::kernel
