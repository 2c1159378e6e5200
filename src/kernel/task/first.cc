#include "kernel/task/first.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/mqueue.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include <cstring>

#include "kernel/arena/roots.h"
#include "kernel/broker/broker_client.h"
#include "kernel/broker/console.h"
#include "kernel/broker/console_terminal.h"
#include "kernel/entry/stop.h"
#include "kernel/entry/thread_state.h"
#include "kernel/fs/dev.h"
#include "kernel/fs/mount_tree.h"
#include "kernel/fs/open.h"
#include "kernel/fs/proc.h"
#include "kernel/fs/sys.h"
#include "kernel/host/calls.h"
#include "kernel/host/raw.h"
#include "kernel/mm/address_space.h"
#include "kernel/task/caretaker.h"
#include "kernel/task/exec.h"
#include "kernel/task/process_table.h"
#include "kernel/task/sandbox_facts.h"
#include "kernel/task/signal_return.h"
#include "kernel/terminal/devices.h"

namespace belljar::kernel {
namespace {

constexpr std::uint64_t kHostProcess = SIGCHLD | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID;
constexpr rlim_t kStackSize = 8U << 20;

// The texts of shm::Boot, one after the other.
class Texts {
 public:
  std::string_view next() {
    const char* const text = shared_with_broker().boot.texts + at_;
    const std::string_view found(text);
    at_ += found.size() + 1;
    return found;
  }

 private:
  std::size_t at_ = 0;
};

void note_facts(const shm::Boot& boot, const HostFacts& host) {
  SandboxFacts& facts = sandbox_facts();
  facts.memory_bytes = boot.memory_bytes;
  facts.cpu_count = boot.cpus;
  facts.tasks_max = static_cast<std::uint32_t>(boot.tasks);
  facts.started_ns = host::clock_ns(CLOCK_MONOTONIC);
  std::memcpy(facts.random_seed, host.random, sizeof host.random);
}

void set_limits(Process& process, const shm::Boot& boot) {
  for (rlimit& limit : process.limits) limit = {RLIM_INFINITY, RLIM_INFINITY};
  process.limits[RLIMIT_STACK] = {kStackSize, RLIM_INFINITY};
  process.limits[RLIMIT_NOFILE] = {boot.open_files, boot.open_files};
  process.limits[RLIMIT_NPROC] = {boot.tasks, boot.tasks};
  process.limits[RLIMIT_CORE] = {0, 0};
  process.limits[RLIMIT_MEMLOCK] = {0, 0};
  process.limits[RLIMIT_MSGQUEUE] = {MQ_BYTES_MAX, MQ_BYTES_MAX};
  process.limits[RLIMIT_NICE] = process.limits[RLIMIT_RTPRIO] = {0, 0};
  if (boot.file_size != 0) process.limits[RLIMIT_FSIZE] = {boot.file_size, boot.file_size};
}

SysResult<Places> make_tree(const shm::Boot& boot) {
  MountPlan plan;
  plan.root = &broker_tree();
  plan.space = make_ref<TmpSpace>(boot.tmp_bytes, boot.tmp_inodes);
  if (!plan.space) return error(ENOMEM);
  plan.uid = boot.uid;
  plan.gid = boot.gid;
  plan.proc = TRY(make_proc_file_system(plan.root));
  plan.dev = TRY(make_dev_file_system());
  plan.sys = TRY(make_sys_file_system());
  plan.terminals = make_terminal_folder();
  if (!plan.terminals) return error(ENOMEM);
  return mount_tree(plan);
}

SysResult<void> open_streams(Task& task) {
  if (has_console_terminal()) {
    const Ref<File> terminal = TRY(open_console_terminal());
    for (int i = 0; i < 3; ++i) TRY(task.files->add(terminal, CloseOnExec::no));
    return {};
  }
  for (const shm::StreamIndex index : {shm::kStdin, shm::kStdout, shm::kStderr}) {
    TRY(task.files->add(open_console(index), CloseOnExec::no));
  }
  return {};
}

// The program's process as it will be, but for its program.
SysResult<Task*> make_first_task(const shm::Boot& boot) {
  Ref<Process> process = make_ref<Process>();
  if (!process) return error(ENOMEM);
  process->actions = make_ref<SignalActions>();
  set_limits(*process, boot);
  process->start_ns = host::clock_ns(CLOCK_BOOTTIME);
  LockGuard guard(tasks_lock());
  Task* const task = TRY(add_task(*process));
  task->files = make_ref<FdTable>();
  task->fs = make_ref<FsPlaces>();
  if (!process->actions || !task->files || !task->fs) return error(ENOMEM);
  task->files->set_limit(static_cast<std::uint32_t>(boot.open_files));
  Credentials& who = task->credentials;
  who.uid = who.euid = who.suid = who.fsuid = boot.uid;
  who.gid = who.egid = who.sgid = who.fsgid = boot.gid;
  link_child(*process_table().init, *process);
  TRY_VOID(enter_group(*process, process->pid, nullptr));
  process.leak();
  return task;
}

void report_exec_failure(int errno_value) {
  shm::End& end = shared_with_broker().end;
  end.code = errno_value;
  end.kind.store(shm::End::kExecFailed);
  ring_broker();
}

SysResult<void> make_home(Task& task, std::string_view path) {
  LockGuard guard(tree_lock());
  const LastName place = TRY(walk_to_last(task.fs->places, task.fs->places.root, path, task.credentials, {}));
  TRY(make_file_at(place, S_IFDIR | 0700, 0, task.credentials));
  return {};
}

SysResult<void> change_to_working_folder(Task& task, std::string_view path) {
  LockGuard guard(tree_lock());
  Ref<Dentry> folder = TRY(walk(task.fs->places, task.fs->places.root, path, task.credentials, {}));
  if (!folder->inode->is_folder()) return error(ENOTDIR);
  task.fs->places.working_folder = std::move(folder);
  return {};
}

// As execvp(3): the next path where one is not there, and EACCES told last.
SysResult<void> execute_first_that_is_there(const HostFacts& facts, Texts& texts, std::uint32_t count) {
  int why = ENOENT;
  for (std::uint32_t i = 0; i < count; ++i) {
    ExecStrings arguments;
    ExecStrings environment;
    for (std::uint64_t at = 0; at < facts.argument_count; ++at) TRY_VOID(arguments.add(facts.arguments[at]));
    for (const char* const* variable = facts.environment; *variable != nullptr; ++variable) {
      TRY_VOID(environment.add(*variable));
    }
    const auto executed = execute(texts.next(), current().fs->places.working_folder, arguments, environment);
    if (executed) return {};
    const int code = value_of(executed.error());
    if (code == EACCES) why = EACCES;
    if (code != EACCES && code != ENOENT && code != ENOTDIR) return error(code);
  }
  return error(why);
}

// What the texts name, in their order, as far as the program's own.
SysResult<void> make_places(const shm::Boot& boot, Task& task, Texts& texts) {
  TRY_VOID(make_home(task, texts.next()));
  const std::string_view working_folder = texts.next();
  for (std::uint32_t i = 0; i < boot.own_folders; ++i) {
    TRY_VOID(mount_own_folder(task.fs->places, texts.next(), boot.uid, boot.gid));
  }
  for (std::uint32_t i = 0; i < boot.mounts; ++i) {
    TRY_VOID(mount_host_place(task.fs->places, broker_tree(), texts.next()));
  }
  for (std::uint32_t i = 0; i < boot.links; ++i) {
    const std::string_view path = texts.next();
    TRY_VOID(make_boot_link(task.fs->places, path, texts.next()));
  }
  return change_to_working_folder(task, working_folder);
}

[[noreturn]] void run_first_program(Task& task, const HostFacts& facts) {
  ThreadState& state = thread_state();
  state.task = &task;
  state.host_tid = static_cast<std::uint32_t>(task.host_tid);
  task.process->host_pid = task.host_tid;
  task.is_kickable.store(1);
  alignas(16) Frame frame{};
  state.frame = &frame;
  const shm::Boot& boot = shared_with_broker().boot;
  Texts texts;
  if (has_console_terminal()) take_console_terminal();
  SysResult<void> result = make_places(boot, task, texts);
  if (result) result = execute_first_that_is_there(facts, texts, boot.exec_paths);
  if (!result) {
    report_exec_failure(value_of(result.error()));
    host::exit_group(127);
  }
  asm volatile("jmp exit_restart");
  __builtin_unreachable();
}

}  // namespace

void start_first_process(const HostFacts& facts) {
  const shm::Boot& boot = shared_with_broker().boot;
  make_address_space();
  make_process_table(static_cast<std::uint32_t>(boot.tasks), boot.file_size);
  Task* const caretaker = make_object<Task>();
  caretaker->process = process_table().init;
  caretaker->host_tid = static_cast<std::int32_t>(thread_state().host_tid);
  thread_state().task = caretaker;
  note_facts(boot, facts);
  measure_extended_state();
  make_console();
  if (boot.is_terminal != 0 && !make_console_terminal(boot.uid, boot.gid)) stop_sandbox("no memory for the terminal");
  const auto places = make_tree(boot);
  const auto task = places ? make_first_task(boot) : SysResult<Task*>(std::unexpected(places.error()));
  if (!task || !open_streams(**task)) stop_sandbox("no memory for the first process");
  (*task)->fs->places = *places;
  const long result = host::raw(SYS_clone, kHostProcess, 0, &(*task)->host_tid, &(*task)->host_tid, 0);
  if (result == 0) run_first_program(**task, facts);
  if (result < 0) stop_sandbox("the host can't start the first process");
  take_care();
}

}  // namespace belljar::kernel
