// open(2) and its family, close(2), memfd_create(2).
#include "kernel/fs/open.h"

#include <linux/memfd.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/arena/layout.h"
#include "kernel/fs/mount_tree.h"
#include "kernel/syscalls/path_argument.h"

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kTmpFileFlag = 020000000;
constexpr std::uint32_t kKnownFlags = O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK |
                                      O_DSYNC | O_SYNC | FASYNC | O_DIRECT | kLargeFileFlag | O_DIRECTORY | O_NOFOLLOW |
                                      O_NOATIME | O_CLOEXEC | O_PATH | kTmpFileFlag;
constexpr std::uint32_t kPlaceFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr std::uint64_t kKnownResolve =
    RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH | RESOLVE_IN_ROOT | RESOLVE_CACHED;

SyscallResult open_at(int folder_fd, UserAddress path, OpenHow how) {
  if ((how.flags & O_PATH) != 0) how.flags &= kPlaceFlags;
  if ((how.flags & kTmpFileFlag) != 0) {
    if ((how.flags & O_DIRECTORY) == 0 || (how.flags & O_CREAT) != 0) return error(EINVAL);
    if ((how.flags & O_ACCMODE) == O_RDONLY) return error(EINVAL);
  }
  const bool makes = (how.flags & (O_CREAT | kTmpFileFlag)) != 0;
  how.mode = makes ? how.mode & 07777 & ~current_umask() : 0;

  PathArgument argument;
  const bool is_scoped = (how.resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT)) != 0;
  TRY_VOID(argument.read(folder_fd, path, false, is_scoped));
  Ref<File> file = TRY(open_path(argument.places(), argument.start(), argument.text(), how, current().credentials));
  const auto close_on_exec = (how.flags & O_CLOEXEC) != 0 ? CloseOnExec::yes : CloseOnExec::no;
  const int fd = TRY(current().files->add(std::move(file), close_on_exec));
  return static_cast<std::uint64_t>(fd);
}

}  // namespace

SyscallResult sys_open(const SyscallArguments& arguments) {
  return open_at(AT_FDCWD, arguments.get<UserAddress>(0),
                 {arguments.get<std::uint32_t>(1) & kKnownFlags, arguments.get<std::uint32_t>(2), 0});
}

SyscallResult sys_openat(const SyscallArguments& arguments) {
  return open_at(arguments.get<int>(0), arguments.get<UserAddress>(1),
                 {arguments.get<std::uint32_t>(2) & kKnownFlags, arguments.get<std::uint32_t>(3), 0});
}

SyscallResult sys_creat(const SyscallArguments& arguments) {
  return open_at(AT_FDCWD, arguments.get<UserAddress>(0),
                 {O_CREAT | O_WRONLY | O_TRUNC, arguments.get<std::uint32_t>(1), 0});
}

SyscallResult sys_openat2(const SyscallArguments& arguments) {
  const auto size = arguments.get<std::uint64_t>(3);
  if (size < sizeof(open_how)) return error(EINVAL);
  if (size > kPageSize) return error(E2BIG);
  const auto how = TRY(copy_in<open_how>(arguments.get<UserAddress>(2)));
  for (std::uint64_t i = sizeof how; i < size; ++i) {
    if (TRY(copy_in<char>(arguments.get<UserAddress>(2) + i)) != 0) return error(E2BIG);
  }
  if ((how.flags & ~std::uint64_t{kKnownFlags}) != 0 || (how.resolve & ~kKnownResolve) != 0) return error(EINVAL);
  if ((how.resolve & RESOLVE_BENEATH) != 0 && (how.resolve & RESOLVE_IN_ROOT) != 0) return error(EINVAL);
  const bool makes = (how.flags & (O_CREAT | kTmpFileFlag)) != 0;
  if ((how.mode & ~07777ULL) != 0 || (!makes && how.mode != 0)) return error(EINVAL);
  if ((how.flags & O_PATH) != 0 && (how.flags & ~std::uint64_t{kPlaceFlags}) != 0) return error(EINVAL);
  if ((how.resolve & RESOLVE_CACHED) != 0) {
    if ((how.flags & (O_TRUNC | O_CREAT | kTmpFileFlag)) != 0) return error(EAGAIN);
  }
  return open_at(arguments.get<int>(0), arguments.get<UserAddress>(1),
                 {static_cast<std::uint32_t>(how.flags), static_cast<std::uint32_t>(how.mode), how.resolve});
}

SyscallResult sys_close(const SyscallArguments& arguments) {
  TRY_VOID(current().files->close(arguments.get<int>(0)));
  return 0;
}

SyscallResult sys_close_range(const SyscallArguments& arguments) {
  constexpr std::uint32_t kUnshare = 2;  // CLOSE_RANGE_UNSHARE
  constexpr std::uint32_t kCloexec = 4;  // CLOSE_RANGE_CLOEXEC
  const auto first = arguments.get<std::uint32_t>(0);
  const auto last = arguments.get<std::uint32_t>(1);
  const auto flags = arguments.get<std::uint32_t>(2);
  if ((flags & ~(kUnshare | kCloexec)) != 0 || first > last) return error(EINVAL);
  if ((flags & kUnshare) != 0) current().files = TRY(current().files->copy());
  current().files->close_range(first, last, (flags & kCloexec) != 0);
  return 0;
}

SyscallResult sys_memfd_create(const SyscallArguments& arguments) {
  constexpr std::uint32_t kNoExecSeal = 8;  // MFD_NOEXEC_SEAL
  constexpr std::uint32_t kExec = 16;       // MFD_EXEC
  constexpr std::size_t kMemoryNameMax = 249;
  const auto flags = arguments.get<std::uint32_t>(1);
  if ((flags & ~(MFD_CLOEXEC | MFD_ALLOW_SEALING | kNoExecSeal | kExec)) != 0) return error(EINVAL);
  char name[kMemoryNameMax + 1];
  const auto size = copy_in_string(name, arguments.get<UserAddress>(0), sizeof name);
  if (!size) return error(size.error() == Errno{ENAMETOOLONG} ? EINVAL : value_of(size.error()));
  const bool may_be_sealed = (flags & (MFD_ALLOW_SEALING | kNoExecSeal)) != 0;
  Ref<File> file = TRY(make_memory_file(memory_file_space(), {name, *size}, may_be_sealed, current().credentials));
  const auto close_on_exec = (flags & MFD_CLOEXEC) != 0 ? CloseOnExec::yes : CloseOnExec::no;
  const int fd = TRY(current().files->add(std::move(file), close_on_exec));
  return static_cast<std::uint64_t>(fd);
}

}  // namespace belljar::kernel
