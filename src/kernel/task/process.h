// Processes and their threads, as guests see them. Host identities (host_*) are kept apart from what guests see.
//
// Locks: the tasks lock (LockRank::tasks) holds everything here but for what a comment says otherwise.
#pragma once

#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdint>

#include "kernel/arena/lock.h"
#include "kernel/arena/ref.h"
#include "kernel/fs/fd_table.h"
#include "kernel/fs/inode.h"
#include "kernel/fs/tree.h"
#include "kernel/task/wait_queue.h"

namespace belljar::kernel {

using Pid = std::int32_t;
using SignalSet = std::uint64_t;  // bit n-1: signal n

constexpr SignalSet signal_bit(int signal) {
  return 1ULL << (signal - 1);
}

// As the raw rt_sigaction(2) has it.
struct SignalAction {
  std::uint64_t handler = 0;  // SIG_DFL, SIG_IGN or an address
  std::uint64_t flags = 0;
  std::uint64_t restorer = 0;
  SignalSet mask = 0;
};

// A signal that waits, with what siginfo_t tells of it.
struct PendingSignal {
  PendingSignal* next = nullptr;
  siginfo_t info{};
};

struct SignalQueue {
  SignalSet set = 0;
  PendingSignal* first = nullptr;  // at most one of each standard signal, in order
};

class SignalActions final : public Counted {
 public:
  SignalAction actions[NSIG] = {};
};

class FsPlaces final : public Counted {
 public:
  Lock lock{LockRank::fd_table};
  Places places;
  std::uint32_t umask = 022;
};

class IntervalTimers;
class Process;
class ProcessGroup;
class Question;
class Terminal;

// setsid(2). Lives as long as a group of it does.
class Session {
 public:
  Pid id = 0;
  Terminal* terminal = nullptr;  // the controlling one; owned by ipc/terminal
  std::uint32_t group_count = 0;
};

// setpgid(2). Lives as long as a process is in it.
class ProcessGroup {
 public:
  Pid id = 0;
  Session* session = nullptr;
  Process* first_process = nullptr;
};

enum class ProcessState : std::uint8_t { running, stopped, zombie };

struct CpuTimes {
  std::uint64_t user_ns = 0;
  std::uint64_t system_ns = 0;
};

// A process's arguments as execve(2) had them, each with its NUL.
class CommandLine final : public Counted {
 public:
  static constexpr std::size_t kSizeMax = 2000;
  std::string_view text() const { return {characters, size}; }
  std::uint32_t size = 0;
  char characters[kSizeMax];
};

class Task;

// What a task asks for and hands down to the threads and processes that it makes; kept over execve(2). The host places
// and schedules threads as it likes: these are noted only.
struct TaskSettings {
  int nice = 0;
  int policy = 0;                         // SCHED_OTHER
  std::uint64_t affinity[16] = {};        // bits of CPUs; none set: all that there are
  std::uint64_t timer_slack_ns = 50'000;  // PR_SET_TIMERSLACK
  bool keeps_capabilities = false;        // PR_SET_KEEPCAPS
  bool is_without_huge_pages = false;     // PR_SET_THP_DISABLE
};

// A thread group.
class Process final : public Counted {
 public:
  Pid pid = 0;
  Process* parent = nullptr;
  Process* first_child = nullptr;
  Process* next_sibling = nullptr;
  Process* previous_sibling = nullptr;
  Process* next_in_group = nullptr;
  Process* previous_in_group = nullptr;
  ProcessGroup* group = nullptr;  // and through it the session
  Task* first_task = nullptr;     // linked by Task::next_in_process
  std::uint32_t task_count = 0;
  Task* leader = nullptr;

  ProcessState state = ProcessState::running;
  bool is_exiting = false;    // exit_group(2) or a deadly signal: threads leave as they come by
  Task* executing = nullptr;  // execve(2) waits for all other threads to leave
  int wait_status = 0;        // wait(2), once a zombie
  int exit_signal = SIGCHLD;
  int stop_signal = 0;  // 0: nothing to report to a waiter
  bool was_continued = false;
  bool has_executed = false;  // setpgid(2) by the parent is EACCES then
  bool is_subreaper = false;
  int parent_death_signal = 0;
  WaitQueue child_events;  // wait4(2) of this process sleeps here; pidfds of it are woken on exit_events
  WaitQueue exit_events;
  WaitQueue signal_events;  // signalfd and sigtimedwait sleep here

  SignalQueue pending;
  Ref<SignalActions> actions;
  IntervalTimers* timers = nullptr;
  rlimit limits[RLIM_NLIMITS] = {};
  CpuTimes dead_threads;
  CpuTimes dead_children;
  // How much memory it has mapped, and how much of that it may access: which pages are there is the host's to know, so
  // all of them count. Told by the process itself (mm/address_space.h).
  std::atomic<std::uint64_t> mapped_bytes = 0;
  std::atomic<std::uint64_t> memory_bytes = 0;
  std::atomic<std::uint64_t> memory_peak_bytes = 0;  // over execve(2) too
  std::uint64_t children_peak_bytes = 0;             // of the one that had the most, of those that were waited for
  std::uint64_t start_ns = 0;                        // CLOCK_BOOTTIME
  std::uint32_t dumpable = 1;
  int oom_score_adjustment = 0;                // noted; inherited
  std::atomic<Question*> questions = nullptr;  // changed under the tasks lock (task/question.h)

  Ref<Dentry> executable;
  // Where in guest memory /proc/self/cmdline and environ are.
  std::uint64_t arguments_begin = 0, arguments_end = 0, environment_begin = 0, environment_end = 0;
  std::uint64_t auxiliary_begin = 0, auxiliary_end = 0;
  // The beginning of the arguments, for other processes, which can't read this one's memory. Null: none.
  Ref<CommandLine> command_line;

  Pid host_pid = 0;
};

// A thread.
class Task final {
 public:
  std::atomic<std::uint32_t> has_work =
      0;  // first: entry.S looks at it on the way out of every call. A signal, a stop, an end

  Pid tid = 0;
  Process* process = nullptr;
  Task* next_in_process = nullptr;
  Task* previous_in_process = nullptr;
  bool is_dead = false;

  // Read by their own thread without a lock.
  Ref<FdTable> files;
  Ref<FsPlaces> fs;
  Credentials credentials;
  char name[16] = {};  // comm
  TaskSettings settings;

  // Signals.
  std::atomic<SignalSet> blocked = 0;
  SignalQueue pending;
  SignalSet saved_blocked = 0;  // of sigsuspend and ppoll: restored once a handler is set up
  bool must_restore_blocked = false;
  stack_t alternate_stack{nullptr, SS_DISABLE, 0};

  // Waiting.
  std::atomic<std::uint32_t> wake_word = 0;
  std::atomic<std::uint32_t> is_sleeping = 0;
  std::uint32_t spin_ns = 0;  // how long it waits awake (task/spin.h); its own thread's

  std::uint64_t clear_child_tid = 0;
  std::uint64_t robust_list = 0;
  std::uint64_t robust_list_size = 0;

  std::int32_t host_tid = 0;
  std::atomic<std::uint32_t> is_kickable = 0;  // its host thread is set up, and is this task's
  struct VforkReturn* vfork_return = nullptr;  // of a child of vfork(2) that runs on its parent's host thread
};

// The thread that runs this code.
Task& current();
inline Process& current_process() {
  return *current().process;
}

Lock& tasks_lock();

// Of the tree of processes; the tasks lock is held by the caller, as long as the answer is used.
Process* find_process(Pid pid);
Task* find_task(Pid tid);
ProcessGroup* find_group(Pid id);
Process* next_process(Pid after);  // by rising pid; for /proc

// No living member has a parent of the same session outside of the group (setpgid(2)): nobody is there to continue it.
bool is_orphaned(const ProcessGroup& group);

std::uint32_t count_tasks();
Pid group_id_of(const Process& process);
Pid session_id_of(const Process& process);

// The running thread has a signal to act on that is not blocked, or must end.
bool has_signal();

// Whether a file of this size may be written (RLIMIT_FSIZE): sends SIGXFSZ and answers EFBIG.
SysResult<void> check_file_size(std::uint64_t end);

// Sends a signal. kill(2) rules on who may are the caller's to check.
void send_signal(Process& process, const siginfo_t& info);
void send_signal_to_task(Task& task, const siginfo_t& info);
void send_signal_to_group(ProcessGroup& group, const siginfo_t& info);
// The kernel's own signal to the running thread: SIGPIPE, SIGXFSZ (si_code SI_USER, SI_KERNEL).
void raise_signal(int signal);

}  // namespace belljar::kernel
