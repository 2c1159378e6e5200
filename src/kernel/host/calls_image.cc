#include <linux/membarrier.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include "kernel/host/calls.h"
#include "kernel/host/raw.h"
#include "kernel/host/vdso.h"

extern "C" long host_futex_interruptible(std::uint32_t* word, int operation, std::uint32_t value, const void* timeout,
                                         std::uint32_t* second, std::uint32_t third);

namespace belljar::kernel::host {

long mmap(std::uint64_t address, std::uint64_t size, int protection, int flags, int fd, std::uint64_t offset) {
  return raw(SYS_mmap, address, size, protection, flags, fd, offset);
}
long munmap(std::uint64_t address, std::uint64_t size) {
  return raw(SYS_munmap, address, size);
}
long mprotect(std::uint64_t address, std::uint64_t size, int protection) {
  return raw(SYS_mprotect, address, size, protection);
}
long mremap(std::uint64_t address, std::uint64_t old_size, std::uint64_t new_size, int flags,
            std::uint64_t new_address) {
  return raw(SYS_mremap, address, old_size, new_size, flags, new_address);
}
long madvise(std::uint64_t address, std::uint64_t size, int advice) {
  return raw(SYS_madvise, address, size, advice);
}
long futex(std::uint32_t* word, int operation, std::uint32_t value, const void* timeout_or_count, std::uint32_t* second,
           std::uint32_t third) {
  return raw(SYS_futex, word, operation, value, timeout_or_count, second, third);
}
long futex_interruptible(std::uint32_t* word, int operation, std::uint32_t value, const void* timeout,
                         std::uint32_t* second, std::uint32_t third) {
  return host_futex_interruptible(word, operation, value, timeout, second, third);
}
void exit_thread() {
  raw(SYS_exit, 0);
  __builtin_unreachable();
}
void exit_group(int status) {
  raw(SYS_exit_group, status);
  __builtin_unreachable();
}
long tgkill(int process_id, int thread_id, int signal) {
  return raw(SYS_tgkill, process_id, thread_id, signal);
}
long sched_yield() {
  return raw(SYS_sched_yield);
}
long membarrier_sync_core() {
  return raw(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
}
long set_alternate_stack(std::uint64_t base, std::uint64_t size) {
  const stack_t stack{reinterpret_cast<void*>(base), 0, size};
  return raw(SYS_sigaltstack, &stack, 0);
}

}  // namespace belljar::kernel::host
