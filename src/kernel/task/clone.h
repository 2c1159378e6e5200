// New threads and processes. clone(2), fork(2), vfork(2).
#pragma once

#include "kernel/entry/thread_state.h"
#include "kernel/task/process.h"

namespace belljar::kernel {

// What the host thread of a parent goes back to when its vfork(2) child has executed a program or ended. The child runs
// on that thread, in the parent's memory, and the parent's task waits meanwhile, as vfork(2) has it.
struct VforkReturn {
  Task* parent;
  Pid child;
  std::uint64_t fs_base;
  Frame frame;
};

// The running host thread is the parent's again, and returns from vfork(2) in it.
[[noreturn]] void return_to_vfork_parent(VforkReturn& vfork);

// For execve(2) in a child of vfork(2): gives it a host process of its own, with a copy of the memory. Returns in that
// one; the parent goes on by itself. EAGAIN or ENOMEM where the host has no room.
SysResult<void> part_from_vfork_parent(Task& child);

}  // namespace belljar::kernel
