#include "kernel/task/robust.h"

#include <linux/futex.h>

#include "kernel/host/calls.h"
#include "kernel/mm/user_memory.h"

namespace belljar::kernel {
namespace {

constexpr int kEntriesMost = 2048;  // ROBUST_LIST_LIMIT

void release(std::uint64_t entry, std::int64_t offset, Pid tid) {
  const std::uint64_t address = entry + static_cast<std::uint64_t>(offset);
  const auto value = copy_in<std::uint32_t>(address);
  if (!value || (*value & FUTEX_TID_MASK) != static_cast<std::uint32_t>(tid)) return;
  auto* const word = reinterpret_cast<std::atomic<std::uint32_t>*>(address);
  std::uint32_t seen = *value;
  if (!word->compare_exchange_strong(seen, (seen & FUTEX_WAITERS) | FUTEX_OWNER_DIED)) return;
  if ((seen & FUTEX_WAITERS) != 0) {
    host::futex(reinterpret_cast<std::uint32_t*>(address), FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
}

}  // namespace

void release_robust_futexes(Task& task) {
  if (task.robust_list == 0) return;
  const auto head = copy_in<robust_list_head>(task.robust_list);
  if (!head) return;
  const auto pending = reinterpret_cast<std::uint64_t>(head->list_op_pending);
  auto entry = reinterpret_cast<std::uint64_t>(head->list.next);
  for (int i = 0; i < kEntriesMost && entry != task.robust_list; ++i) {
    const auto next = copy_in<std::uint64_t>(entry & ~1ULL);
    // The lowest bit marks priority inheritance, which there is none of.
    if (entry != pending && (entry & 1) == 0) release(entry, head->futex_offset, task.tid);
    if (!next) return;
    entry = *next;
  }
  if (pending != 0) release(pending & ~1ULL, head->futex_offset, task.tid);
}

}  // namespace belljar::kernel
