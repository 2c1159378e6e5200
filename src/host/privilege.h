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

// Gives up all capabilities but `capabilities` (a bit for each, 1 << CAP_...), and makes none inheritable.
int keep_capabilities(std::uint64_t capabilities);

// While it lives, the calling thread acts as user and group `id`, with the capabilities that it has. For clone(2): the
// kernel charges namespaces, and the watches, queues and signals in them, to the effective user who made them, and
// gives the first inodes of a new file system to that user. Not async-signal-safe across its life; use it for a call or
// two.
class [[nodiscard]] ActAsUser {
 public:
  explicit ActAsUser(unsigned id);
  ActAsUser(const ActAsUser&) = delete;
  ActAsUser& operator=(const ActAsUser&) = delete;
  ~ActAsUser();

  // 0, or the -errno with which taking the identity failed.
  int result() const { return result_; }

 private:
  int result_;
  unsigned uid_before_;
  unsigned gid_before_;
  int dumpable_before_;
  int death_signal_before_ = 0;
};

enum class PathKind { folder, file };

// True for root of the initial user namespace. Root of another one is an ordinary user of the host, and lacks the ids
// that sandboxes get.
bool is_root_of_host();

// True when the calling process holds this capability in its effective set.
bool has_capability(int capability);

// The Landlock version that the kernel offers; 0 when it offers none.
int landlock_abi();

// A rule set that forbids changing and executing files anywhere but below the folders granted, and, where the kernel
// can, reaching abstract sockets and signals outside. Reading is left to the mount namespace: it is the wall there, and
// a Landlock check on each open would double its cost. Returns a descriptor for landlock_grant_changes() and
// landlock_enforce().
int landlock_create(int abi);
int landlock_grant_changes(int ruleset_fd, int abi, int path_fd, PathKind kind);
int landlock_grant_execution(int ruleset_fd, int path_fd);
int landlock_enforce(int ruleset_fd);

}  // namespace belljar::host
