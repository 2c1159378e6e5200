#include "kernel/task/process_table.h"

#include <errno.h>

#include <algorithm>

#include "kernel/arena/roots.h"

namespace belljar::kernel {

ProcessTable& process_table() {
  return *arena_roots().processes;
}

Lock& tasks_lock() {
  return process_table().lock;
}

void make_process_table(std::uint32_t tasks_max, std::uint64_t file_size_max) {
  ProcessTable* const table = make_object<ProcessTable>();
  arena_roots().processes = table;
  table->tasks_max = tasks_max;
  table->file_size_max = file_size_max;
  table->init = make_ref<Process>().leak();
  table->init->pid = kInitPid;
}

void note_task_refusal() {
  ProcessTable& table = process_table();
  if (table.task_count >= table.tasks_max) table.task_refusals.fetch_add(1, std::memory_order_relaxed);
}

Task* find_task(Pid tid) {
  return tid > 0 && tid < kIdsMost ? process_table().ids[tid].task : nullptr;
}

Process* find_process(Pid pid) {
  if (pid == kInitPid) return process_table().init;
  Task* const task = find_task(pid);
  return task != nullptr && task->process->pid == pid ? task->process : nullptr;
}

ProcessGroup* find_group(Pid id) {
  return id > 0 && id < kIdsMost ? process_table().ids[id].group : nullptr;
}

std::uint32_t count_tasks() {
  return process_table().task_count;
}

Pid group_id_of(const Process& process) {
  return process.group == nullptr ? 0 : process.group->id;
}

Pid session_id_of(const Process& process) {
  return process.group == nullptr ? 0 : process.group->session->id;
}

bool is_orphaned(const ProcessGroup& group) {
  for (const Process* process = group.first_process; process != nullptr; process = process->next_in_group) {
    const Process* const parent = process->parent;
    if (process->state != ProcessState::zombie && parent != nullptr && parent->group != nullptr &&
        parent->group != &group && parent->group->session == group.session) {
      return false;
    }
  }
  return true;
}

Process* next_process(Pid after) {
  for (Pid pid = after + 1; pid < kIdsMost; ++pid) {
    if (Process* const process = find_process(pid)) return process;
  }
  return nullptr;
}

namespace {

bool is_free(const ProcessTable::Id& id) {
  return id.task == nullptr && id.group == nullptr && id.session == nullptr;
}

Pid take_pid(ProcessTable& table) {
  for (Pid tries = 0; tries < kIdsMost; ++tries) {
    table.last_pid = table.last_pid + 1 < kIdsMost ? table.last_pid + 1 : kFirstPid;
    if (is_free(table.ids[table.last_pid])) return table.last_pid;
  }
  return 0;
}

}  // namespace

SysResult<Task*> add_task(Process& process) {
  ProcessTable& table = process_table();
  if (table.task_count >= table.tasks_max) {
    note_task_refusal();
    return error(EAGAIN);
  }
  const Pid tid = take_pid(table);
  if (tid == 0) return error(EAGAIN);
  Task* const task = make_object<Task>();
  if (task == nullptr) return error(ENOMEM);
  task->tid = tid;
  task->process = &process;
  if (process.leader == nullptr) {
    process.leader = task;
    process.pid = tid;
  }
  task->next_in_process = process.first_task;
  if (process.first_task != nullptr) process.first_task->previous_in_process = task;
  process.first_task = task;
  ++process.task_count;
  ++table.task_count;
  table.tasks_peak = std::max(table.tasks_peak, table.task_count);
  ++table.forks;
  table.ids[tid].task = task;
  return task;
}

void forget_task(Task& task) {
  ProcessTable& table = process_table();
  table.ids[task.tid].task = nullptr;
  if (!task.is_dead) {
    Process& process = *task.process;
    (task.previous_in_process == nullptr ? process.first_task : task.previous_in_process->next_in_process) =
        task.next_in_process;
    if (task.next_in_process != nullptr) task.next_in_process->previous_in_process = task.previous_in_process;
    --process.task_count;
    --table.task_count;
  }
  delete_object(&task);
}

void link_child(Process& parent, Process& child) {
  child.parent = &parent;
  child.previous_sibling = nullptr;
  child.next_sibling = parent.first_child;
  if (parent.first_child != nullptr) parent.first_child->previous_sibling = &child;
  parent.first_child = &child;
}

void unlink_child(Process& child) {
  (child.previous_sibling == nullptr ? child.parent->first_child : child.previous_sibling->next_sibling) =
      child.next_sibling;
  if (child.next_sibling != nullptr) child.next_sibling->previous_sibling = child.previous_sibling;
  child.parent = nullptr;
}

void leave_group(Process& process) {
  ProcessGroup* const group = process.group;
  if (group == nullptr) return;
  (process.previous_in_group == nullptr ? group->first_process : process.previous_in_group->next_in_group) =
      process.next_in_group;
  if (process.next_in_group != nullptr) process.next_in_group->previous_in_group = process.previous_in_group;
  process.group = nullptr;
  process.next_in_group = process.previous_in_group = nullptr;
  if (group->first_process != nullptr) return;
  ProcessTable& table = process_table();
  table.ids[group->id].group = nullptr;
  Session* const session = group->session;
  delete_object(group);
  if (--session->group_count > 0) return;
  table.ids[session->id].session = nullptr;
  delete_object(session);
}

SysResult<void> enter_group(Process& process, Pid group_id, Session* session) {
  ProcessTable& table = process_table();
  ProcessGroup* group = table.ids[group_id].group;
  if (group != nullptr && group == process.group) return {};
  if (group == nullptr) {
    group = make_object<ProcessGroup>();
    if (group == nullptr) return error(ENOMEM);
    if (session == nullptr) {
      session = make_object<Session>();
      if (session == nullptr) {
        delete_object(group);
        return error(ENOMEM);
      }
      session->id = group_id;
      table.ids[group_id].session = session;
    }
    group->id = group_id;
    group->session = session;
    ++session->group_count;
    table.ids[group_id].group = group;
  }
  ++group->session->group_count;  // so that leaving the old group does not end the session
  leave_group(process);
  --group->session->group_count;
  process.group = group;
  process.next_in_group = group->first_process;
  if (group->first_process != nullptr) group->first_process->previous_in_group = &process;
  group->first_process = &process;
  return {};
}

}  // namespace belljar::kernel
