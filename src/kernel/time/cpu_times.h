// CPU time of processes and threads, as the host counts it. Time in the user-space kernel is the host's user time.
#pragma once

#include "kernel/task/process.h"

namespace belljar::kernel {

// Of all threads of a process, the dead ones too. The tasks lock need not be held. Once a process is a zombie its times
// are in `dead_threads`: the end of a process stores them there.
CpuTimes cpu_times_of(const Process& process);
CpuTimes cpu_times_of(const Task& task);

}  // namespace belljar::kernel
