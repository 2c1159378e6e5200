#include "kernel/ipc/pid_file.h"

#include <poll.h>

namespace belljar::kernel {
namespace {

class PidFile final : public AnonymousFile {
 public:
  explicit PidFile(Ref<Process> process) : AnonymousFile("[pidfd]"), process_(std::move(process)) {}

  FileKind kind() const override { return FileKind::pidfd; }
  Events ready() override {
    LockGuard guard(tasks_lock());
    return process_->state == ProcessState::zombie ? POLLIN | POLLRDNORM : 0;
  }
  std::int32_t process_id() const override { return process_->pid; }
  WaitQueue* queue() override { return &process_->exit_events; }

  Process& process() { return *process_; }

 private:
  Ref<Process> process_;
};

}  // namespace

Ref<File> make_pid_file(Process& process) {
  return make_ref<PidFile>(Ref<Process>::of(&process));
}

Process* process_of(File& file) {
  return file.kind() == FileKind::pidfd ? &static_cast<PidFile&>(file).process() : nullptr;
}

}  // namespace belljar::kernel
