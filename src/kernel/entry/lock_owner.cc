#include "kernel/arena/lock_owner.h"

#include <errno.h>

#include "kernel/entry/stop.h"
#include "kernel/entry/thread_state.h"
#include "kernel/host/calls.h"
#include "kernel/task/process_table.h"

namespace belljar::kernel {

std::uint32_t lock_owner_id() {
  return thread_state().host_tid;
}

void check_lock_owner_lives(std::uint32_t owner) {
  const int tid = static_cast<int>(owner);
  if (host::tgkill(tid, tid, 0) == 0) return;
  // No leader of a thread group: its process is in the table, which is only looked at here.
  for (const ProcessTable::Id& id : process_table().ids) {
    const Task* const task = id.task;
    if (task != nullptr && task->host_tid == tid && host::tgkill(task->process->host_pid, tid, 0) == 0) return;
  }
  stop_sandbox("a process was killed from outside while it worked in the kernel");
}

}  // namespace belljar::kernel
