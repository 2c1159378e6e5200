// User namespace id maps and the namespaces that idmap mounts. user_namespaces(7), mount_setattr(2).
#pragma once

#include <sys/types.h>

#include "base/fd.h"
#include "base/result.h"
#include "tiers/container/plan.h"

namespace belljar::container {

// /proc/PID of a child, opened once.
Result<Fd> open_proc_folder(pid_t pid);

// Ids 0 .. kIdRangeSize-1 inside are base ... outside.
Result<void> map_id_range(int proc_folder_fd, unsigned base);

// The program's ids inside are the caller's own outside; needs no privilege.
Result<void> map_own_ids(int proc_folder_fd, const ProgramIds& ids);

// A user namespace that nothing runs in, which maps the owner's ids on disk to the sandbox program's ids (those of the
// range at `base`): mounts idmapped by it show the owner's files as the program's own, and what the program writes
// belongs to the owner. Returns its descriptor.
Result<Fd> make_owner_map(const ProgramIds& owner, unsigned base, const ProgramIds& ids);

}  // namespace belljar::container
