// /proc/belljar/arena: what the kernel has in use, so that a test sees what is left behind. Lines of a name and a
// count.
#include "kernel/arena/heap.h"
#include "kernel/fs/file_data.h"
#include "kernel/fs/proc.h"

namespace belljar::kernel {

SysResult<void> proc_arena(const Subject&, LongText& to) {
  const std::uint64_t kept = kept_ranges();
  std::size_t least = 0;  // the size of the class before
  for (const HeapUse::Class& each : heap_use().classes) {
    // Free ranges of file data are kept for later files: they are not in use.
    const bool is_of_ranges = sizeof(DataRange) > least && sizeof(DataRange) <= each.size;
    least = each.size;
    (to << "objects-").number(each.size) << ' ';
    to.number(each.objects - (is_of_ranges ? kept : 0)) << '\n';
  }
  const LockGuard guard(tasks_lock());
  (to << "tasks ").number(count_tasks()) << '\n';
  return {};
}

}  // namespace belljar::kernel
