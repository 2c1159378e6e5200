#include "kernel/base/hosted.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "kernel/arena/lock_owner.h"
#include "kernel/arena/roots.h"
#include "kernel/task/process_table.h"

namespace belljar::kernel {
namespace {

constexpr std::uint32_t kTasksMost = 100;

thread_local Task* current_task = nullptr;
thread_local LateWakes* late = nullptr;
thread_local std::array<int, 16> held_locks{};

[[noreturn]] void stop(const char* why) {
  std::fprintf(stderr, "hosted kernel: %s\n", why);
  std::abort();
}

void map_shared(std::uint64_t address, std::uint64_t size) {
  const int fd = ::memfd_create("hosted", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(size)) != 0) stop("can't make an arena");
  void* const mapped = ::mmap(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0);
  ::close(fd);
  if (mapped == MAP_FAILED) stop("can't map the arena at its place");
}

}  // namespace

Task& current() {
  return *current_task;
}

LateWakes*& late_wakes() {
  return late;
}

std::uint32_t lock_owner_id() {
  thread_local const auto own = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  return own;
}

void check_lock_owner_lives(std::uint32_t owner) {
  if (::syscall(SYS_tgkill, ::getpid(), owner, 0) != 0) stop("a thread ended with a lock held");
}

void note_lock_taken(LockRank rank) {
  const auto index = static_cast<std::size_t>(rank);
  const std::size_t first = rank == LockRank::queue ? index + 1 : index;
  for (std::size_t higher = first; higher < held_locks.size(); ++higher) {
    if (held_locks[higher] != 0) stop("a lock was taken out of order");
  }
  ++held_locks[index];
}

void note_lock_released(LockRank rank) {
  --held_locks[static_cast<std::size_t>(rank)];
}

HostedKernel::HostedKernel() {
  map_shared(kArenaBase, kArenaSize);
  map_shared(kContentBase, kContentSize);
  make_arena_roots();
  make_process_table(kTasksMost, 0);
  process_ = make_ref<Process>().leak();
  process_->pid = 1;
  process_->actions = make_ref<SignalActions>();
  task_ = make_object<Task>();
  task_->tid = 1;
  task_->process = process_;
  task_->files = make_ref<FdTable>();
  task_->fs = make_ref<FsPlaces>();
  process_->first_task = process_->leader = task_;
  process_->task_count = 1;
  process_table().init = process_;
  process_table().ids[task_->tid].task = task_;
  process_table().task_count = 1;
  for (rlimit& limit : process_->limits) limit = {RLIM_INFINITY, RLIM_INFINITY};
  current_task = task_;
}

HostedKernel::~HostedKernel() {
  current_task = nullptr;
  ::munmap(reinterpret_cast<void*>(kArenaBase), kArenaSize);
  ::munmap(reinterpret_cast<void*>(kContentBase), kContentSize);
}

HostedThread::HostedThread(HostedKernel& kernel) : task_(make_object<Task>()), before_(current_task) {
  task_->process = &kernel.process();
  task_->files = kernel.task().files;
  task_->fs = kernel.task().fs;
  current_task = task_;
}

HostedThread::~HostedThread() {
  current_task = before_;
  delete_object(task_);
}

}  // namespace belljar::kernel
