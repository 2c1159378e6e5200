// Carries the program's standard streams between the rings and this process's descriptors.
#pragma once

#include "tiers/kernel/broker_shared.h"

namespace belljar::broker {

// Each for a thread of its own; output returns when the sandbox has ended and all is written.
void carry_input(Shared& shared);
void carry_output(Shared& shared, kernel::shm::StreamIndex index);

}  // namespace belljar::broker
