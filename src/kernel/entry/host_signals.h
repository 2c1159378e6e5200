// The host's signals that the kernel uses.
#pragma once

namespace belljar::kernel {

// Makes a thread look whether it has work (Task::has_work): out of guest code at once, out of a wait too.
inline constexpr int kKickSignal = 62;

// For every process that comes of this one; before the seccomp filter, which allows no rt_sigaction(2).
void install_host_handlers();

}  // namespace belljar::kernel
