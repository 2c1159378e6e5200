// What one thread has for itself: private to its process, found by the gs base, which belongs to the kernel. Offsets
// are known to entry.S.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace belljar::kernel {

class LateWakes;
class Task;

// The guest's registers on the kernel stack. entry.S builds it.
struct Frame {
  std::uint64_t r15, r14, r13, r12, rbp, rbx, r9, r8, r10, rdx, rsi, rdi, rax;
  std::uint64_t call;  // the system call's number; kNoCall where a signal interrupted guest code
  std::uint64_t rsp, rip, flags, rcx, r11;
  std::uint64_t is_full;  // every register is restored, rcx and r11 too; else as after a syscall instruction
};
inline constexpr std::uint64_t kNoCall = ~0ULL;

// Why a host signal brought a thread from guest code into the kernel.
enum class Interruption : std::uint64_t { none, kick, fault };

struct ThreadState {
  std::uint64_t kernel_stack;  // its top
  std::uint64_t guest_stack;   // scratch of the entry
  Task* task;
  Frame* frame;
  void (*entry)();  // where patched sites jump to: syscall_entry
  std::uint64_t interrupted_rip;
  Interruption interruption;
  std::uint64_t trapped_site;  // after the syscall instruction that trapped; 0: none
  void (*cpuid_entry)();       // the same for patched cpuid instructions
  ThreadState* self;
  siginfo_t fault;                                       // of Interruption::fault
  std::uint64_t fault_trap, fault_error, fault_address;  // as in ucontext_t: REG_TRAPNO, REG_ERR, REG_CR2
  std::uint32_t host_tid;
  std::uint64_t first_fs_base;  // of a new thread
  std::uint64_t slot;           // its index among the process's thread slots
  LateWakes* late_wakes;        // task/wait_queue.h
};

static_assert(sizeof(Frame) == 160 && offsetof(Frame, rax) == 96 && offsetof(Frame, rsp) == 112 &&
              offsetof(Frame, rip) == 120 && offsetof(Frame, flags) == 128 && offsetof(Frame, is_full) == 152);
static_assert(offsetof(ThreadState, guest_stack) == 8 && offsetof(ThreadState, task) == 16 &&
              offsetof(ThreadState, frame) == 24 && offsetof(ThreadState, entry) == 32 &&
              offsetof(ThreadState, interrupted_rip) == 40 && offsetof(ThreadState, cpuid_entry) == 64 &&
              offsetof(ThreadState, self) == 72);

inline ThreadState& thread_state() {
  ThreadState* state;
  asm("movq %%gs:72, %0" : "=r"(state));  // rdgsbase is several times slower
  return *state;
}

// Slots of private memory: a state, a stack for the kernel and one for the host's signal handlers.
inline constexpr std::uint64_t kThreadSlotSize = 0x2'0000;
inline constexpr std::uint64_t kSignalStackSize = 0x8000;
inline constexpr std::uint64_t kThreadSlotsMax = 4096;

// A slot for a new thread of this process, with a state; nullptr when memory or slots are used up.
ThreadState* take_thread_slot();
// 0 frees the slot. A thread does that as its last deed (host_leave_slot): its stack stays mapped for the next one.
std::atomic<std::uint32_t>& slot_word(std::uint64_t slot);
// In a forked child: only the running thread's slot is in use.
void keep_only_own_slot();
// Makes the running thread use its slot's stack for host signals.
void use_signal_stack(const ThreadState& state);

}  // namespace belljar::kernel
