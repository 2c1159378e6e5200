// From a number to its function.
#pragma once

#include "kernel/syscalls/syscalls.h"

namespace belljar::kernel {

SyscallResult call_by_number(std::uint64_t number, const SyscallArguments& arguments);

}  // namespace belljar::kernel
