// signalfd(2). What is read are the signals of whoever reads; a process that waits for the file joins it to its own
// queue of signals the first time.
#pragma once

#include <cstdint>

#include "kernel/ipc/nameless.h"
#include "kernel/task/process.h"

namespace belljar::kernel {

class SignalFile final : public AnonymousFile {
 public:
  explicit SignalFile(SignalSet wanted) : AnonymousFile("[signalfd]"), wanted_(wanted) {}
  ~SignalFile() override;

  FileKind kind() const override { return FileKind::signalfd; }
  SysResult<std::uint64_t> read(Buffers& to, std::uint64_t* position) override;
  Events ready() override;
  WaitQueue* queue() override;

  void set_wanted(SignalSet wanted);

 private:
  // Passes on that a process has a signal.
  class Watch final : public Waiter {
   public:
    Watch(SignalFile& owner, Ref<Process> watched) : file(owner), process(std::move(watched)) {}
    bool wake(Events) override {
      file.queue_.wake_all();
      return false;
    }
    SignalFile& file;
    Ref<Process> process;
    Watch* next = nullptr;
  };

  siginfo_t take();

  std::atomic<SignalSet> wanted_;
  WaitQueue queue_;
  Lock lock_{LockRank::ready_list};  // epoll asks for the queue with its links lock held
  Watch* first_ = nullptr;
};

// Null where it is another file.
SignalFile* signal_file_of(File& file);

}  // namespace belljar::kernel
