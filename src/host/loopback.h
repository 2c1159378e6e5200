// The loopback interface of a new network namespace, which starts down. netdevice(7). Async-signal-safe.
#pragma once

namespace belljar::host {

// Brings "lo" up in the calling thread's network namespace: 0 or -errno.
int bring_up_loopback();

}  // namespace belljar::host
