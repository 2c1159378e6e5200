// The kernel tier: a user-space kernel (src/kernel) answers the program's system calls; around it are the container
// tier's walls. docs/kernel-tier.md.
#pragma once

#include "tiers/tier.h"

namespace belljar {

const Tier& kernel_tier();

}  // namespace belljar
