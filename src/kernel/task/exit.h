// How threads and processes end.
#pragma once

#include "kernel/task/process.h"

namespace belljar::kernel {

// The running thread leaves for good: with the last one the process becomes a zombie.
[[noreturn]] void exit_task();

// Tells the parent of a change (siginfo_t's si_code CLD_...; `status`: exit status or signal). Tasks lock held.
void notify_parent(Process& process, int code, int status);

// Forgets a zombie that was waited for. Tasks lock held.
void reap(Process& zombie);

}  // namespace belljar::kernel
