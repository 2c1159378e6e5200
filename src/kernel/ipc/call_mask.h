// The signal mask that a call has while it waits: ppoll(2), pselect(2), epoll_pwait(2).
#pragma once

#include "kernel/mm/user_memory.h"
#include "kernel/task/process.h"

namespace belljar::kernel {

// Sets the mask at `mask` (0: stays as it is); EINVAL for a wrong size. Until end_call_mask().
SysResult<void> begin_call_mask(UserAddress mask, std::uint64_t size);
// A call that a signal interrupts leaves the mask in force until the handler is set up (Task::must_restore_blocked).
void end_call_mask(UserAddress mask, bool was_interrupted);

}  // namespace belljar::kernel
