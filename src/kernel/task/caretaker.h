// The host's first process of the sandbox: no guest code runs in it.
#pragma once

namespace belljar::kernel {

// Fires timers, passes on what the broker tells of the streams, and looks for processes that were killed from outside.
[[noreturn]] void take_care();

}  // namespace belljar::kernel
