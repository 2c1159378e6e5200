// --strace: a readable line for each call, as strace(1) prints them.
#pragma once

#include <string_view>

#include "kernel/syscalls/syscalls.h"

namespace belljar::kernel {

inline constexpr std::size_t kTraceLineMax = 1024;

// Where the lines go; without a newline at the end. Of the tier.
void trace_line(std::string_view line);

// Whether a call does not come back, or comes back to another program: it is told before it is made.
bool is_traced_before(std::uint64_t number);

// "[7] openat(AT_FDCWD, "/etc/passwd", O_RDONLY|O_CLOEXEC) = 3"; `result` null: before the call.
void trace_call(std::uint64_t number, const SyscallArguments& arguments, const SyscallResult* result);

}  // namespace belljar::kernel
