// The sandbox with a user-space kernel: its shared memory, its first process with walls of its own, its broker.
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "host/mount.h"
#include "host/privilege.h"
#include "host/process.h"
#include "kernel/broker/rings_shm.h"
#include "seccomp/filter.h"
#include "tiers/container/init_steps_child.h"

namespace belljar::container {
namespace {

namespace shm = kernel::shm;

constexpr SetupStep kStep = SetupStep::kernel;
constexpr int kImageFd = 7;
constexpr int kWritableCacheFd = 6;  // the broker's alone
constexpr int kAboveAll = 16;
constexpr unsigned kSeals = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

// Away from the low numbers, which the program's streams get.
int move_up(const InitPlan& plan, int fd) {
  const int moved = check(plan, kStep, errno_result(::fcntl(fd, F_DUPFD_CLOEXEC, kAboveAll)));
  ::close(fd);
  return moved;
}

// Sparse, and never of another size: guests can't make a mapping fault by cutting it.
int make_memory(const InitPlan& plan, const char* name, std::uint64_t size) {
  const int fd = move_up(plan, check(plan, kStep, errno_result(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING))));
  check(plan, kStep, errno_result(::ftruncate(fd, static_cast<off_t>(size))));
  check(plan, kStep, errno_result(::fcntl(fd, F_ADD_SEALS, kSeals)));
  return fd;
}

// Appends texts to shm::Boot.
class TextArea {
 public:
  TextArea(const InitPlan& plan, shm::Boot* boot) : plan_(plan), boot_(boot) {}
  void add(const char* text) {
    const std::size_t size = std::strlen(text) + 1;
    if (size > sizeof boot_->texts - used_) give_up(plan_, kStep, -E2BIG);
    std::memcpy(boot_->texts + used_, text, size);
    used_ += size;
  }

 private:
  const InitPlan& plan_;
  shm::Boot* boot_;
  std::size_t used_ = 0;
};

// Below one of the folders that the kernel has of its own, and not as init made them.
bool is_in_own_place(const InitPlan& plan, const char* path) {
  const auto is_below = [&](const char* folder) {
    const std::size_t size = std::strlen(folder);
    return std::strncmp(path, folder, size) == 0 && path[size] == '/';
  };
  return is_below("/tmp") || std::ranges::any_of(plan.own_folders, is_below);
}

void describe(const InitPlan& plan, shm::Shared* to) {
  shm::Boot* const boot = &to->boot;
  if (plan.terminal) {
    boot->is_terminal = 1;
    to->window.store(std::uint32_t{plan.terminal->rows} << 16 | plan.terminal->columns);
  }
  boot->uid = plan.ids.uid;
  boot->gid = plan.ids.gid;
  boot->tmp_bytes = std::strtoull(plan.tmp_size, nullptr, 10);
  boot->tmp_inodes = std::strtoull(plan.tmp_inodes, nullptr, 10);
  boot->memory_bytes = plan.kernel_memory_bytes;
  boot->tasks = plan.kernel_tasks;
  boot->open_files = plan.open_files;
  boot->file_size = plan.file_size;
  boot->cpus = plan.kernel_cpus;
  boot->trace = plan.kernel_traces_calls ? 1 : 0;
  const std::span<const sock_filter> filter = kernel_profile().program;
  if (filter.size() > shm::Boot::kFilterMost) give_up(plan, kStep, -E2BIG);
  std::ranges::copy(filter, boot->filter);
  boot->filter_rows = static_cast<std::uint32_t>(filter.size());
  TextArea texts(plan, boot);
  texts.add(kHome);
  texts.add(plan.working_folder);
  for (const char* folder : plan.own_folders) texts.add(folder);
  boot->own_folders = static_cast<std::uint32_t>(plan.own_folders.size());
  for (const InitMount& mount : plan.mounts) {
    if (!mount.is_caller_mount || !is_in_own_place(plan, mount.target)) continue;
    texts.add(mount.target);
    ++boot->mounts;
  }
  for (const InitLink& link : plan.root_links) {
    if (!is_in_own_place(plan, link.name)) continue;
    texts.add(link.name);
    texts.add(link.target);
    ++boot->links;
  }
  for (const char* path : plan.exec_paths) texts.add(path);
  boot->exec_paths = static_cast<std::uint32_t>(plan.exec_paths.size());
}

// An empty tree: what a guest process could reach by a path if its filter failed.
void enter_empty_root(const InitPlan& plan) {
  const host::FilesystemOption options[] = {{"mode", "0555"}, {"size", "4k"}, {"nr_inodes", "2"}};
  constexpr std::uint64_t kLocked = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  const int root = check(plan, kStep, host::new_filesystem("tmpfs", options, 3, kLocked));
  check(plan, kStep, host::attach_mount(root, AT_FDCWD, "/tmp"));
  check(plan, kStep, errno_result(::fchdir(root)));
  check(plan, kStep, host::pivot_to_working_folder());
  check(plan, kStep, errno_result(::chdir("/")));
}

struct Descriptor {
  int from;  // negative: its place stays empty
  int to;
};

// Gives descriptors, which lie above, the numbers that they are to have. The last one, which is to be executed, closes
// then.
bool take_places(std::span<const Descriptor> descriptors) {
  for (const Descriptor& each : descriptors) {
    const int flags = &each == &descriptors.back() ? O_CLOEXEC : 0;
    if (each.from >= 0 ? ::dup3(each.from, each.to, flags) < 0 : ::close(each.to) != 0 && errno != EBADF) return false;
  }
  return true;
}

// In the first process of the new pid namespace.
[[noreturn]] void become_kernel(const InitPlan& plan, const KernelParts& parts, int readable_content, int image) {
  enter_empty_root(plan);
  confine_kernel(plan);
  const Descriptor descriptors[] = {{parts.arena, kernel::kArenaFd},
                                    {readable_content, kernel::kContentFd},
                                    {parts.readable_cache, kernel::kCacheFd},
                                    {image, kImageFd}};
  // Nothing else stays open.
  if (!take_places(descriptors)) ::_exit(1);
  ::syscall(SYS_close_range, 0, kernel::kArenaFd - 1, 0);
  ::syscall(SYS_close_range, kImageFd + 1, ~0U, 0);
  struct sigaction default_action{};
  default_action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &default_action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::syscall(SYS_execveat, kImageFd, "", plan.arguments, plan.environment, AT_EMPTY_PATH);
  ::_exit(1);
}

// Where the image is mounted, and nothing else: what caches may hold for other sandboxes too. `list` has room for one
// of each mount, and is zeros.
void list_image_folders(const InitPlan& plan, char** list) {
  const auto is_of_caller = [](const InitMount& mount) {
    return mount.is_caller_mount || mount.is_workspace || mount.must_be_copied;
  };
  for (const InitMount& mount : plan.mounts) {
    const bool is_covered = std::ranges::any_of(plan.mounts, [&](const InitMount& other) {
      return is_of_caller(other) && std::strcmp(other.target, mount.target) == 0;
    });
    if (!is_of_caller(mount) && !is_covered) *list++ = const_cast<char*>(mount.target);
  }
}

}  // namespace

KernelParts start_kernel(const InitPlan& plan, const Received& received) {
  KernelParts parts;
  parts.arena = make_memory(plan, "arena", kernel::kArenaSize);
  // In it lies what the program will have left.
  if (plan.space_link >= 0) hand_over_space(plan, parts.arena, WorkspaceForm::none);
  parts.content = make_memory(plan, "content", kernel::kContentSize);
  const std::span<const int> passed = received.kernel(plan);
  const int image = move_up(plan, passed[0]);
  parts.broker = move_up(plan, passed[1]);
  if (passed.size() > 2) {
    parts.readable_cache = move_up(plan, passed[2]);
    parts.writable_cache = move_up(plan, passed[3]);
  }
  void* const shared = ::mmap(nullptr, kernel::kRingsSize, PROT_READ | PROT_WRITE, MAP_SHARED, parts.arena, 0);
  if (shared == MAP_FAILED) give_up(plan, kStep, -errno);
  parts.shared = shared;
  describe(plan, static_cast<shm::Shared*>(shared));
  char path[] = "/proc/self/fd/0000000000";
  char* digit = path + sizeof path - 1;
  for (int number = parts.content, i = 0; i < 10; ++i, number /= 10) *--digit = static_cast<char>('0' + number % 10);
  while (*digit == '0' && digit[1] != '\0') std::memmove(digit, digit + 1, std::strlen(digit));
  const int readable = move_up(plan, check(plan, kStep, errno_result(::open(path, O_RDONLY | O_CLOEXEC))));
  const auto clone = host::clone_process(CLONE_NEWPID | CLONE_NEWNS, -1);
  if (!clone) give_up(plan, kStep, -clone.error().value);
  if (clone->side == host::Side::child) become_kernel(plan, parts, readable, image);
  auto& process = const_cast<host::Process&>(clone->process);
  parts.first_process = process.pid();
  process.release();  // it ends with this process's namespace
  ::close(readable);
  ::close(image);
  return parts;
}

int become_broker(const InitPlan& plan, const KernelParts& parts) {
  const Descriptor descriptors[] = {{parts.arena, kernel::kArenaFd},
                                    {parts.content, kernel::kContentFd},
                                    {parts.readable_cache, kernel::kCacheFd},
                                    {parts.writable_cache, kWritableCacheFd},
                                    {parts.broker, kImageFd}};
  if (!take_places(descriptors) || ::syscall(SYS_close_range, kImageFd + 1, ~0U, 0) != 0) return errno;
  char name[] = "belljar-broker";
  char* arguments[kPassedFdsMax + 2] = {name};
  list_image_folders(plan, arguments + 1);
  char* const environment[] = {nullptr};
  ::syscall(SYS_execveat, kImageFd, "", arguments, environment, AT_EMPTY_PATH);
  return errno;
}

void note_kernel_gone(const KernelParts& parts) {
  auto& shared = *static_cast<shm::Shared*>(parts.shared);
  std::uint32_t running = shm::End::kRunning;  // else it is known how all ended
  if (!shared.end.kind.compare_exchange_strong(running, shm::End::kStopped)) return;
  shared.doorbell.fetch_add(1);
  ::syscall(SYS_futex, &shared.doorbell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void read_kernel_end(const InitPlan& plan, const KernelParts& parts, Frame* frame) {
  const auto& end = static_cast<const shm::Shared*>(parts.shared)->end;
  // Of hostile memory, so within what it could be.
  frame->written_bytes = std::min<std::uint64_t>(end.tmp_bytes, std::strtoull(plan.tmp_size, nullptr, 10));
  frame->written_inodes = std::min<std::uint64_t>(end.tmp_inodes, std::strtoull(plan.tmp_inodes, nullptr, 10));
  frame->bytes_full = end.tmp_was_full != 0 ? 1 : 0;
  frame->inodes_full = end.tmp_inodes_were_full != 0 ? 1 : 0;
  frame->tasks_peak = static_cast<std::uint32_t>(std::min<std::uint64_t>(end.tasks_peak, plan.kernel_tasks));
  frame->task_refusals = end.task_refusals;
  frame->file_refused = end.file_refusals != 0 && plan.file_size > 0 ? 1 : 0;
  const std::uint32_t kind = end.kind.load();
  const int code = end.code;
  if (kind == shm::End::kExecFailed) {
    frame->kind = FrameKind::exec_failed;
    frame->errno_value = code > 0 && code < 4096 ? code : ENOEXEC;
  } else if (kind != shm::End::kExited && kind != shm::End::kSignalled) {
    frame->kind = FrameKind::kernel_stopped;
  }
}

}  // namespace belljar::container
