// A folder's names as the broker lists them.
#pragma once

#include <cstdint>

#include "kernel/broker/rings_shm.h"
#include "kernel/fs/host_tree.h"

namespace belljar::kernel {

// Calls `visit` for each record of the `size` bytes at `records` (shm::ListedName). EIO where one is cut off; what came
// before it has been told of by then.
SysResult<void> read_listing(const void* records, std::uint64_t size, HostTree::Visit visit, void* context);

HostTree::Facts facts_of(const shm::Facts& from);

}  // namespace belljar::kernel
