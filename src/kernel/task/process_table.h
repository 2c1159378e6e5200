// All pids of the sandbox, and how processes and threads come and go.
#pragma once

#include <atomic>

#include "kernel/task/process.h"

namespace belljar::kernel {

inline constexpr Pid kIdsMost = 32768;
inline constexpr Pid kInitPid = 1;
inline constexpr Pid kFirstPid = 2;

class ProcessTable {
 public:
  struct Id {
    Task* task = nullptr;
    ProcessGroup* group = nullptr;
    Session* session = nullptr;
  };

  Lock lock{LockRank::tasks};
  Process* init =
      nullptr;  // no thread of its own: what loses its parent becomes its child, and is forgotten at its end
  std::uint32_t task_count = 0;
  std::uint32_t tasks_max = 0;  // clone(2) beyond is EAGAIN
  std::uint32_t tasks_peak = 0;
  std::uint64_t file_size_max = 0;  // 0: none
  // How often these two were in the way; a program that lowered its own (setrlimit(2)) is not counted.
  std::atomic<std::uint32_t> task_refusals = 0;
  std::atomic<std::uint32_t> file_refusals = 0;
  std::uint64_t forks = 0;
  Pid last_pid = kInitPid;
  Id ids[kIdsMost];
};

ProcessTable& process_table();
void make_process_table(std::uint32_t tasks_max, std::uint64_t file_size_max);
// A new task was refused by a limit on their number.
void note_task_refusal();

// All with the tasks lock held.

// A task with a new tid in `process`, which gets it as its leader where it has none (then pid = tid). EAGAIN at the
// limit.
SysResult<Task*> add_task(Process& process);
// Undoes add_task() and, for a leader, forgets the process too.
void forget_task(Task& task);
void link_child(Process& parent, Process& child);
void unlink_child(Process& child);
// Moves a process to a group, which is made where there is none of this id. ENOMEM.
SysResult<void> enter_group(Process& process, Pid group_id, Session* session);
void leave_group(Process& process);

}  // namespace belljar::kernel
