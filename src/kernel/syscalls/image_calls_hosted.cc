// Hosted: stand-ins for the calls that only the image has.
#include "kernel/syscalls/syscalls.h"

namespace belljar::kernel {

#define SYSCALL(number, name, support, note, page)                          \
  __attribute__((weak)) SyscallResult sys_##name(const SyscallArguments&) { \
    return error(ENOSYS);                                                   \
  }
#define REFUSED(number, name, errno_value, note, page)
#include "kernel/syscalls/syscalls.def"
#undef SYSCALL
#undef REFUSED

}  // namespace belljar::kernel
