#include "kernel/task/signal_return.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>

#include <cstring>

#include "kernel/mm/address_space.h"
#include "kernel/mm/user_memory.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/task/exit.h"
#include "kernel/task/process_table.h"
#include "kernel/task/question.h"
#include "kernel/task/signals.h"

extern "C" {
// entry.S. 0, or something else where the address faulted.
std::size_t user_xsave(std::uint64_t area, std::uint64_t parts);
std::size_t user_xrstor(std::uint64_t area, std::uint64_t parts);
}

namespace belljar::kernel {
namespace {

// The layout that the kernel's ABI has on x86-64 (arch/x86/include/uapi/asm/sigcontext.h).
struct GuestContext {
  std::uint64_t flags;
  std::uint64_t link;
  stack_t stack;
  std::uint64_t registers[23];
  std::uint64_t extended;
  std::uint64_t reserved[8];
  SignalSet mask;
};
static_assert(offsetof(GuestContext, registers) == 40 && offsetof(GuestContext, mask) == 296);

struct GuestSignalFrame {
  std::uint64_t restorer;
  GuestContext context;
  siginfo_t info;
};

constexpr std::uint64_t kContextFlags = 1 | 2 | 4;  // UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS
constexpr std::uint32_t kExtendedMagic = 0x4650'5853;
constexpr std::uint32_t kExtendedMagicEnd = 0x4650'5845;
constexpr std::uint64_t kLegacySize = 512;
constexpr std::uint64_t kHeaderSize = 64;
constexpr std::uint64_t kSoftwareAt = 464;  // fpx_sw_bytes
constexpr std::uint64_t kRedZone = 128;
// What a program may set: carry to overflow, direction, alignment, id; not the trap flag, which would stop in the
// kernel.
constexpr std::uint64_t kGuestFlags = 0x244'cd5;
constexpr std::uint64_t kCodeSegments = 0x002b'0000'0000'0033;
constexpr std::uint64_t kRestartFlag = 0x1000'0000;  // SA_RESTART
constexpr std::uint64_t kOnStackFlag = 0x0800'0000;  // SA_ONSTACK
constexpr std::uint64_t kNoDeferFlag = 0x4000'0000;  // SA_NODEFER
constexpr std::uint64_t kResetFlag = 0x8000'0000;    // SA_RESETHAND

struct ExtendedState {
  std::uint64_t size = 0;
  std::uint64_t parts = 0;
} extended_state;

struct SoftwareBytes {
  std::uint32_t magic;
  std::uint32_t extended_size;
  std::uint64_t parts;
  std::uint32_t state_size;
  std::uint32_t padding[7];
};

bool is_on(const stack_t& stack, std::uint64_t address) {
  const auto base = reinterpret_cast<std::uint64_t>(stack.ss_sp);
  return (stack.ss_flags & SS_DISABLE) == 0 && address > base && address - base <= stack.ss_size;
}

// Saves the vector registers, which still hold the guest's values, below `top`. The address of what was saved.
SysResult<std::uint64_t> save_extended_state(std::uint64_t top) {
  const std::uint64_t total = extended_state.size + sizeof kExtendedMagicEnd;
  const std::uint64_t area = (top - total) & ~63ULL;
  TRY_VOID(zero_out(area + kLegacySize, kHeaderSize));
  if (user_xsave(area, extended_state.parts) != 0) return error(EFAULT);
  const SoftwareBytes software{kExtendedMagic,
                               static_cast<std::uint32_t>(total),
                               extended_state.parts,
                               static_cast<std::uint32_t>(extended_state.size),
                               {}};
  TRY_VOID(copy_out(area + kSoftwareAt, software));
  TRY_VOID(copy_out(area + extended_state.size, kExtendedMagicEnd));
  return area;
}

void fill_registers(GuestContext& context, const Frame& frame, const ThreadState& state, bool is_fault) {
  std::uint64_t* const to = context.registers;
  to[REG_R8] = frame.r8;
  to[REG_R9] = frame.r9;
  to[REG_R10] = frame.r10;
  to[REG_R11] = frame.is_full != 0 ? frame.r11 : frame.flags;
  to[REG_R12] = frame.r12;
  to[REG_R13] = frame.r13;
  to[REG_R14] = frame.r14;
  to[REG_R15] = frame.r15;
  to[REG_RDI] = frame.rdi;
  to[REG_RSI] = frame.rsi;
  to[REG_RBP] = frame.rbp;
  to[REG_RBX] = frame.rbx;
  to[REG_RDX] = frame.rdx;
  to[REG_RAX] = frame.rax;
  to[REG_RCX] = frame.is_full != 0 ? frame.rcx : frame.rip;
  to[REG_RSP] = frame.rsp;
  to[REG_RIP] = frame.rip;
  to[REG_EFL] = frame.flags;
  to[REG_CSGSFS] = kCodeSegments;
  if (!is_fault) return;
  to[REG_TRAPNO] = state.fault_trap;
  to[REG_ERR] = state.fault_error;
  to[REG_CR2] = state.fault_address;
}

// Makes the frame return into the handler.
SysResult<void> enter_handler(Frame& frame, const SignalAction& action, const siginfo_t& info, SignalSet old_mask) {
  Task& task = current();
  const stack_t& alternate = task.alternate_stack;
  std::uint64_t top = frame.rsp - kRedZone;
  if ((action.flags & kOnStackFlag) != 0 && (alternate.ss_flags & SS_DISABLE) == 0 && !is_on(alternate, frame.rsp)) {
    top = reinterpret_cast<std::uint64_t>(alternate.ss_sp) + alternate.ss_size;
  }
  const std::uint64_t extended = TRY(save_extended_state(top));
  GuestSignalFrame signal_frame{};
  signal_frame.restorer = action.restorer;
  signal_frame.info = info;
  GuestContext& context = signal_frame.context;
  context.flags = kContextFlags;
  context.stack = alternate;
  if (is_on(alternate, frame.rsp)) context.stack.ss_flags |= SS_ONSTACK;
  context.extended = extended;
  context.mask = old_mask;
  const bool is_fault = (kFaultSignals & signal_bit(info.si_signo)) != 0 && info.si_code > 0;
  fill_registers(context, frame, thread_state(), is_fault);
  const std::uint64_t at = ((extended - sizeof signal_frame) & ~15ULL) - sizeof(std::uint64_t);
  TRY_VOID(copy_out(at, signal_frame));
  const std::uint64_t flags = frame.flags & ~0x500ULL;  // direction and trap flag
  frame.rsp = at;
  frame.rip = action.handler;
  frame.rdi = static_cast<std::uint64_t>(info.si_signo);
  frame.rsi = at + offsetof(GuestSignalFrame, info);
  frame.rdx = at + offsetof(GuestSignalFrame, context);
  frame.rax = 0;
  frame.flags = flags;
  frame.call = kNoCall;
  return {};
}

// Waits until the process is continued or killed. Tasks lock held on entry and exit.
void wait_while_stopped(Process& process) {
  while (process.state == ProcessState::stopped && !process.is_exiting) {
    prepare_to_sleep();
    const bool is_asked = process.questions.load() != nullptr;
    tasks_lock().unlock();
    if (!is_asked) sleep_while_stopped();
    answer_questions();
    tasks_lock().lock();
  }
}

void stop_process(Process& process, int signal) {
  process.state = ProcessState::stopped;
  process.stop_signal = signal;
  process.was_continued = false;
  for (Task* task = process.first_task; task != nullptr; task = task->next_in_process) {
    if (task != &current()) kick(*task);
  }
  notify_parent(process, CLD_STOPPED, signal);
}

// A call that a signal interrupted: again, or EINTR.
void settle_interrupted_call(Frame& frame, const SignalAction* action) {
  const auto code = -static_cast<std::int64_t>(frame.rax);
  if (frame.call == kNoCall || (code != kRestart && code != kRestartNoHandler)) return;
  const bool again = action == nullptr || (code == kRestart && (action->flags & kRestartFlag) != 0);
  if (again) {
    constexpr std::uint64_t kSyscallSize = 2;  // the instruction is still there, also where the site is patched
    frame.rip -= kSyscallSize;
    frame.rax = frame.call;
  } else {
    frame.rax = static_cast<std::uint64_t>(-EINTR);
  }
  frame.call = kNoCall;
}

// What is to be done with one signal. Tasks lock held. True: a handler is to run, `action` tells which.
bool act_on(Task& task, const siginfo_t& info, SignalAction* action) {
  Process& process = *task.process;
  const int signal = info.si_signo;
  SignalAction& current_action = process.actions->actions[signal];
  *action = current_action;
  if (action->handler == reinterpret_cast<std::uint64_t>(SIG_IGN)) return false;
  if (action->handler != reinterpret_cast<std::uint64_t>(SIG_DFL)) {
    if ((action->flags & kResetFlag) != 0) current_action.handler = reinterpret_cast<std::uint64_t>(SIG_DFL);
    return true;
  }
  switch (default_action(signal)) {
    case DefaultAction::ignore:
    case DefaultAction::go_on:
      break;
    case DefaultAction::stop:
      if (signal != SIGSTOP && is_orphaned(*process.group)) break;
      stop_process(process, signal);
      break;
    case DefaultAction::end:
      begin_exit(process, signal);
      break;
  }
  return false;
}

struct Delivery {
  siginfo_t info{};
  SignalAction action;
  SignalSet old_mask = 0;
};

// The next signal that wants a handler; false: there is none any more. Ends the thread where it must end.
bool next_delivery(Delivery* delivery) {
  Task& task = current();
  Process& process = *task.process;
  tasks_lock().lock();
  task.has_work.store(0);
  while (true) {
    wait_while_stopped(process);
    if (process.is_exiting || (process.executing != nullptr && process.executing != &task)) {
      tasks_lock().unlock();
      exit_task();
    }
    delivery->info = take_signal(task, ~task.blocked.load());
    if (delivery->info.si_signo == 0) break;
    if (!act_on(task, delivery->info, &delivery->action)) continue;
    delivery->old_mask = task.must_restore_blocked ? task.saved_blocked : task.blocked.load();
    task.must_restore_blocked = false;
    SignalSet blocked = task.blocked.load() | delivery->action.mask;
    if ((delivery->action.flags & kNoDeferFlag) == 0) blocked |= signal_bit(delivery->info.si_signo);
    task.blocked.store(blocked & ~kNeverBlocked);
    if ((pending_signals(task) & ~task.blocked.load()) != 0) task.has_work.store(1);
    tasks_lock().unlock();
    return true;
  }
  const bool restores = task.must_restore_blocked;
  task.must_restore_blocked = false;
  tasks_lock().unlock();
  if (restores) set_blocked(task.saved_blocked);
  return false;
}

}  // namespace

extern "C" void work_before_return(Frame* frame) {
  Delivery delivery;
  while (next_delivery(&delivery)) {
    settle_interrupted_call(*frame, &delivery.action);
    if (enter_handler(*frame, delivery.action, delivery.info, delivery.old_mask)) continue;
    // No room for its frame: the program can't go on.
    siginfo_t info{};
    info.si_signo = SIGSEGV;
    info.si_code = SI_KERNEL;
    Task& task = current();
    if (delivery.info.si_signo == SIGSEGV) {
      LockGuard guard(tasks_lock());
      begin_exit(*task.process, SIGSEGV);
      task.has_work.store(1);
    } else {
      force_signal(info);
    }
  }
  settle_interrupted_call(*frame, nullptr);
  do_work();
}

void raise_fault(ThreadState& state) {
  constexpr std::uint64_t kOnPresentPage = 1, kOnWrite = 2, kOnFetch = 16;  // of the processor's error code
  siginfo_t& info = state.fault;
  if (info.si_signo == SIGSEGV && info.si_code == SEGV_ACCERR) {
    const bool is_write = (state.fault_error & kOnWrite) != 0;
    const bool is_fetch = (state.fault_error & kOnFetch) != 0;
    const int wanted = is_write ? PROT_WRITE : is_fetch ? PROT_EXEC : PROT_READ | PROT_WRITE | PROT_EXEC;
    switch (settle_file_fault(state.fault_address, static_cast<std::uint32_t>(wanted))) {
      case FileFault::none:
        break;
      case FileFault::grown:
        return;
      case FileFault::past_end:
        info.si_signo = SIGBUS;
        info.si_code = BUS_ADRERR;
        state.fault_error &= ~kOnPresentPage;
        break;
    }
  }
  force_signal(info);
}

void measure_extended_state() {
  std::uint32_t low = 0, size = 0, high = 0, c = 0;
  asm volatile("cpuid" : "=a"(low), "=b"(size), "=c"(c), "=d"(high) : "a"(0xd), "c"(0));
  std::uint32_t enabled_low = 0, enabled_high = 0;
  asm volatile("xgetbv" : "=a"(enabled_low), "=d"(enabled_high) : "c"(0));
  extended_state = {size, (static_cast<std::uint64_t>(enabled_high) << 32) | enabled_low};
}

// rt_sigreturn(2): what the handler left in its frame is the state to go on with.
SyscallResult sys_rt_sigreturn(const SyscallArguments&) {
  ThreadState& state = thread_state();
  Frame& frame = *state.frame;
  const auto read = copy_in<GuestContext>(frame.rsp);
  SoftwareBytes software{};
  bool is_valid = read.has_value();
  if (is_valid && read->extended != 0) {
    is_valid = (read->extended & 63) == 0 && copy_in(&software, read->extended + kSoftwareAt, sizeof software) &&
               software.magic == kExtendedMagic &&
               user_xrstor(read->extended, software.parts & extended_state.parts) == 0;
  }
  if (!is_valid) {
    siginfo_t info{};
    info.si_signo = SIGSEGV;
    info.si_code = SI_KERNEL;
    force_signal(info);
    return 0ULL;
  }
  const std::uint64_t* const from = read->registers;
  frame = {from[REG_R15],
           from[REG_R14],
           from[REG_R13],
           from[REG_R12],
           from[REG_RBP],
           from[REG_RBX],
           from[REG_R9],
           from[REG_R8],
           from[REG_R10],
           from[REG_RDX],
           from[REG_RSI],
           from[REG_RDI],
           from[REG_RAX],
           kNoCall,
           from[REG_RSP],
           from[REG_RIP],
           (from[REG_EFL] & kGuestFlags) | 0x202,
           from[REG_RCX],
           from[REG_R11],
           1};
  Task& task = current();
  if (!is_on(task.alternate_stack, frame.rsp)) {
    task.alternate_stack = read->stack;
    task.alternate_stack.ss_flags &= ~SS_ONSTACK;
  }
  set_blocked(read->mask);
  return frame.rax;
}

}  // namespace belljar::kernel
