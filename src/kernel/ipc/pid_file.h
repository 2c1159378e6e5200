// pidfd_open(2): a file that stands for a process.
#pragma once

#include "kernel/ipc/nameless.h"
#include "kernel/task/process.h"

namespace belljar::kernel {

// Null when the heap is full.
Ref<File> make_pid_file(Process& process);

// The process behind a pidfd, or null where it is another file. The file keeps it.
Process* process_of(File& file);

}  // namespace belljar::kernel
