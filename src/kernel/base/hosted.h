// The kernel inside a test process: an empty arena at its place, and one process with one task.
#pragma once

#include "kernel/task/process.h"

namespace belljar::kernel {

// One at a time in a process. Tests may make more tasks of threads with HostedThread.
class HostedKernel {
 public:
  HostedKernel();
  ~HostedKernel();
  HostedKernel(const HostedKernel&) = delete;
  HostedKernel& operator=(const HostedKernel&) = delete;

  Process& process() { return *process_; }
  Task& task() { return *task_; }

 private:
  Process* process_ = nullptr;
  Task* task_ = nullptr;
};

// Makes the calling thread of the test a further task of the kernel's process, for its lifetime.
class HostedThread {
 public:
  explicit HostedThread(HostedKernel& kernel);
  ~HostedThread();
  HostedThread(const HostedThread&) = delete;
  HostedThread& operator=(const HostedThread&) = delete;

 private:
  Task* task_;
  Task* before_;
};

}  // namespace belljar::kernel
