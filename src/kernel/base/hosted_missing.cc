// Stand-ins of the hosted build for what task/ does not have yet.
#include "kernel/mm/address_space.h"
#include "kernel/task/process.h"
#include "kernel/task/question.h"
#include "kernel/task/signals.h"

namespace belljar::kernel {

__attribute__((weak)) void set_blocked(SignalSet blocked) {
  current().blocked.store(blocked & ~kNeverBlocked);
}
__attribute__((weak)) bool has_signal() {
  return false;
}
__attribute__((weak)) SysResult<void> check_file_size(std::uint64_t) {
  return {};
}
__attribute__((weak)) void trace_line(std::string_view) {}
__attribute__((weak)) void raise_signal(int) {}
__attribute__((weak)) void send_signal_locked(Process&, const siginfo_t&) {}
__attribute__((weak)) void send_signal_to_group_locked(ProcessGroup&, const siginfo_t&) {}
__attribute__((weak)) void send_signal(Process&, const siginfo_t&) {}
__attribute__((weak)) void send_signal_to_task(Task&, const siginfo_t&) {}
__attribute__((weak)) void send_signal_to_group(ProcessGroup&, const siginfo_t&) {}
__attribute__((weak)) void send_signal_to_task_locked(Task& task, const siginfo_t& info) {
  send_signal_to_task(task, info);
}
__attribute__((weak)) void announce_file_sizes() {}
__attribute__((weak)) SysResult<bool> ask_process(Pid, Answer, LongText&) {
  return false;
}
__attribute__((weak)) bool find_area(std::uint64_t, MemoryArea*) {
  return false;
}

}  // namespace belljar::kernel
