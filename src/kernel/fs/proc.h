// /proc: what it shows is made in the files proc_*.cc, one for each subject; the table of all of it is in proc.cc.
#pragma once

#include "kernel/fs/generated.h"
#include "kernel/fs/host_tree.h"
#include "kernel/task/process.h"

namespace belljar::kernel {

// `host`: where /proc/cpuinfo is read; null: it is made up. Once, at boot.
SysResult<Ref<Inode>> make_proc_file_system(HostTree* host);

// For the generators. ESRCH where the process or thread has gone. `tell` is called under the tasks lock: of a path
// without a thread its task is the leader.
template <typename Tell>
SysResult<void> tell_of_task(const Subject& subject, Tell tell) {
  const LockGuard guard(tasks_lock());
  Process* const process = find_process(subject.process);
  if (process == nullptr) return error(ESRCH);
  Task* const task = subject.thread == 0 ? process->leader : find_task(subject.thread);
  if (task == nullptr || task->process != process) return error(ESRCH);
  tell(*process, *task);
  return {};
}

// proc_task.cc: one process or thread.
SysResult<void> proc_stat(const Subject& subject, LongText& to);
SysResult<void> proc_status(const Subject& subject, LongText& to);
SysResult<void> proc_limits(const Subject& subject, LongText& to);
SysResult<void> proc_io(const Subject& subject, LongText& to);
SysResult<void> proc_comm(const Subject& subject, LongText& to);
SysResult<void> proc_set_comm(const Subject& subject, std::string_view text);
SysResult<void> proc_sched(const Subject& subject, LongText& to);
SysResult<void> proc_oom_score_adj(const Subject& subject, LongText& to);
SysResult<void> proc_set_oom_score_adj(const Subject& subject, std::string_view text);

// proc_memory.cc: what is in its memory.
SysResult<void> proc_cmdline(const Subject& subject, LongText& to);
SysResult<void> proc_environ(const Subject& subject, LongText& to);
SysResult<void> proc_auxv(const Subject& subject, LongText& to);
SysResult<void> proc_maps(const Subject& subject, LongText& to);
SysResult<void> proc_smaps(const Subject& subject, LongText& to);
SysResult<void> proc_smaps_rollup(const Subject& subject, LongText& to);
SysResult<void> proc_statm(const Subject& subject, LongText& to);

// proc_places.cc: its files and folders.
SysResult<void> proc_self(const Subject& subject, LongText& to);
SysResult<void> proc_thread_self(const Subject& subject, LongText& to);
SysResult<void> proc_exe(const Subject& subject, LongText& to);
SysResult<Ref<Dentry>> proc_exe_place(const Subject& subject);
SysResult<void> proc_cwd(const Subject& subject, LongText& to);
SysResult<Ref<Dentry>> proc_cwd_place(const Subject& subject);
SysResult<void> proc_root(const Subject& subject, LongText& to);
SysResult<Ref<Dentry>> proc_root_place(const Subject& subject);
SysResult<void> proc_fd(const Subject& subject, LongText& to);
SysResult<Ref<Dentry>> proc_fd_place(const Subject& subject);
SysResult<void> proc_fdinfo(const Subject& subject, LongText& to);
bool enter_fd(Subject& subject, std::uint32_t number);
std::int64_t next_fd(const Subject& subject, std::uint32_t at);
SysResult<void> proc_mounts(const Subject& subject, LongText& to);
SysResult<void> proc_mountinfo(const Subject& subject, LongText& to);

// proc_system.cc: the machine.
void set_proc_host(HostTree* host);
SysResult<void> proc_cpuinfo(const Subject& subject, LongText& to);
SysResult<void> proc_meminfo(const Subject& subject, LongText& to);
SysResult<void> proc_system_stat(const Subject& subject, LongText& to);
SysResult<void> proc_uptime(const Subject& subject, LongText& to);
SysResult<void> proc_loadavg(const Subject& subject, LongText& to);
SysResult<void> proc_version(const Subject& subject, LongText& to);
SysResult<void> proc_host_name(const Subject& subject, LongText& to);
SysResult<void> proc_threads_max(const Subject& subject, LongText& to);
SysResult<void> proc_pid_max(const Subject& subject, LongText& to);
SysResult<void> proc_uuid(const Subject& subject, LongText& to);
SysResult<void> proc_boot_id(const Subject& subject, LongText& to);

// proc_arena.cc: what the kernel itself has in use.
SysResult<void> proc_arena(const Subject& subject, LongText& to);

}  // namespace belljar::kernel
