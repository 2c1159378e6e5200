#include <errno.h>
#include <sys/mman.h>

#include "kernel/arena/layout.h"
#include "kernel/host/calls.h"
#include "kernel/mm/address_space.h"
#include "kernel/mm/user_memory.h"
#include "kernel/syscalls/syscalls.h"

namespace belljar::kernel {
namespace {

bool is_page_aligned(std::uint64_t value) {
  return (value & (kPageSize - 1)) == 0;
}

// mmap(2)'s rules on how a file was opened.
SysResult<void> check_file_access(const File& file, int protection, int flags) {
  if (!file.is_readable()) return error(EACCES);
  const bool is_shared = (flags & MAP_TYPE) != MAP_PRIVATE;
  if (is_shared && (protection & PROT_WRITE) != 0 && !file.is_writable()) return error(EACCES);
  return {};
}

}  // namespace

SyscallResult sys_mmap(const SyscallArguments& arguments) {
  MapRequest request;
  request.address = arguments.values[0];
  request.size = arguments.values[1];
  request.protection = arguments.get<int>(2);
  request.flags = arguments.get<int>(3);
  request.offset = arguments.values[5];
  if ((request.flags & MAP_ANONYMOUS) != 0) return map_memory(request);
  const Ref<File> file = TRY(current().files->get(arguments.get<int>(4)));
  TRY_VOID(check_file_access(*file, request.protection, request.flags));
  request.file = file.get();
  return map_memory(request);
}

SyscallResult sys_munmap(const SyscallArguments& arguments) {
  TRY_VOID(unmap_memory(arguments.values[0], arguments.values[1]));
  return 0ULL;
}

SyscallResult sys_mprotect(const SyscallArguments& arguments) {
  TRY_VOID(protect_memory(arguments.values[0], arguments.values[1], arguments.get<int>(2)));
  return 0ULL;
}

SyscallResult sys_mremap(const SyscallArguments& arguments) {
  return remap_memory(arguments.values[0], arguments.values[1], arguments.values[2], arguments.get<int>(3),
                      arguments.values[4]);
}

SyscallResult sys_brk(const SyscallArguments& arguments) {
  return set_heap_end(arguments.values[0]);
}

namespace {

bool is_mapped(std::uint64_t begin, std::uint64_t end) {
  MemoryArea area;
  for (std::uint64_t at = begin; at < end; at = area.end) {
    if (!find_area(at, &area) || area.begin > at) return false;
  }
  return true;
}

}  // namespace

SyscallResult sys_madvise(const SyscallArguments& arguments) {
  const std::uint64_t address = arguments.values[0];
  const std::uint64_t size = page_up(arguments.values[1]);
  if (!is_page_aligned(address) || size < arguments.values[1]) return error(EINVAL);
  if (size > kGuestEnd || address > kGuestEnd - size || (address < kKernelEnd && address + size > kKernelBase)) {
    return error(ENOMEM);
  }
  const int advice = arguments.get<int>(2);
  switch (advice) {
    case MADV_DONTNEED:
    case MADV_FREE:
    case MADV_REMOVE:
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE: {
      const long result = host::madvise(address, size, advice);
      return result < 0 ? SyscallResult(error(static_cast<int>(-result))) : 0ULL;
    }
    case MADV_NORMAL:
    case MADV_RANDOM:
    case MADV_SEQUENTIAL:
    case MADV_WILLNEED:
    case MADV_DONTFORK:
    case MADV_DOFORK:
    case MADV_MERGEABLE:
    case MADV_UNMERGEABLE:
    case MADV_DONTDUMP:
    case MADV_DODUMP:
    case MADV_COLD:
    case MADV_PAGEOUT:
      return is_mapped(address, address + size) ? SyscallResult(0ULL) : error(ENOMEM);
    default:
      return error(EINVAL);
  }
}

SyscallResult sys_msync(const SyscallArguments& arguments) {
  constexpr int kKnown = MS_ASYNC | MS_SYNC | MS_INVALIDATE;
  const int flags = arguments.get<int>(2);
  if ((flags & ~kKnown) != 0 || (flags & (MS_ASYNC | MS_SYNC)) == (MS_ASYNC | MS_SYNC) ||
      !is_page_aligned(arguments.values[0])) {
    return error(EINVAL);
  }
  MemoryArea area;
  if (!find_area(arguments.values[0], &area) || area.begin > arguments.values[0]) return error(ENOMEM);
  return 0ULL;  // what is mapped shared is the file itself
}

SyscallResult sys_mincore(const SyscallArguments& arguments) {
  const std::uint64_t begin = arguments.values[0];
  if (!is_page_aligned(begin)) return error(EINVAL);
  const std::uint64_t end = begin + page_up(arguments.values[1]);
  for (std::uint64_t at = begin; at < end;) {
    MemoryArea area;
    if (!find_area(at, &area) || area.begin > at) return error(ENOMEM);
    for (; at < area.end && at < end; at += kPageSize) {
      const std::uint8_t resident = 1;
      TRY_VOID(copy_out(arguments.values[2] + (at - begin) / kPageSize, resident));
    }
  }
  return 0ULL;
}

// Nothing of a sandbox is locked in memory, and none of it is on a swap device that it could tell.
SyscallResult sys_mlock(const SyscallArguments&) {
  return 0ULL;
}
SyscallResult sys_mlock2(const SyscallArguments&) {
  return 0ULL;
}
SyscallResult sys_munlock(const SyscallArguments&) {
  return 0ULL;
}
SyscallResult sys_mlockall(const SyscallArguments&) {
  return 0ULL;
}
SyscallResult sys_munlockall(const SyscallArguments&) {
  return 0ULL;
}

}  // namespace belljar::kernel
