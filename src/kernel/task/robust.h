// Robust futexes: get_robust_list(2).
#pragma once

#include "kernel/task/process.h"

namespace belljar::kernel {

// Marks the futexes that a thread holds at its end as their holder's having died, and wakes a waiter of each.
void release_robust_futexes(Task& task);

}  // namespace belljar::kernel
