// What locks need to know of threads. The image and the hosted build have their own of each.
#pragma once

#include <cstdint>

#include "kernel/arena/lock.h"

namespace belljar::kernel {

// The running thread's id on the host.
std::uint32_t lock_owner_id();

// Ends the sandbox when no thread has this id: what it held is in an unknown state.
void check_lock_owner_lives(std::uint32_t owner);

// The hosted build checks that locks are taken in rising order of ranks.
#ifdef BELLJAR_KERNEL_IMAGE
inline void note_lock_taken(LockRank) {}
inline void note_lock_released(LockRank) {}
#else
void note_lock_taken(LockRank rank);
void note_lock_released(LockRank rank);
#endif

}  // namespace belljar::kernel
