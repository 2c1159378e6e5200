#include <sys/mman.h>

#include <atomic>

#include "kernel/arena/layout.h"
#include "kernel/entry/thread_state.h"
#include "kernel/host/calls.h"

namespace belljar::kernel {
namespace {

enum SlotUse : std::uint32_t { kFree, kUsed };  // host_leave_slot writes kFree

// Of this process; a forked child has its own copy.
std::atomic<std::uint32_t> slot_use[kThreadSlotsMax];
bool has_memory[kThreadSlotsMax];  // the slot's holder's to read and write

constexpr std::uint64_t kGuard = kPageSize;

std::uint64_t slot_base(std::uint64_t slot) {
  return kPrivateBase + slot * kThreadSlotSize;
}

// [guard | signal stack | guard | kernel stack | state]
ThreadState& state_of(std::uint64_t slot) {
  return *reinterpret_cast<ThreadState*>(slot_base(slot) + kThreadSlotSize - kPageSize);
}

bool map_slot(std::uint64_t slot) {
  const std::uint64_t base = slot_base(slot);
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  constexpr int kAccess = PROT_READ | PROT_WRITE;
  const std::uint64_t stack = base + 2 * kGuard + kSignalStackSize;
  return host::mmap(base + kGuard, kSignalStackSize, kAccess, kFlags, -1, 0) >= 0 &&
         host::mmap(stack, base + kThreadSlotSize - stack, kAccess, kFlags, -1, 0) >= 0;
}

}  // namespace

ThreadState* take_thread_slot() {
  std::uint64_t slot = 0;
  for (; slot < kThreadSlotsMax; ++slot) {
    std::uint32_t expected = kFree;
    if (slot_use[slot].compare_exchange_strong(expected, kUsed)) break;
  }
  if (slot == kThreadSlotsMax) return nullptr;
  if (!has_memory[slot] && !map_slot(slot)) {
    slot_use[slot] = kFree;
    return nullptr;
  }
  has_memory[slot] = true;
  ThreadState& state = state_of(slot);
  state = ThreadState{};
  state.self = &state;
  state.kernel_stack = slot_base(slot) + kThreadSlotSize - kPageSize;
  state.slot = slot;
  return &state;
}

std::atomic<std::uint32_t>& slot_word(std::uint64_t slot) {
  return slot_use[slot];
}

void keep_only_own_slot() {
  const std::uint64_t own = thread_state().slot;
  for (std::uint64_t slot = 0; slot < kThreadSlotsMax && (slot_use[slot] != kFree || has_memory[slot]); ++slot) {
    if (slot != own) slot_use[slot] = kFree;
  }
}

void use_signal_stack(const ThreadState& state) {
  host::set_alternate_stack(slot_base(state.slot) + kGuard, kSignalStackSize);
}

}  // namespace belljar::kernel
