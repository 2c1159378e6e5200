// Hosted: plain system calls of the test process.
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kernel/host/calls.h"

namespace belljar::kernel::host {
namespace {

long result_of(long result) {
  return result == -1 ? -errno : result;
}

}  // namespace

long mmap(std::uint64_t address, std::uint64_t size, int protection, int flags, int fd, std::uint64_t offset) {
  return result_of(::syscall(SYS_mmap, address, size, protection, flags, fd, offset));
}
long munmap(std::uint64_t address, std::uint64_t size) {
  return result_of(::syscall(SYS_munmap, address, size));
}
long mprotect(std::uint64_t address, std::uint64_t size, int protection) {
  return result_of(::syscall(SYS_mprotect, address, size, protection));
}
long mremap(std::uint64_t address, std::uint64_t old_size, std::uint64_t new_size, int flags,
            std::uint64_t new_address) {
  return result_of(::syscall(SYS_mremap, address, old_size, new_size, flags, new_address));
}
long madvise(std::uint64_t address, std::uint64_t size, int advice) {
  return result_of(::syscall(SYS_madvise, address, size, advice));
}
long futex(std::uint32_t* word, int operation, std::uint32_t value, const void* timeout_or_count, std::uint32_t* second,
           std::uint32_t third) {
  return result_of(::syscall(SYS_futex, word, operation, value, timeout_or_count, second, third));
}
long futex_interruptible(std::uint32_t* word, int operation, std::uint32_t value, const void* timeout,
                         std::uint32_t* second, std::uint32_t third) {
  return futex(word, operation, value, timeout, second, third);
}
void exit_thread() {
  ::syscall(SYS_exit, 0);
  __builtin_unreachable();
}
void exit_group(int status) {
  ::_exit(status);
}
long tgkill(int process_id, int thread_id, int signal) {
  return result_of(::syscall(SYS_tgkill, process_id, thread_id, signal));
}
long sched_yield() {
  return ::sched_yield();
}
long membarrier_sync_core() {
  return 0;
}
long set_alternate_stack(std::uint64_t, std::uint64_t) {
  return 0;
}
std::uint64_t clock_ns(int clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace belljar::kernel::host
