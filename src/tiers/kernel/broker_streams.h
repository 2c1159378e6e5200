// Carries the program's standard streams between the rings and this process's descriptors.
#pragma once

#include "tiers/kernel/broker_shared.h"

namespace belljar::broker {

// Each for a thread of its own; output returns when the sandbox has ended and all is written.
void carry_input(Shared& shared);
void carry_output(Shared& shared, kernel::shm::StreamIndex index);
// Where the streams are a terminal: tells guests its size whenever it changes. SIGWINCH must be blocked in all threads.
[[noreturn]] void follow_window(Shared& shared);

}  // namespace belljar::broker
