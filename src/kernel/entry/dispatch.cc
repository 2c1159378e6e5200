#include <errno.h>

#include "kernel/broker/rings_shm.h"
#include "kernel/entry/thread_state.h"
#include "kernel/mm/text_cache.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/syscalls/table.h"
#include "kernel/syscalls/trace.h"
#include "kernel/task/signal_return.h"

namespace belljar::kernel {

Task& current() {
  return *thread_state().task;
}

LateWakes*& late_wakes() {
  return thread_state().late_wakes;
}

namespace {

__attribute__((noinline, cold)) SyscallResult call_traced(std::uint64_t number, const SyscallArguments& arguments) {
  const bool is_before = is_traced_before(number);
  if (is_before) trace_call(number, arguments, nullptr);
  const SyscallResult result = call_by_number(number, arguments);
  if (!is_before) trace_call(number, arguments, &result);
  return result;
}

}  // namespace

extern "C" void dispatch(Frame* frame) {
  ThreadState& state = thread_state();
  if (state.trapped_site != 0) [[unlikely]] {
    patch_trapped_site(state.trapped_site);
    state.trapped_site = 0;
  }
  const SyscallArguments arguments{{frame->rdi, frame->rsi, frame->rdx, frame->r10, frame->r8, frame->r9}};
  const bool is_traced = shared_with_broker().boot.trace != 0;
  const SyscallResult result = is_traced ? call_traced(frame->call, arguments) : call_by_number(frame->call, arguments);
  if (result) {
    frame->rax = *result;
    return;
  }
  const int code = value_of(result.error());
  frame->rax = static_cast<std::uint64_t>(-static_cast<std::int64_t>(code));
  if (code == kRestart || code == kRestartNoHandler) current().has_work.store(1);
}

extern "C" void interrupted(Frame*) {
  ThreadState& state = thread_state();
  const Interruption why = state.interruption;
  state.interruption = Interruption::none;
  if (why == Interruption::fault) raise_fault(state);
}

}  // namespace belljar::kernel
