#include "kernel/task/clone.h"

#include <errno.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <time.h>

#include "kernel/arena/heap.h"
#include "kernel/host/calls.h"
#include "kernel/host/raw.h"
#include "kernel/mm/address_space.h"
#include "kernel/mm/user_memory.h"
#include "kernel/syscalls/syscalls.h"
#include "kernel/task/process_table.h"
#include "kernel/task/signals.h"
#include "kernel/time/interval_timers.h"

extern "C" {
long host_clone_thread(std::uint64_t flags, std::uint64_t stack, std::int32_t* parent_tid, std::int32_t* child_tid);
extern char exit_restart[];
}

namespace belljar::kernel {
namespace {

// The two forms of clone(2) that the seccomp profile allows.
constexpr std::uint64_t kHostThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                                      CLONE_PARENT_SETTID | CLONE_CHILD_SETTID;
constexpr std::uint64_t kHostProcess = SIGCHLD | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID;

constexpr std::uint64_t kGuestThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
constexpr std::uint64_t kNewNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

struct CloneArguments {
  std::uint64_t flags;
  std::uint64_t stack;
  std::uint64_t parent_tid;
  std::uint64_t child_tid;
  std::uint64_t tls;
};

std::uint64_t read_fs_base() {
  std::uint64_t base;
  asm volatile("rdfsbase %0" : "=r"(base));
  return base;
}

void write_fs_base(std::uint64_t base) {
  asm volatile("wrfsbase %0" : : "r"(base));
}

void inherit(Task& child, const Task& parent) {
  child.credentials = parent.credentials;
  child.settings = parent.settings;
  __builtin_memcpy(child.name, parent.name, sizeof child.name);
  child.blocked.store(parent.blocked.load());
}

SysResult<Ref<FsPlaces>> copy_places(FsPlaces& from) {
  Ref<FsPlaces> copy = make_ref<FsPlaces>();
  if (!copy) return error(ENOMEM);
  LockGuard guard(from.lock);
  copy->places = from.places;
  copy->umask = from.umask;
  return copy;
}

// A process like the running one, with one task that nobody sees run yet.
SysResult<Task*> copy_process(const CloneArguments& arguments) {
  Task& parent = current();
  Process& from = *parent.process;
  Ref<Process> process = make_ref<Process>();
  if (!process) return error(ENOMEM);
  Ref<SignalActions> actions = from.actions;
  if ((arguments.flags & CLONE_SIGHAND) == 0) {
    actions = make_ref<SignalActions>();
    if (!actions) return error(ENOMEM);
    __builtin_memcpy(actions->actions, from.actions->actions, sizeof actions->actions);
  }
  Ref<FdTable> files = (arguments.flags & CLONE_FILES) != 0 ? parent.files : TRY(parent.files->copy());
  Ref<FsPlaces> places = (arguments.flags & CLONE_FS) != 0 ? parent.fs : TRY(copy_places(*parent.fs));
  process->actions = actions;
  process->exit_signal = static_cast<int>(arguments.flags & CSIGNAL);
  process->dumpable = from.dumpable;
  process->executable = from.executable;
  process->arguments_begin = from.arguments_begin;
  process->arguments_end = from.arguments_end;
  process->environment_begin = from.environment_begin;
  process->environment_end = from.environment_end;
  process->auxiliary_begin = from.auxiliary_begin;
  process->auxiliary_end = from.auxiliary_end;
  process->command_line = from.command_line;
  process->oom_score_adjustment = from.oom_score_adjustment;
  process->mapped_bytes = from.mapped_bytes.load();
  process->memory_bytes = from.memory_bytes.load();
  process->memory_peak_bytes = from.memory_bytes.load();
  process->start_ns = host::clock_ns(CLOCK_BOOTTIME);
  __builtin_memcpy(process->limits, from.limits, sizeof process->limits);

  LockGuard guard(tasks_lock());
  if (from.is_exiting) return error(kRestart);
  Task* const child = TRY(add_task(*process));
  child->files = std::move(files);
  child->fs = std::move(places);
  inherit(*child, parent);
  child->alternate_stack = parent.alternate_stack;
  link_child(from, *process);
  if (const auto entered = enter_group(*process, from.group->id, from.group->session); !entered) {
    unlink_child(*process);
    forget_task(*child);
    return error(value_of(entered.error()));
  }
  apply_cpu_limit(*process);
  process.leak();  // the table's until it is reaped
  return child;
}

void forget_process(Task& child) {
  LockGuard guard(tasks_lock());
  Process& process = *child.process;
  unlink_child(process);
  leave_group(process);
  forget_task(child);
  process.release();
}

// The host maps a page that is read first together with the pages around it, and one that is written first alone.
// Objects of a process lie close together, and the child goes on to write to most of them.
void look_at_objects(const Process& process) {
  (void)*static_cast<const volatile Pid*>(&process.host_pid);
}

// In a new host process: its only thread is `task`.
void begin_process(Task& task) {
  ThreadState& state = thread_state();
  state.task = &task;
  state.host_tid = static_cast<std::uint32_t>(task.host_tid);
  keep_only_own_slot();
  look_at_objects(*task.process);
  task.process->host_pid = task.host_tid;
  task.is_kickable.store(1);
  adopt_file_sizes();
}

long clone_host_process(Task& child) {
  lock_address_space_for_fork();
  hold_areas();
  const long result = host::raw(SYS_clone, kHostProcess, 0, &child.host_tid, &child.host_tid, 0);
  if (result < 0) release_areas();
  unlock_address_space_after_fork();
  return result;
}

SyscallResult fork_process(const CloneArguments& arguments) {
  Task* const child = TRY(copy_process(arguments));
  if ((arguments.flags & CLONE_CHILD_CLEARTID) != 0) child->clear_child_tid = arguments.child_tid;
  const Pid pid = child->tid;
  if ((arguments.flags & CLONE_PARENT_SETTID) != 0) (void)copy_out(arguments.parent_tid, pid);
  const long result = clone_host_process(*child);
  if (result == 0) {
    begin_process(*child);
    if ((arguments.flags & CLONE_CHILD_SETTID) != 0) (void)copy_out(arguments.child_tid, pid);
    if ((arguments.flags & CLONE_SETTLS) != 0) write_fs_base(arguments.tls);
    if (arguments.stack != 0) thread_state().frame->rsp = arguments.stack;
    return 0;
  }
  if (result > 0) return pid;
  forget_process(*child);
  return error(static_cast<int>(-result));
}

SyscallResult vfork_process(const CloneArguments& arguments) {
  Task& parent = current();
  auto* const vfork = make_object<VforkReturn>();
  if (vfork == nullptr) return error(ENOMEM);
  const auto copied = copy_process(arguments);
  if (!copied) {
    delete_object(vfork);
    return error(value_of(copied.error()));
  }
  Task* const child = *copied;
  ThreadState& state = thread_state();
  *vfork = {&parent, child->tid, read_fs_base(), *state.frame};
  if ((arguments.flags & CLONE_PARENT_SETTID) != 0) (void)copy_out(arguments.parent_tid, child->tid);
  if ((arguments.flags & CLONE_CHILD_CLEARTID) != 0) child->clear_child_tid = arguments.child_tid;
  {
    LockGuard guard(tasks_lock());
    parent.is_kickable.store(0);
    child->vfork_return = vfork;
    child->host_tid = parent.host_tid;
    child->process->host_pid = parent.process->host_pid;
    child->is_kickable.store(1);
    state.task = child;
  }
  if ((arguments.flags & CLONE_CHILD_SETTID) != 0) (void)copy_out(arguments.child_tid, child->tid);
  if ((arguments.flags & CLONE_SETTLS) != 0) write_fs_base(arguments.tls);
  if (arguments.stack != 0) state.frame->rsp = arguments.stack;
  return 0;
}

SyscallResult start_thread(const CloneArguments& arguments) {
  if ((arguments.flags & kGuestThread) != kGuestThread) return error(EINVAL);
  Task& parent = current();
  ThreadState* const state = take_thread_slot();
  if (state == nullptr) return error(EAGAIN);
  Task* child = nullptr;
  {
    LockGuard guard(tasks_lock());
    const auto added = parent.process->is_exiting ? SysResult<Task*>(error(kRestart)) : add_task(*parent.process);
    if (!added) {
      slot_word(state->slot).store(0);
      return error(value_of(added.error()));
    }
    child = *added;
    child->files = parent.files;
    child->fs = parent.fs;
    inherit(*child, parent);
  }
  if ((arguments.flags & CLONE_CHILD_CLEARTID) != 0) child->clear_child_tid = arguments.child_tid;
  const Pid tid = child->tid;
  if ((arguments.flags & CLONE_PARENT_SETTID) != 0) (void)copy_out(arguments.parent_tid, tid);
  if ((arguments.flags & CLONE_CHILD_SETTID) != 0) (void)copy_out(arguments.child_tid, tid);

  state->entry = thread_state().entry;
  state->cpuid_entry = thread_state().cpuid_entry;
  state->task = child;
  state->first_fs_base = (arguments.flags & CLONE_SETTLS) != 0 ? arguments.tls : read_fs_base();
  state->frame = reinterpret_cast<Frame*>(state->kernel_stack - sizeof(Frame));
  *state->frame = *thread_state().frame;
  state->frame->rax = 0;
  if (arguments.stack != 0) state->frame->rsp = arguments.stack;
  auto* const first_word = reinterpret_cast<ThreadState**>(state->frame) - 1;
  *first_word = state;
  const long result =
      host_clone_thread(kHostThread, reinterpret_cast<std::uint64_t>(first_word), &child->host_tid, &child->host_tid);
  if (result > 0) return tid;
  LockGuard guard(tasks_lock());
  forget_task(*child);
  slot_word(state->slot).store(0);
  return error(static_cast<int>(-result));
}

SyscallResult clone_task(const CloneArguments& arguments) {
  if ((arguments.flags & kNewNamespaces) != 0) return error(EPERM);
  if ((arguments.flags & (CLONE_PARENT | CLONE_PIDFD | CLONE_PTRACE | CLONE_IO)) != 0) return error(EINVAL);
  // RLIMIT_NPROC, getrlimit(2): every task of a sandbox counts for its one user.
  if (count_tasks() >= current().process->limits[RLIMIT_NPROC].rlim_cur) {
    note_task_refusal();
    return error(EAGAIN);
  }
  if ((arguments.flags & CLONE_THREAD) != 0) return start_thread(arguments);
  if ((arguments.flags & CLONE_VM) == 0) return fork_process(arguments);
  if ((arguments.flags & CLONE_VFORK) == 0) return error(EINVAL);  // two processes in one memory, both running
  return vfork_process(arguments);
}

}  // namespace

// The first thing that a new thread does, on its kernel stack.
extern "C" void thread_begins() {
  ThreadState& state = thread_state();
  Task& task = *state.task;
  state.host_tid = static_cast<std::uint32_t>(task.host_tid);
  use_signal_stack(state);
  write_fs_base(state.first_fs_base);
  task.is_kickable.store(1);
}

void return_to_vfork_parent(VforkReturn& vfork) {
  ThreadState& state = thread_state();
  auto* const frame = reinterpret_cast<Frame*>(state.kernel_stack - sizeof(Frame));
  *frame = vfork.frame;
  frame->rax = static_cast<std::uint64_t>(vfork.child);
  state.frame = frame;
  write_fs_base(vfork.fs_base);
  {
    LockGuard guard(tasks_lock());
    state.task = vfork.parent;
    vfork.parent->is_kickable.store(1);
    vfork.parent->has_work.store(1);
  }
  delete_object(&vfork);
  asm volatile("jmp exit_restart");
  __builtin_unreachable();
}

SysResult<void> part_from_vfork_parent(Task& child) {
  VforkReturn* const vfork = child.vfork_return;
  child.is_kickable.store(0);
  const long result = clone_host_process(child);
  if (result == 0) {
    child.vfork_return = nullptr;
    begin_process(child);
    return {};
  }
  if (result > 0) return_to_vfork_parent(*vfork);
  child.is_kickable.store(1);
  return error(static_cast<int>(-result));
}

SyscallResult sys_clone(const SyscallArguments& arguments) {
  return clone_task(
      {arguments.values[0], arguments.values[1], arguments.values[2], arguments.values[3], arguments.values[4]});
}

SyscallResult sys_fork(const SyscallArguments&) {
  return clone_task({SIGCHLD, 0, 0, 0, 0});
}

SyscallResult sys_vfork(const SyscallArguments&) {
  return clone_task({SIGCHLD | CLONE_VM | CLONE_VFORK, 0, 0, 0, 0});
}

}  // namespace belljar::kernel
