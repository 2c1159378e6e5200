// Signals on the way out of the kernel: default actions, stops, and frames for the program's handlers.
#pragma once

#include "kernel/entry/thread_state.h"

namespace belljar::kernel {

// The fault that `state` tells of becomes a signal of the running thread.
void raise_fault(ThreadState& state);

// Learns from the processor how large a thread's extended state is; once.
void measure_extended_state();

}  // namespace belljar::kernel
