// The host's system calls that guest processes make: the whole list of the seccomp profile
// (docs/generated/kernel-seccomp.md). Raw results: -errno for a failure.
#pragma once

#include <cstdint>

namespace belljar::kernel::host {

long mmap(std::uint64_t address, std::uint64_t size, int protection, int flags, int fd, std::uint64_t offset);
long munmap(std::uint64_t address, std::uint64_t size);
long mprotect(std::uint64_t address, std::uint64_t size, int protection);
long mremap(std::uint64_t address, std::uint64_t old_size, std::uint64_t new_size, int flags,
            std::uint64_t new_address);
long madvise(std::uint64_t address, std::uint64_t size, int advice);
// futex(2); of the kernel's own words and of the guest's.
long futex(std::uint32_t* word, int operation, std::uint32_t value, const void* timeout_or_count, std::uint32_t* second,
           std::uint32_t third);
// Like futex, but returns -EINTR at once when a signal for this thread is there, also when it came just before.
long futex_interruptible(std::uint32_t* word, int operation, std::uint32_t value, const void* timeout,
                         std::uint32_t* second, std::uint32_t third);
[[noreturn]] void exit_thread();
[[noreturn]] void exit_group(int status);
long tgkill(int process_id, int thread_id, int signal);
long sched_yield();
long membarrier_sync_core();
long set_alternate_stack(std::uint64_t base, std::uint64_t size);

// Reads a clock without a system call where the host's vDSO can; nanoseconds (clock_gettime(2)).
std::uint64_t clock_ns(int clock);

}  // namespace belljar::kernel::host
