// Working folder and root, and reading folders: getcwd(2), chdir(2), chroot(2), umask(2), getdents(2).
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "kernel/syscalls/path_argument.h"

namespace belljar::kernel {
namespace {

enum class Place : bool { root, working_folder };

SyscallResult set_place(Place which, Ref<Dentry> dentry) {
  if (!dentry->inode->is_folder()) return error(ENOTDIR);
  TRY_VOID(check_access(*dentry->inode, X_OK, current().credentials));
  FsPlaces& fs = *current().fs;
  LockGuard guard(fs.lock);
  std::swap(which == Place::root ? fs.places.root : fs.places.working_folder, dentry);
  return 0;
}

SysResult<Ref<File>> folder_of(int fd) {
  Ref<File> file = TRY(current().files->get(fd));
  if (file->inode() == nullptr || !file->inode()->is_folder()) return error(ENOTDIR);
  return file;
}

SyscallResult list_some(File& file, Buffers& to) {
  LockGuard guard(file.position_lock);
  return file.list(to, &file.current_position);
}

// As getdents(2) has it; the type comes as the last byte.
struct OldHead {
  std::uint64_t number;
  std::uint64_t next;
  std::uint16_t size;
};
struct NewHead {
  std::uint64_t number;
  std::uint64_t next;
  std::uint16_t size;
  std::uint8_t type;
};
constexpr std::size_t kOldHeadSize = offsetof(OldHead, size) + sizeof(std::uint16_t);
constexpr std::size_t kNewHeadSize = offsetof(NewHead, type) + 1;

// Turns the records of getdents64(2) into those of getdents(2), in place: both are of one size, since the new one has
// one byte before the name (the type), the old one one behind it.
void make_old(char* block, std::size_t size) {
  for (std::size_t at = 0; at < size;) {
    NewHead head;
    memcpy(&head, block + at, kNewHeadSize);
    char* const name = block + at + kNewHeadSize;
    const std::size_t name_size = strlen(name);
    memmove(block + at + kOldHeadSize, name, name_size + 1);
    block[at + head.size - 1] = static_cast<char>(head.type);
    at += head.size;
  }
}

}  // namespace

SyscallResult sys_getcwd(const SyscallArguments& arguments) {
  const auto size = arguments.get<std::uint64_t>(1);
  const Places places = current_places();
  char text[kPathMax];
  std::size_t length = 0;
  {
    LockGuard guard(tree_lock());
    if (places.working_folder->is_unlinked) return error(ENOENT);
    length = TRY(path_of(*places.working_folder, *places.root, text, sizeof text - 1));
  }
  if (length + 1 > size) return error(ERANGE);
  text[length] = '\0';
  TRY_VOID(copy_out(arguments.get<UserAddress>(0), text, length + 1));
  return length + 1;
}

SyscallResult sys_chdir(const SyscallArguments& arguments) {
  Ref<Dentry> dentry = TRY(find_path(AT_FDCWD, arguments.get<UserAddress>(0), 0));
  return set_place(Place::working_folder, std::move(dentry));
}

SyscallResult sys_fchdir(const SyscallArguments& arguments) {
  const Ref<File> file = TRY(current().files->get_any(arguments.get<int>(0)));
  if (file->dentry() == nullptr) return error(ENOTDIR);
  return set_place(Place::working_folder, Ref<Dentry>::of(file->dentry()));
}

SyscallResult sys_chroot(const SyscallArguments& arguments) {
  Ref<Dentry> dentry = TRY(find_path(AT_FDCWD, arguments.get<UserAddress>(0), 0));
  if (!dentry->inode->is_folder()) return error(ENOTDIR);
  if (current().credentials.euid != 0) return error(EPERM);
  return set_place(Place::root, std::move(dentry));
}

SyscallResult sys_umask(const SyscallArguments& arguments) {
  FsPlaces& fs = *current().fs;
  LockGuard guard(fs.lock);
  return std::exchange(fs.umask, arguments.get<std::uint32_t>(0) & 0777);
}

SyscallResult sys_getdents64(const SyscallArguments& arguments) {
  const Ref<File> file = TRY(folder_of(arguments.get<int>(0)));
  const Area area{arguments.get<std::uint64_t>(1), arguments.get<std::uint32_t>(2)};
  Buffers buffers = Buffers::of_guest({&area, 1});
  return list_some(*file, buffers);
}

SyscallResult sys_getdents(const SyscallArguments& arguments) {
  constexpr std::size_t kBlockSize = 8192;
  const Ref<File> file = TRY(folder_of(arguments.get<int>(0)));
  const auto asked = arguments.get<std::uint32_t>(2);
  alignas(8) char block[kBlockSize];
  const Area area{reinterpret_cast<std::uint64_t>(block), asked < sizeof block ? asked : sizeof block};
  Buffers buffers = Buffers::of_kernel(area);
  const std::uint64_t size = TRY(list_some(*file, buffers));
  make_old(block, size);
  TRY_VOID(copy_out(arguments.get<UserAddress>(1), block, size));
  return size;
}

}  // namespace belljar::kernel
