// Giving up privilege: capabilities(7), prctl(2), landlock(7). Async-signal-safe; 0 or -errno.
#pragma once

#include <cstdint>

namespace belljar::host {

// Empties the bounding and ambient sets, and locks the securebits so that no exec gives a capability back. Needs
// CAP_SETPCAP in the user namespace, so it comes before set_identity().
int forbid_new_capabilities();

// Sets all user and group ids (raw calls: of this thread only) and empties the effective, permitted and inheritable
// sets.
int set_identity(unsigned uid, unsigned gid);
int clear_capabilities();

enum class PathKind { folder, file };

// True for root of the initial user namespace. Root of another one is an ordinary user of the host, and lacks the ids
// that sandboxes get.
bool is_root_of_host();

// True when the calling process holds this capability in its effective set.
bool has_capability(int capability);

// The Landlock version that the kernel offers; 0 when it offers none.
int landlock_abi();

// A rule set that forbids changing files anywhere but below the folders granted, and, where the kernel can, reaching
// abstract sockets and signals outside. Reading is left to the mount namespace: it is the wall there, and a Landlock
// check on each open would double its cost.
// Returns a descriptor for landlock_grant_changes() and landlock_enforce().
int landlock_create(int abi);
int landlock_grant_changes(int ruleset_fd, int abi, int path_fd, PathKind kind);
int landlock_enforce(int ruleset_fd);

}  // namespace belljar::host
