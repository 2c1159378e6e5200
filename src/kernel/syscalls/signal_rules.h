// Who may signal whom, and how kill(2) tells who did.
#pragma once

#include "kernel/task/process.h"

namespace belljar::kernel {

bool is_signal(int signal);
// Tasks lock held.
bool may_signal(const Credentials& who, const Process& target, int signal);
siginfo_t user_signal(int signal, int code);

}  // namespace belljar::kernel
