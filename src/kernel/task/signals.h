// Signals inside the kernel: what is pending, who acts on it. signal(7).
#pragma once

#include "kernel/task/process.h"

namespace belljar::kernel {

inline constexpr SignalSet kNeverBlocked = (1ULL << (SIGKILL - 1)) | (1ULL << (SIGSTOP - 1));
inline constexpr SignalSet kStopSignals =
    (1ULL << (SIGSTOP - 1)) | (1ULL << (SIGTSTP - 1)) | (1ULL << (SIGTTIN - 1)) | (1ULL << (SIGTTOU - 1));
// What a fault of the program's own raises.
inline constexpr SignalSet kFaultSignals = (1ULL << (SIGSEGV - 1)) | (1ULL << (SIGBUS - 1)) | (1ULL << (SIGFPE - 1)) |
                                           (1ULL << (SIGILL - 1)) | (1ULL << (SIGTRAP - 1)) | (1ULL << (SIGSYS - 1));

enum class DefaultAction : std::uint8_t { end, ignore, stop, go_on };
DefaultAction default_action(int signal);

// All of these with the tasks lock held, but where a comment says otherwise.

void send_signal_locked(Process& process, const siginfo_t& info);
void send_signal_to_task_locked(Task& task, const siginfo_t& info);
void send_signal_to_group_locked(ProcessGroup& group, const siginfo_t& info);

// Takes one signal of `wanted` that is pending for the task or its process; si_signo 0: there is none.
siginfo_t take_signal(Task& task, SignalSet wanted);
SignalSet pending_signals(const Task& task);
void drop_signals(SignalQueue& queue, SignalSet which);

// Has the task look at its work soon, wherever it is. (Takes no lock.)
void kick(Task& task);
// Has it do so before it goes on with guest code; a sleep goes on.
void nudge(Task& task);
// Has it do so at once, also out of a sleep, which goes on afterwards.
void interrupt_for_work(Task& task);
// What a thread does between two sleeps, and before it goes on with guest code, where it holds no lock.
void do_work();
// Takes the lock itself; the calling thread's own mask.
void set_blocked(SignalSet blocked);

// Ends every thread of the process, as by exit_group(2); `status` as wait(2) tells it.
void begin_exit(Process& process, int status);

// A fault of the running thread, or a signal that it can't go on after: also where it is blocked or ignored, which ends
// the process then. Takes the lock itself.
void force_signal(const siginfo_t& info);

}  // namespace belljar::kernel
