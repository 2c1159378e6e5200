// Signals of the host. A handler never does the work: it looks where the thread was, and makes it go on at one of the
// kernel's entries, on the kernel's stack and outside of any handler.
#include "kernel/entry/host_signals.h"

#include <linux/seccomp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "kernel/arena/layout.h"
#include "kernel/entry/stop.h"
#include "kernel/entry/thread_state.h"
#include "kernel/host/raw.h"

extern "C" {
extern char kernel_text_begin[], kernel_text_end[];
extern char exit_restart[], exit_end[], wait_begin[], wait_end[], wait_interrupted[];
extern char user_copies_begin[], user_copies_end[], user_copy_fault[], user_string_begin[], user_string_fault[];
void syscall_entry();
void interrupted_entry();
void host_signal_return();
}

namespace belljar::kernel {
namespace {

struct HostAction {
  void (*handler)(int, siginfo_t*, ucontext_t*);
  std::uint64_t flags;
  void (*restorer)();
  std::uint64_t mask;
};
constexpr std::uint64_t kRestorer = 0x0400'0000;  // SA_RESTORER

std::uint64_t address_of(const char* label) {
  return reinterpret_cast<std::uint64_t>(label);
}

bool is_between(std::uint64_t address, const char* begin, const char* end) {
  return address >= address_of(begin) && address < address_of(end);
}

bool is_kernel_stack(std::uint64_t address) {
  return address >= kPrivateBase && address < kPrivateBase + kPrivateSize;
}

void interrupt(ucontext_t& context, Interruption why) {
  greg_t* const registers = context.uc_mcontext.gregs;
  ThreadState& state = thread_state();
  state.interrupted_rip = static_cast<std::uint64_t>(registers[REG_RIP]);
  state.interruption = why;
  registers[REG_RIP] = reinterpret_cast<greg_t>(&interrupted_entry);
}

// A system call from outside the kernel's text: guest code that is not patched, or the vDSO on the kernel's behalf.
void on_trapped_call(const siginfo_t& info, ucontext_t& context) {
  greg_t* const registers = context.uc_mcontext.gregs;
  if (is_kernel_stack(static_cast<std::uint64_t>(registers[REG_RSP]))) {
    if (info.si_syscall != SYS_clock_gettime) stop_sandbox("a system call in the kernel");
    registers[REG_RAX] = host::raw(SYS_clock_gettime, registers[REG_RDI], registers[REG_RSI]);
    return;
  }
  thread_state().trapped_site = static_cast<std::uint64_t>(registers[REG_RIP]);
  registers[REG_RCX] = registers[REG_RIP];
  registers[REG_RIP] = reinterpret_cast<greg_t>(&syscall_entry);
}

void on_kick(ucontext_t& context) {
  greg_t& rip = context.uc_mcontext.gregs[REG_RIP];
  const auto address = static_cast<std::uint64_t>(rip);
  if (!is_between(address, kernel_text_begin, kernel_text_end)) {
    // In the vDSO on the kernel's behalf: back in the kernel soon.
    if (!is_kernel_stack(static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RSP]))) {
      interrupt(context, Interruption::kick);
    }
  } else if (is_between(address, exit_restart, exit_end)) {
    rip = reinterpret_cast<greg_t>(exit_restart);
  } else if (is_between(address, wait_begin, wait_end)) {
    rip = reinterpret_cast<greg_t>(wait_interrupted);
  }
}

void on_fault(const siginfo_t& info, ucontext_t& context) {
  greg_t* const registers = context.uc_mcontext.gregs;
  const auto address = static_cast<std::uint64_t>(registers[REG_RIP]);
  if (is_between(address, user_copies_begin, user_copies_end)) {
    const bool is_string = is_between(address, user_string_begin, user_copies_end);
    // The short copies keep nothing in rcx that tells what is left.
    if (!is_string && registers[REG_RCX] == 0) registers[REG_RCX] = 1;
    registers[REG_RIP] = reinterpret_cast<greg_t>(is_string ? user_string_fault : user_copy_fault);
    return;
  }
  if (is_between(address, kernel_text_begin, kernel_text_end)) {
    stop_sandbox_at_fault(info.si_signo, address, reinterpret_cast<std::uint64_t>(info.si_addr));
  }
  ThreadState& state = thread_state();
  state.fault = info;
  state.fault_trap = static_cast<std::uint64_t>(registers[REG_TRAPNO]);
  state.fault_error = static_cast<std::uint64_t>(registers[REG_ERR]);
  state.fault_address = static_cast<std::uint64_t>(registers[REG_CR2]);
  interrupt(context, Interruption::fault);
}

void on_host_signal(int signal, siginfo_t* info, ucontext_t* context) {
  if (signal == SIGSYS) return on_trapped_call(*info, *context);
  if (signal == kKickSignal) return on_kick(*context);
  on_fault(*info, *context);
}

}  // namespace

void install_host_handlers() {
  const HostAction handled{on_host_signal, SA_SIGINFO | SA_ONSTACK | kRestorer, host_signal_return, ~0ULL};
  for (const int signal : {SIGSYS, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, kKickSignal}) {
    host::raw(SYS_rt_sigaction, signal, &handled, 0, sizeof handled.mask);
  }
  // So that the host reaps ended processes by itself: guests wait for what the arena says.
  HostAction ignored{};
  ignored.handler = reinterpret_cast<void (*)(int, siginfo_t*, ucontext_t*)>(1);  // SIG_IGN
  host::raw(SYS_rt_sigaction, SIGCHLD, &ignored, 0, sizeof ignored.mask);
}

}  // namespace belljar::kernel
