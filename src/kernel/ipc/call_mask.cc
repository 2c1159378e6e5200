#include "kernel/ipc/call_mask.h"

#include "kernel/task/signals.h"

namespace belljar::kernel {

SysResult<void> begin_call_mask(UserAddress mask, std::uint64_t size) {
  if (mask == 0) return {};
  if (size != sizeof(SignalSet)) return error(EINVAL);
  const auto blocked = TRY(copy_in<SignalSet>(mask));
  Task& task = current();
  task.saved_blocked = task.blocked.load();
  set_blocked(blocked);
  return {};
}

void end_call_mask(UserAddress mask, bool was_interrupted) {
  if (mask == 0) return;
  Task& task = current();
  if (was_interrupted) {
    task.must_restore_blocked = true;
  } else {
    set_blocked(task.saved_blocked);
  }
}

}  // namespace belljar::kernel
