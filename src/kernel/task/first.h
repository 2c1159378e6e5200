// The first processes of a sandbox.
#pragma once

#include "kernel/entry/boot.h"

namespace belljar::kernel {

// Sets the kernel up, starts the program in a process of its own, and stays as the host's first process of the
// namespace: it fires timers and sees whether a process was killed from outside.
[[noreturn]] void start_first_process(const HostFacts& facts);

}  // namespace belljar::kernel
