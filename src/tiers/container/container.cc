#include "tiers/container/container.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <set>
#include <span>

#include "cgroup/cgroup.h"
#include "egress/launch.h"
#include "host/descriptors.h"
#include "host/mount.h"
#include "host/open_path.h"
#include "host/privilege.h"
#include "host/process.h"
#include "image/host_image.h"
#include "image/image_store.h"
#include "spec/errors.h"
#include "tiers/container/cpu_view.h"
#include "tiers/container/frames.h"
#include "tiers/container/id_map.h"
#include "tiers/container/init_plan.h"
#include "tiers/container/kernel_places.h"
#include "tiers/container/lease.h"
#include "tiers/container/make_plan.h"
#include "tiers/container/own_stat.h"
#include "tiers/container/refusals.h"
#include "tiers/container/walls.h"
#include "tiers/kernel/content_cache.h"
#include "tiers/refused_limits.h"
#include "tiers/watcher.h"

namespace belljar {
namespace container {
namespace {

// The others init makes itself (init_child.cc), while this process plans.
constexpr std::uint64_t kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID;

// The kernel's caretaker and the helper for streams; the broker's four threads, and one more for a terminal; the
// cache's keeper.
std::uint64_t kernel_tasks(const SandboxSpec& spec) {
  return spec.terminal ? 8 : 7;
}

std::string new_cgroup_name(const OwnStat& own) {
  static std::atomic<unsigned> count = 0;
  return fmt::format("{}-{}-{}", ::getpid(), own.start_time, count.fetch_add(1));
}

Error describe_workspace_failure(int error, const StartPlan& plan) {
  const auto mount = std::ranges::find_if(plan.mounts, &PlannedMount::is_workspace);
  std::string why = errno_text(error);
  if (error == ENOSPC) why = "the writable space is too small for it (--tmp-size, --tmp-inodes)";
  if (error == EACCES) why = "a file or folder in it can't be read in the sandbox";
  return {ErrorCode::bad_workspace,
          fmt::format("--workspace {}: this host can't lay an overlay over it, and it can't be copied: {}",
                      mount == plan.mounts.end() ? "" : mount->source, why)};
}

// The caller's mount in which the place of mount `index` would lie; null where that is in the image.
const PlannedMount* mount_around(const StartPlan& plan, std::size_t index) {
  const PlannedMount* around = nullptr;
  for (const PlannedMount& mount : plan.mounts) {
    if (!mount.is_caller_mount || !plan.mounts[index].target.starts_with(mount.target + "/")) continue;
    if (around == nullptr || mount.target.size() > around->target.size()) around = &mount;
  }
  return around;
}

Error describe_missing_place(const StartPlan& plan, std::size_t index) {
  const PlannedMount& mount = plan.mounts[index];
  const PlannedMount* const around = mount_around(plan, index);
  if (around == nullptr) {
    return {ErrorCode::bad_mount,
            fmt::format("--mount {}:{}: there is no such place in the read-only image; choose another, such as /data",
                        mount.source, mount.target)};
  }
  return {ErrorCode::bad_mount,
          fmt::format(
              "--mount {}:{}: this place lies in the mount at {}, where nothing is made for it; make {}{} first",
              mount.source, mount.target, around->target, around->source, mount.target.substr(around->target.size()))};
}

Error describe_setup_failure(const Frame& frame, const StartPlan& plan) {
  std::string what = setup_step_text(frame.step);
  const auto index = static_cast<std::size_t>(frame.detail);
  if (frame.step == SetupStep::mount && index < plan.mounts.size() && plan.mounts[index].is_workspace) {
    return {ErrorCode::bad_workspace,
            fmt::format("--workspace {}: it can't be mounted at {}: {}", plan.mounts[index].source, kWorkspaceTarget,
                        frame.errno_value == ELOOP    ? "that is a symbolic link in the image"
                        : frame.errno_value == ENOENT ? "there is no such folder in the image"
                                                      : errno_text(frame.errno_value))};
  }
  switch (frame.step) {
    case SetupStep::mount:
    case SetupStep::open_source:
    case SetupStep::source_changed:
      if (index >= plan.mounts.size()) break;
      if (frame.step == SetupStep::mount &&
          (frame.errno_value == EOVERFLOW || frame.errno_value == ENOENT || frame.errno_value == EROFS)) {
        return describe_missing_place(plan, index);
      }
      if (frame.step == SetupStep::mount && frame.errno_value == ELOOP) {
        return {
            ErrorCode::bad_mount,
            fmt::format("--mount {}:{}: a part of the place inside is a symbolic link, which a program may have made; "
                        "choose a place without one",
                        plan.mounts[index].source, plan.mounts[index].target)};
      }
      what += fmt::format(" ({} at {})", plan.mounts[index].source, plan.mounts[index].target);
      break;
    case SetupStep::hide_path:
      if (index >= plan.hidden_paths.size()) break;
      if (frame.errno_value == ENOENT || frame.errno_value == ENOTDIR) {
        return {ErrorCode::bad_value,
                fmt::format("--hide {}: there is no such file or folder in the sandbox, so nothing "
                            "would be hidden; check the spelling",
                            plan.hidden_paths[index])};
      }
      if (frame.errno_value == ELOOP) {
        return {ErrorCode::bad_value,
                fmt::format("--hide {}: this is a symbolic link; hide what it leads to", plan.hidden_paths[index])};
      }
      what += fmt::format(" ({})", plan.hidden_paths[index]);
      break;
    case SetupStep::workspace:
      return describe_workspace_failure(frame.errno_value, plan);
    case SetupStep::working_folder:
      return {ErrorCode::bad_value,
              fmt::format("--workdir {}: {} inside; give a folder that exists there, or mount one", plan.working_folder,
                          errno_text(frame.errno_value))};
    case SetupStep::new_proc:
      if (frame.errno_value == EPERM) {
        return {
            ErrorCode::host_unsupported,
            "can't mount a new /proc here: parts of this one are masked, as in a Docker container; give the container "
            "an unmasked /proc (--security-opt systempaths=unconfined)"};
      }
      break;
    case SetupStep::sample:
      return {
          ErrorCode::internal,
          fmt::format("what the sandbox's processes hold could not be read any more ({}), so that its limits could not "
                      "be kept; it was ended",
                      errno_text(frame.errno_value))};
    default:
      break;
  }
  return {ErrorCode::start_failed,
          fmt::format("the sandbox could not be set up: {}: {}", what, errno_text(frame.errno_value))};
}

Error describe_exec_failure(const Frame& frame, const StartPlan& plan) {
  const std::string& program = plan.arguments.front();
  switch (frame.errno_value) {
    case ENOENT:
    case ENOTDIR:
      return {ErrorCode::not_found, fmt::format("{}: command not found in the sandbox; it sees {} and what is mounted",
                                                program, plan.system)};
    case ELIBACC:
      return {ErrorCode::not_executable,
              fmt::format("{}: can't be executed: the interpreter or loader that it names is not in the sandbox, which "
                          "sees {} and what is mounted",
                          program, plan.system)};
    case EACCES:
      return {ErrorCode::not_executable, fmt::format("{}: not executable in the sandbox (permission denied)", program)};
    case ENOEXEC:
      return {ErrorCode::not_executable,
              fmt::format("{}: not executable: neither a program for this processor nor a script with #!", program)};
    default:
      return {ErrorCode::not_executable,
              fmt::format("{}: can't be executed: {}", program, errno_text(frame.errno_value))};
  }
}

// What the processes of a sandbox that is to be killed have moved, with what they have waited for. Of a fork bomb some
// are enough: it must end first of all. Of init only what others moved that it has waited for.
std::optional<host::IoCounters> add_up_io(std::vector<pid_t> pids, pid_t init) {
  constexpr std::size_t kProcessesMax = 256;
  if (pids.size() > kProcessesMax) pids.resize(kProcessesMax);
  const auto read = [](const std::string& path) {
    constexpr std::size_t kTextBytesMax = 4096;
    const auto text = read_file_at(AT_FDCWD, path.c_str(), kTextBytesMax);
    return text ? host::parse_io(*text) : std::nullopt;
  };
  std::optional<host::IoCounters> total;
  for (const pid_t pid : pids) {
    auto counters = read(fmt::format("/proc/{}/io", pid));
    if (!counters) continue;
    if (pid == init) {
      const auto own = read(fmt::format("/proc/{0}/task/{0}/io", pid));
      if (own) *counters = host::io_without(*counters, *own);
    }
    if (!total) total.emplace();
    total->read_bytes += counters->read_bytes;
    total->written_bytes += counters->written_bytes;
  }
  return total;
}

using Handles = std::array<Fd, kHandlesMax>;

// One packet of init's, and the descriptors that came with it. recv(2)'s result; does not wait.
ssize_t receive_packet(int socket, std::span<std::byte> packet, Handles* attached) {
  iovec data{packet.data(), packet.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kHandlesMax)] = {};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = CMSG_LEN(sizeof(int) * kHandlesMax);
  const ssize_t count = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  const cmsghdr* const part = count > 0 ? CMSG_FIRSTHDR(&header) : nullptr;
  if (part == nullptr || part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) return count;
  const std::size_t handles = std::min((part->cmsg_len - CMSG_LEN(0)) / sizeof(int), kHandlesMax);
  for (std::size_t i = 0; i < handles; ++i) {
    int received = -1;
    std::memcpy(&received, CMSG_DATA(part) + i * sizeof received, sizeof received);
    (*attached)[i] = Fd(received);
  }
  return count;
}

struct SpaceUse {
  std::uint64_t bytes;
  std::uint64_t inodes;
  bool bytes_full;
  bool inodes_full;
};

class ContainerSandbox final : public RunningSandbox {
 public:
  ~ContainerSandbox() override {
    // Order: the process first (it and all its descendants end), then the groups it was in.
    init_ = host::Process();
    cgroups_.reset();
  }

  HostStreams& streams() override { return streams_; }
  int ended_fd() const override { return init_.pidfd(); }
  int report_fd() const override { return control_.get(); }
  ReportIs read_report() override;
  int broken_fd() const override { return egress_ ? egress_->ended_fd() : -1; }
  int refusal_fd() const override { return refusals_.fd(); }
  void answer_refusal() override { refusals_.answer(); }
  void kill() override;
  std::uint64_t started_us() const override;
  Glance look() override;
  const Isolation& isolation() const override { return isolation_; }
  TierExit finish() override;
  Result<std::vector<WritablePlace>> take_writable_places() override;
  void abandon() override;

 private:
  friend class Starter;

  CleanupNeeds cleanup_needs() const;
  void read_frames();
  void see_space(const SpaceUse& use);
  void look_at_space();
  void read_process_usage();
  void deny_memory();
  void deny_tasks(std::uint64_t count);
  void deny_file_size();
  void read_group_usage();
  void read_egress_report();
  void read_kernel_stop();
  void read_kernel_tasks();

  SandboxSpec spec_;
  StartPlan plan_;
  Isolation isolation_;
  HostStreams streams_;
  Fd control_;
  Refusals refusals_;
  Fd space_;  // O_PATH
  Fd space_link_;
  std::vector<Fd> image_locks_;
  std::optional<LeaseFile> cpu_pins_;
  std::unique_ptr<UidRange> uids_;  // as root
  std::unique_ptr<CgroupDir> cgroups_;
  std::unique_ptr<InitPlanMemory> init_plan_;
  std::unique_ptr<egress::EgressProcess> egress_;  // with SandboxSpec::allow
  std::unique_ptr<Watcher> watcher_;
  host::Process init_;
  std::optional<host::IoCounters> io_;
  std::uint64_t called_us_ = monotonic_us();
  TierExit exit_;
  bool is_reported_ = false;
  bool has_left_groups_ = false;  // nothing is in the groups any more, though init still ends
  bool is_usage_read_ = false;
  bool has_kernel_stopped_ = false;
  std::uint32_t kernel_tasks_peak_ = 0;  // as a user-space kernel tells, which is told at a program's end only
  std::uint32_t kernel_task_refusals_ = 0;
};

// A process of its own was killed: for memory, or by what damaged it.
void ContainerSandbox::read_kernel_stop() {
  if (exit_.hit_memory_limit) {
    exit_.signal = SIGKILL;
  } else {
    exit_.was_tampered_with = true;
  }
}

// The host's figures count the user-space kernel's own tasks too, and it refuses before the host would.
void ContainerSandbox::read_kernel_tasks() {
  if (kernel_tasks_peak_ > 0) exit_.usage.processes_peak = kernel_tasks_peak_;
  if (kernel_task_refusals_ == 0 || exit_.hit_tasks_limit) return;
  exit_.hit_tasks_limit = true;
  deny_tasks(kernel_task_refusals_);
}

CleanupNeeds ContainerSandbox::cleanup_needs() const {
  CleanupNeeds needs;
  needs.process_fd = init_.pidfd();
  if (uids_) needs.keep_open.push_back(uids_->lease.fd());
  if (cpu_pins_) needs.keep_open.push_back(cpu_pins_->fd());
  for (const Fd& lock : image_locks_) needs.keep_open.push_back(lock.get());
  if (cgroups_) needs.folders = cgroups_->folders();
  needs.timeout_ms = spec_.limits.timeout.value;
  return needs;
}

void ContainerSandbox::abandon() {
  watcher_->leave_to_it();
  init_.release();
  (void)cgroups_.release();
}

void ContainerSandbox::read_frames() {
  while (true) {
    std::byte packet[sizeof(Frame) + 1];
    Handles attached;
    const ssize_t count = receive_packet(control_.get(), packet, &attached);
    // An init that gave up before it read everything sent to it says so by this error first; its report comes after.
    if (count < 0 && (errno == ECONNRESET || errno == EINTR)) continue;
    if (count <= 0) return;
    const std::optional<Frame> frame = read_frame({packet, static_cast<std::size_t>(count)});
    if (frame && frame->kind == FrameKind::handles) {
      space_ = std::move(attached[0]);
      refusals_.listen(std::move(attached[1]));
      continue;
    }
    is_reported_ = true;
    if (!frame) {
      exit_.error = Error{ErrorCode::internal, "the sandbox's init sent a malformed report"};
      return;
    }
    switch (frame->kind) {
      case FrameKind::setup_failed:
        exit_.error = describe_setup_failure(*frame, plan_);
        break;
      case FrameKind::exec_failed:
        exit_.error = describe_exec_failure(*frame, plan_);
        break;
      case FrameKind::memory_exceeded:
        exit_.signal = SIGKILL;
        exit_.hit_memory_limit = true;
        exit_.usage.oom_kills = 1;
        deny_memory();
        break;
      case FrameKind::kernel_stopped:
        has_kernel_stopped_ = true;
        break;
      case FrameKind::terminal:
      case FrameKind::handles:
        break;  // taken by the start, and above
      case FrameKind::exited:
        if (frame->exit_code >= 0) exit_.exit_code = frame->exit_code;
        if (frame->signal >= 0) exit_.signal = frame->signal;
        exit_.hit_file_limit = frame->file_refused == 1 || frame->signal == SIGXFSZ;
        exit_.has_file_at_limit = frame->file_full == 1;
        kernel_tasks_peak_ = frame->tasks_peak;
        kernel_task_refusals_ = frame->task_refusals;
        see_space({frame->written_bytes, frame->written_inodes, frame->bytes_full == 1, frame->inodes_full == 1});
        if (frame->io_is_known == 1) io_ = host::IoCounters{frame->io_read_bytes, frame->io_written_bytes};
        has_left_groups_ = frame->left_groups == 1;
        break;
    }
  }
}

void ContainerSandbox::deny_tasks(std::uint64_t count) {
  exit_.denials.push_back({"tasks", "a new process or thread",
                           fmt::format("at most {} tasks", spec_.limits.tasks.value), "--tasks", count});
}

// Of a file that is as large as one may be nobody knows whether it was to grow.
void ContainerSandbox::deny_file_size() {
  exit_.hit_file_limit &= plan_.file_size > 0;
  exit_.has_file_at_limit &= plan_.file_size > 0 && !exit_.hit_file_limit;
  if (!exit_.hit_file_limit && !exit_.has_file_at_limit) return;
  const char* const what = exit_.hit_file_limit ? "a larger file" : "a larger file, it seems: one reached the limit";
  const std::string most = format_limit(LimitUnit::bytes, spec_.limits.file_size.value);
  exit_.denials.push_back({"file_size", what, fmt::format("at most {} in one file", most), "--file-size", 1});
}

// Without control groups.
void ContainerSandbox::read_process_usage() {
  const SeenByInit& seen = init_plan_->plan().seen;
  Usage& usage = exit_.usage;
  usage.memory_peak_bytes = seen.memory_peak_bytes;
  usage.memory_peak_is_sampled = true;
  usage.processes_peak = seen.tasks_peak;
  usage.cpu_user_ms = seen.user_ms;
  usage.cpu_system_ms = seen.system_ms;
  // Nobody tells that a fork was refused (RLIMIT_NPROC), but one that fails with as many as it may have was.
  if (plan_.sampled.tasks > 0 && !plan_.user_kernel && seen.tasks_peak >= spec_.limits.tasks.value &&
      exit_.exit_code != 0) {
    exit_.hit_tasks_limit = true;
    deny_tasks(1);
  }
  // Of processes that nobody waited for only the sampler knows, and it does not tell user from system.
  const std::uint64_t waited_for = usage.cpu_user_ms + usage.cpu_system_ms;
  usage.cpu_user_ms += std::max<std::uint64_t>(seen.cpu_ms, waited_for) - waited_for;
}

void ContainerSandbox::kill() {
  if (cgroups_) io_ = add_up_io(cgroups_->processes(), init_.pid());
  init_.kill();
  if (cgroups_) lift_cpu_limit(cgroups_->folders());
}

// Full at one look is enough: programs remove what they could not finish.
void ContainerSandbox::see_space(const SpaceUse& use) {
  exit_.usage.disk_written_bytes = use.bytes;
  exit_.usage.disk_written_inodes = use.inodes;
  exit_.usage.disk_peak_bytes = std::max(exit_.usage.disk_peak_bytes, use.bytes);
  exit_.usage.disk_peak_inodes = std::max(exit_.usage.disk_peak_inodes, use.inodes);
  exit_.hit_disk_limit |= use.bytes_full;
  exit_.hit_inode_limit |= use.inodes_full;
}

// What programs on a user-space kernel write lies in its memory, and is told at its end.
void ContainerSandbox::look_at_space() {
  if (plan_.user_kernel) return;
  struct statfs space{};
  if (!space_.is_open() || ::fstatfs(space_.get(), &space) != 0 || space.f_type != TMPFS_MAGIC) return;
  see_space({(space.f_blocks - space.f_bfree) * static_cast<std::uint64_t>(space.f_bsize),
             space.f_files - space.f_ffree, space.f_bfree == 0, space.f_ffree == 0});
}

RunningSandbox::Glance ContainerSandbox::look() {
  Glance glance;
  look_at_space();
  glance.memory_bytes = exit_.usage.disk_written_bytes;  // as a user nothing else shows from outside
  if (cgroups_ && plan_.sampled.memory_bytes == 0) glance.memory_bytes = cgroups_->observe();
  glance.cpu_ms = plan_.sampled.millicpus > 0 ? init_plan_->plan().seen.cpu_ms.load()
                  : cgroups_                  ? cgroups_->cpu_ms()
                                              : 0;
  return glance;
}

// Init is treated as hostile: what it says lies between the call and now, or is not believed.
std::uint64_t ContainerSandbox::started_us() const {
  const std::uint64_t executed = init_plan_->plan().seen.program_start_us;
  return executed >= called_us_ && executed <= monotonic_us() ? executed : 0;
}

void ContainerSandbox::deny_memory() {
  exit_.denials.push_back({"memory", "more memory", limit_sentence(limit_row("memory"), spec_.limits.memory.value),
                           "--memory", exit_.usage.oom_kills});
}

void ContainerSandbox::read_group_usage() {
  if (spec_.account == Account::of_failures && exit_.exit_code == 0) return;
  const auto usage = cgroups_->usage();
  if (!usage) return;
  exit_.usage.cpu_user_ms = usage->cpu_user_ms;
  exit_.usage.cpu_system_ms = usage->cpu_system_ms;
  if (plan_.sampled.millicpus == 0) exit_.usage.cpu_throttled_ms = usage->cpu_throttled_ms;
  exit_.usage.memory_peak_bytes = usage->memory_peak_bytes;
  exit_.usage.memory_peak_is_sampled = usage->memory_peak_is_sampled;
  exit_.usage.oom_kills = usage->oom_kills;
  const std::uint64_t own = 1 + (plan_.user_kernel ? kernel_tasks(spec_) : 0);  // init, and a user-space kernel's
  exit_.usage.processes_peak = usage->tasks_peak > own ? usage->tasks_peak - own : 0;
  exit_.hit_memory_limit = usage->oom_kills > 0;
  exit_.hit_tasks_limit = usage->task_refusals > 0;
  if (usage->oom_kills > 0) deny_memory();
  if (usage->task_refusals > 0) deny_tasks(usage->task_refusals);
}

// Where init is alone and has left the groups, they are read and removed while it ends: both take some 0.2 ms.
RunningSandbox::ReportIs ContainerSandbox::read_report() {
  read_frames();
  if (!is_reported_) return ReportIs::to_come;
  if (!has_left_groups_ || !cgroups_) return ReportIs::complete;
  watcher_->dismiss();  // should this process be killed now, gc finds the groups
  read_group_usage();
  is_usage_read_ = true;
  (void)cgroups_->remove();
  return ReportIs::complete;
}

TierExit ContainerSandbox::finish() {
  watcher_->dismiss();  // it ends while this process goes on
  read_frames();
  if (!is_reported_) {
    exit_.ended_unreported = true;
    exit_.signal = SIGKILL;
  }
  if (!is_reported_) look_at_space();  // killed
  if (io_) exit_.usage.read_bytes = io_->read_bytes;
  if (io_) exit_.usage.written_bytes = io_->written_bytes;
  (void)init_.reap();
  if (!is_usage_read_) {
    read_process_usage();
    if (cgroups_) read_group_usage();
  }
  if (has_kernel_stopped_) read_kernel_stop();
  read_kernel_tasks();
  deny_file_size();
  cgroups_.reset();
  std::ranges::move(refusals_.denials(), std::back_inserter(exit_.denials));
  if (egress_) read_egress_report();
  return std::move(exit_);
}

// With no process left in the sandbox, all that it asked for has been decided on.
void ContainerSandbox::read_egress_report() {
  Result<egress::EgressReport> report = egress_->finish();
  if (!report) {
    if (!exit_.error) exit_.error = report.error();
    return;
  }
  exit_.usage.net_sent_bytes = report->sent_bytes;
  exit_.usage.net_received_bytes = report->received_bytes;
  for (Denial& denial : report->denials) exit_.denials.push_back(std::move(denial));
  exit_.network = std::move(report->uses);
}

struct HandedSpace {
  Fd space;
  WorkspaceForm workspace = WorkspaceForm::none;
};

// What init handed over on `link`; nothing where it ended before. Init is treated as hostile here too: what came is a
// folder of a tmpfs, or an error.
Result<HandedSpace> receive_space(int link) {
  std::byte byte[1] = {};
  Handles attached;
  while (receive_packet(link, byte, &attached) < 0 && errno == EINTR) {
  }
  Fd space = std::move(attached[0]);
  if (!space.is_open()) return HandedSpace{};
  const auto form = static_cast<WorkspaceForm>(byte[0]);
  struct statfs kind{};
  if (::fstatfs(space.get(), &kind) == 0 && kind.f_type == TMPFS_MAGIC) {
    return HandedSpace{std::move(space), form};
  }
  return fail(ErrorCode::internal, "the sandbox's init handed over something else than its writable space");
}

Result<std::vector<WritablePlace>> ContainerSandbox::take_writable_places() {
  HandedSpace handed = TRY(receive_space(space_link_.get()));
  std::vector<WritablePlace> places;
  if (!handed.space.is_open()) return places;
  if (plan_.user_kernel) return read_kernel_places(spec_, plan_.own_folders, std::move(handed.space));
  using Kind = WritablePlace::Kind;
  const auto add = [&](const std::string& path, const std::string& name, Kind kind) -> Result<void> {
    auto folder = host::open_on_same_mount(handed.space.get(), name.c_str(), O_PATH | O_DIRECTORY);
    if (!folder)
      return fail(ErrorCode::internal, fmt::format("{} can't be opened: {}", path, errno_text(folder.error().value)));
    places.push_back({path, std::move(*folder), kind});
    return {};
  };
  TRY_VOID(add("/tmp", "tmp", Kind::own));
  for (std::size_t i = 0; i < plan_.own_folders.size(); ++i) {
    TRY_VOID(add(plan_.own_folders[i], std::to_string(i), Kind::own));
  }
  if (!spec_.workspace.empty() && handed.workspace != WorkspaceForm::none) {
    const Kind kind = handed.workspace == WorkspaceForm::copy ? Kind::copy : Kind::overlay;
    TRY_VOID(add(kWorkspaceTarget, kWorkspaceUpper, kind));
    const auto mount = std::ranges::find_if(plan_.mounts, &PlannedMount::is_workspace);
    places.back().host_device = mount->device;
    places.back().host_inode = mount->inode;
  }
  return places;
}

// In a chroot the root is no mount point (proc_pid_mountinfo(5)): the fifth field of no line, before its options, is
// "/".
bool is_chrooted() {
  constexpr std::size_t kTextBytesMax = 4 * 1024 * 1024;
  const auto text = read_file_at(AT_FDCWD, "/proc/self/mountinfo", kTextBytesMax);
  return text && text->find(" / rw") == std::string::npos && text->find(" / ro") == std::string::npos;
}

// Starts one sandbox; each function is a step that leaves what it made in the ContainerSandbox, whose destructor undoes
// it.
class Starter {
 public:
  explicit Starter(const SandboxSpec& spec, std::optional<OwnProgram> own_program = std::nullopt)
      : sandbox_(std::make_unique<ContainerSandbox>()), own_program_(std::move(own_program)) {
    sandbox_->spec_ = spec;
  }
  Starter(const SandboxSpec& spec, UserKernel kernel) : Starter(spec) { kernel_ = std::move(kernel); }

  // Init starts first: it makes namespaces and an empty root on another processor while this one plans.
  Result<std::unique_ptr<RunningSandbox>> start() {
    const CallerPrivilege caller = caller_privilege();
    is_root_ = caller.privilege == Privilege::root;
    own_ = TRY(read_own_stat());
    TRY_VOID(open_loaded_image());
    TRY_VOID(connect());
    if (host_has_only_cgroup_v2()) TRY_VOID(make_cgroups());
    TRY_VOID(clone_init());
    TRY_VOID(map_ids());
    // Before the fork: what is known of the control groups is looked up once for each process, and a watcher forked
    // while another thread does that would wait for it for ever.
    const HostFacts facts = host_facts(caller);
    sandbox_->watcher_ =
        std::make_unique<Watcher>(TRY(Watcher::start(sandbox_->init_plan_->plan().seen.program_start_us)));
    std::vector<WallReport> walls = assess_walls(facts);
    leave_out_unlimited(sandbox_->spec_.limits, &walls);
    mark_uncounted_mounts(sandbox_->spec_, &walls);
    TRY_VOID(check_demands(walls, sandbox_->spec_));
    TRY_VOID(check_own_binary(facts));
    sandbox_->isolation_ = to_isolation(walls);
    if (kernel_) sandbox_->isolation_.tier = "kernel";
    TRY_VOID(plan(facts));
    TRY_VOID(place_in_cgroups());
    TRY_VOID(sandbox_->watcher_->arm(sandbox_->cleanup_needs()));
    TRY_VOID(let_go());
    if (sandbox_->spec_.terminal) TRY_VOID(receive_terminal());
    return std::move(sandbox_);
  }

 private:
  StartPlan& plan_ref() { return sandbox_->plan_; }
  bool is_root() const { return is_root_; }

  // Init is cloned as the user that the image names.
  Result<void> open_loaded_image() {
    if (sandbox_->spec_.image.empty()) return {};
    const ImageStore store = TRY(ImageStore::open(MissingStore::is_empty));
    loaded_ = std::make_unique<LoadedImage>(TRY(store.open_image(sandbox_->spec_.image)));
    ids_ = {.uid = loaded_->record.config.uid, .gid = loaded_->record.config.gid};
    return {};
  }

  Result<void> plan(const HostFacts& facts) {
    HostImage image = TRY(open_host_image());
    const std::string authority_pem = TRY(await_egress());
    sandbox_->plan_ = TRY(make_plan(sandbox_->spec_, facts, image, loaded_.get(), authority_pem,
                                    own_program_ ? &*own_program_ : nullptr));
    sandbox_->image_locks_.push_back(std::move(image.lock));
    if (loaded_) {
      sandbox_->image_locks_.push_back(std::move(loaded_->lock));
      sandbox_->image_locks_.push_back(std::move(loaded_->name_lock));
    }
    StartPlan& plan = sandbox_->plan_;
    plan.own_arguments = own_.arguments;
    plan.own_environment = own_.environment;
    const Limits& limits = sandbox_->spec_.limits;
    if (!facts.cgroups.memory) plan.sampled.memory_bytes = limits.memory.value;
    // The sampler counts processor time along with the quota.
    if (!facts.cgroups.cpu || !facts.cgroups.cpu_time) plan.sampled.millicpus = limits.cpus.value;
    if (!facts.cgroups.tasks) plan.sampled.tasks = limits.tasks.value + own_tasks();
    if (!own_program_) show_cpus(&plan);
    if (kernel_) {
      kernel_->memory_bytes = limits.memory.value;
      kernel_->tasks = limits.tasks.value;
      kernel_->cpus = static_cast<unsigned>(CPU_COUNT(&cpus_));
      kernel_->traces_calls = sandbox_->spec_.traces_calls;
      open_content_cache(*kernel_);
      plan.user_kernel = std::move(kernel_);
    }
    return {};
  }

  // Of what the same user of the same image sees with the same paths hidden, in the form that this build of the kernel
  // takes.
  void open_content_cache(container::UserKernel& kernel) {
    struct stat image{};
    if (::fstat(kernel.image.get(), &image) != 0) return;
    std::string what = fmt::format("{} {}:{} {}:{} {}.{}", loaded_ ? loaded_->record.tree : "host", ids_.uid, ids_.gid,
                                   image.st_dev, image.st_ino, image.st_ctim.tv_sec, image.st_ctim.tv_nsec);
    for (const std::string& path : sandbox_->plan_.hidden_paths) what.append(1, '\0').append(path);
    auto cache = content_cache::open_cache(what);
    kernel.readable_cache = std::move(cache.readable);
    kernel.writable_cache = std::move(cache.writable);
  }

  // Programs see the processors that they have.
  void show_cpus(StartPlan* shown) const {
    CpuView view = view_cpus(cpus_);
    StartPlan& plan = *shown;
    plan.cover_files.insert(plan.cover_files.end(), std::make_move_iterator(view.proc_files.begin()),
                            std::make_move_iterator(view.proc_files.end()));
    plan.folders.insert(plan.folders.end(), view.sys_folders.begin(), view.sys_folders.end());
    plan.files.insert(plan.files.end(), std::make_move_iterator(view.sys_files.begin()),
                      std::make_move_iterator(view.sys_files.end()));
  }

  Result<void> connect() {
    const auto failed = [](const char* what, int error) {
      return fail(ErrorCode::no_resources, fmt::format("can't make {}: {}", what, errno_text(error)));
    };
    CpuChoice choice = TRY(choose_cpus(sandbox_->spec_.limits.cpus.value));
    sandbox_->cpu_pins_ = std::move(choice.pins);
    if (is_root()) sandbox_->uids_ = std::make_unique<UidRange>(TRY(lease_uid_range()));
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return failed("a socket pair", errno);
    sandbox_->control_ = Fd(ends[0]);
    Fd control(ends[1]);
    auto in = make_pipe();
    auto out = make_pipe();
    auto err = make_pipe();
    if (!in || !out || !err) return failed("pipes", (!in ? in : !out ? out : err).error().value);
    if (is_root()) {
      // So that /dev/stdout and the like can be opened again by the program's own uid.
      const unsigned base = sandbox_->uids_->base;
      for (const Fd* end : {&in->read, &out->write, &err->write}) {
        if (::fchown(end->get(), base + ids_.uid, base + ids_.gid) != 0) return failed("pipes", errno);
      }
    }
    sandbox_->init_plan_ = std::make_unique<InitPlanMemory>(TRY(InitPlanMemory::create()));
    InitPlan& init = sandbox_->init_plan_->plan();
    init.privilege = is_root() ? Privilege::root : Privilege::user;
    init.ids = ids_;
    cpus_ = choice.cpus;
    ::sched_getaffinity(0, sizeof init.caller_cpus, &init.caller_cpus);
    init.control = control.get();
    init.stdin_read = in->read.get();
    init.stdout_write = out->write.get();
    init.stderr_write = err->write.get();
    if (own_program_) init.report_write = own_program_->report.get();
    if (!sandbox_->spec_.allow.empty()) TRY_VOID(start_egress(&init));
    Fd space_link;
    if (!sandbox_->spec_.collect.empty() || !sandbox_->spec_.workspace.empty()) {
      if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return failed("a socket pair", errno);
      sandbox_->space_link_ = Fd(ends[0]);
      space_link = Fd(ends[1]);
      init.space_link = space_link.get();
    }
    sandbox_ends_ = {std::move(control), std::move(in->read), std::move(out->write), std::move(err->write),
                     std::move(space_link)};
    sandbox_->streams_ = {std::move(in->write), std::move(out->read), std::move(err->read)};
    return {};
  }

  // Starts while init is still to be cloned, so that both make themselves ready at the same time.
  Result<void> start_egress(InitPlan* init) {
    const SandboxSpec& spec = sandbox_->spec_;
    const Limits& limits = spec.limits;
    egress::EgressConfig config{.rules = spec.allow,
                                .secrets = spec.secrets,
                                .limits = {.connections = limits.net_connections.value,
                                           .connections_per_second = limits.net_rate.value,
                                           .bytes = limits.net_size.value,
                                           .idle_ms = limits.net_idle.value,
                                           .time_ms = limits.net_time.value}};
    egress::InspectionSources sources;
    if (needs_inspection(spec.secrets, spec.allow)) {
      std::vector<std::string> shown{spec.workspace};
      for (const MountSpec& mount : spec.mounts) shown.push_back(mount.source);
      TRY_VOID(egress::check_secrets_are_unseen(spec.secrets, shown));
      sources = TRY(egress::open_inspection_sources(spec.secrets,
                                                    [](const char* name) -> const char* { return std::getenv(name); }));
    }
    // The last of the sandbox's own ids, which no program inside has.
    if (is_root()) config.run_as = sandbox_->uids_->base + kIdRangeSize - 1;
    sandbox_->egress_ = std::make_unique<egress::EgressProcess>(TRY(egress::EgressProcess::start(config, sources)));
    init->egress_link = sandbox_->egress_->link().get();
    init->egress_rate = static_cast<std::uint32_t>(limits.net_rate.value);
    std::set<std::uint16_t> ports;
    std::set<IpAddress> literals;
    for (const EgressRule& rule : spec.allow) {
      ports.insert(rule.ports.begin(), rule.ports.end());
      if (rule.host.address) literals.insert(*rule.host.address);
    }
    for (const std::uint16_t port : ports) init->egress_ports[init->egress_port_count++] = port;
    for (const IpAddress& literal : literals) {
      host::RedirectAddress& address = init->egress_addresses[init->egress_address_count++];
      address.is_v6 = literal.family == IpFamily::v6;
      std::ranges::copy(literal.bytes, address.bytes);
    }
    return {};
  }

  // The certificate of the sandbox's authority, where it has one. Placeholders stand in for secrets from here on.
  Result<std::string> await_egress() {
    SandboxSpec& spec = sandbox_->spec_;
    if (!sandbox_->egress_ || !needs_inspection(spec.secrets, spec.allow)) return std::string();
    egress::EgressReady ready = TRY(sandbox_->egress_->await_ready(spec.secrets.size()));
    for (std::size_t i = 0; i < spec.secrets.size(); ++i) {
      spec.environment.push_back({spec.secrets[i].name, secret_placeholder(ready.secret_bytes[i])});
    }
    return std::move(ready.authority_pem);
  }

  Result<void> make_cgroups() {
    Limits limits = sandbox_->spec_.limits;
    limits.tasks.value += 1 + own_tasks();  // init
    sandbox_->cgroups_ = TRY(create_cgroups(new_cgroup_name(own_), limits));
    return {};
  }

  Result<void> place_in_cgroups() {
    const bool is_placed = sandbox_->cgroups_ != nullptr;  // by the clone
    if (is_placed || host_has_only_cgroup_v2()) return {};
    TRY_VOID(make_cgroups());
    if (!sandbox_->cgroups_ || sandbox_->cgroups_->clone_into_fd() < 0) return {};
    return sandbox_->cgroups_->move_in(sandbox_->init_.pid());
  }

  Result<void> clone_init() {
    // As the range's own first user, so that quotas of the kernel (inotify instances, queued signals, namespaces) are
    // the sandbox's own, and not those that root and all other sandboxes share.
    std::optional<host::ActAsUser> own_user;
    if (is_root()) own_user.emplace(sandbox_->uids_->base);
    if (own_user && own_user->result() < 0) {
      return fail(ErrorCode::start_failed,
                  fmt::format("can't act as the sandbox's own user: {}", errno_text(-own_user->result())));
    }
    const int cgroup_fd = sandbox_->cgroups_ ? sandbox_->cgroups_->clone_into_fd() : -1;
    auto clone = host::clone_process(kNamespaces, cgroup_fd);
    if (!clone) return fail(ErrorCode::host_unsupported, describe_clone_failure(clone.error().value));
    if (clone->side == host::Side::child) init_main(sandbox_->init_plan_->plan());
    sandbox_->init_ = std::move(clone->process);
    // The sandbox's ends live on in init only, so that their other ends see its end.
    for (Fd& end : sandbox_ends_) end.reset();
    if (own_program_) own_program_->report.reset();
    if (sandbox_->egress_) sandbox_->egress_->link().reset();
    // From here, because then init starts beside this process: left to the scheduler, it often waits for its turn.
    if (::sched_setaffinity(sandbox_->init_.pid(), sizeof cpus_, &cpus_) == 0) return {};
    return fail(ErrorCode::start_failed,
                fmt::format("can't keep the sandbox on its processors: {}", errno_text(errno)));
  }

  // user_namespaces(7), and the file in namespaces(7).
  static std::string describe_namespace_shortage() {
    constexpr const char* kFile = "/proc/sys/user/max_user_namespaces";
    const auto most = read_file_at(AT_FDCWD, kFile, 64);
    if (most && most->starts_with("0\n")) {
      return "user namespaces are turned off here (user.max_user_namespaces is 0), also for root; have root allow "
             "them: "
             "sysctl user.max_user_namespaces=10000";
    }
    return fmt::format(
        "all user namespaces that this user may have are in use, or they are nested too deeply; end some "
        "sandboxes, or have root raise the {} that there may be: sysctl user.max_user_namespaces",
        most ? most->substr(0, most->find('\n')) : "number");
  }

  static std::string describe_clone_failure(int error) {
    switch (error) {
      case EPERM:
        if (is_chrooted()) {
          return "this process runs in a chroot, and the kernel lets nobody make user namespaces there; enter the tree "
                 "with pivot_root (`unshare --mount`, systemd-nspawn, a container) instead";
        }
        return "this user may not make user namespaces; allow it (sysctl kernel.unprivileged_userns_clone=1, or on "
               "Ubuntu "
               "kernel.apparmor_restrict_unprivileged_userns=0 or an AppArmor profile for belljar), or run as root";
      case ENOSPC:
      case EUSERS:
        return describe_namespace_shortage();
      default:
        return fmt::format("can't make the sandbox's namespaces: {}", errno_text(error));
    }
  }

  Result<void> map_ids() {
    proc_folder_ = TRY(open_proc_folder(sandbox_->init_.pid()));
    auto io = open_at(proc_folder_.get(), "io", O_RDONLY);
    auto own_io = open_at(proc_folder_.get(), fmt::format("task/{}/io", sandbox_->init_.pid()).c_str(), O_RDONLY);
    if (io && own_io) io_files_ = {std::move(*own_io), std::move(*io)};
    if (is_root()) {
      TRY_VOID(map_id_range(proc_folder_.get(), sandbox_->uids_->base));
    } else {
      TRY_VOID(map_own_ids(proc_folder_.get(), ids_));
    }
    return send(ParentMessage::ids_ready, {});
  }

  // Completes the InitPlan and tells init to go on, with the descriptors that it needs. Root: clones and idmaps each
  // mount here, where that is allowed.
  Result<void> let_go() {
    InitPlan& init = sandbox_->init_plan_->plan();
    std::vector<Fd> mounts;
    if (is_root()) {
      const auto userns = open_at(proc_folder_.get(), "ns/user", O_RDONLY);
      if (!userns) return fail(ErrorCode::start_failed, "the sandbox's init ended early");
      for (PlannedMount& mount : plan_ref().mounts) mounts.push_back(TRY(prepare_mount(mount, userns->get())));
    }
    TRY_VOID(sandbox_->init_plan_->fill(plan_ref()));
    std::vector<int> fds;
    for (const Fd& mount : mounts) fds.push_back(mount.get());
    init.mount_fds = static_cast<unsigned>(mounts.size());
    if (plan_ref().script.is_open()) fds.push_back(plan_ref().script.get());
    init.script_fds = plan_ref().script.is_open() ? 1 : 0;
    if (sandbox_->cgroups_) {
      const std::vector<int> in = sandbox_->cgroups_->attach_fds();
      const std::vector<int> out = sandbox_->cgroups_->exit_fds();
      fds.insert(fds.end(), in.begin(), in.end());
      fds.insert(fds.end(), out.begin(), out.end());
      init.group_fds = static_cast<unsigned>(in.size());
      init.group_exit_fds = static_cast<unsigned>(out.size());
    }
    if (const auto& kernel = plan_ref().user_kernel) {
      fds.insert(fds.end(), {kernel->image.get(), kernel->broker.get()});
      init.kernel_fds = 2;
      if (kernel->writable_cache.is_open()) {
        fds.insert(fds.end(), {kernel->readable_cache.get(), kernel->writable_cache.get()});
        init.kernel_fds = 4;
      }
    }
    init.io_fds = io_files_[0].is_open() ? static_cast<unsigned>(io_files_.size()) : 0;
    for (std::size_t i = 0; i < init.io_fds; ++i) fds.push_back(io_files_[i].get());
    TRY_VOID(send(ParentMessage::go, fds));
    plan_ref().script.reset();
    return {};
  }

  // The terminal's other end comes from init, in whose devpts it is, or an error comes in its place.
  Result<void> receive_terminal() {
    constexpr int kPatienceMs = 10000;
    pollfd report{sandbox_->control_.get(), POLLIN, 0};
    while (::poll(&report, 1, kPatienceMs) < 0 && errno == EINTR) {
    }
    std::byte packet[sizeof(Frame) + 1];
    Handles attached;
    const ssize_t count = receive_packet(sandbox_->control_.get(), packet, &attached);
    Fd ours = std::move(attached[0]);
    const auto checked = count > 0 ? read_frame({packet, static_cast<std::size_t>(count)}) : std::nullopt;
    if (checked && checked->kind == FrameKind::setup_failed) {
      return std::unexpected(describe_setup_failure(*checked, plan_ref()));
    }
    if (!checked || checked->kind != FrameKind::terminal || !ours.is_open()) {
      return fail(ErrorCode::start_failed, "the sandbox ended before its terminal was made");
    }
    Fd input(::fcntl(ours.get(), F_DUPFD_CLOEXEC, 0));
    if (!input.is_open())
      return fail(ErrorCode::no_resources, fmt::format("can't copy a descriptor: {}", errno_text(errno)));
    sandbox_->streams_ = {std::move(input), std::move(ours), Fd()};
    return {};
  }

  Result<Fd> prepare_mount(PlannedMount& mount, int sandbox_userns_fd) {
    const auto refuse = [&](int error, const char* doing) {
      return fail(ErrorCode::bad_mount, fmt::format("{}: can't {}: {}", mount.source, doing, errno_text(error)));
    };
    const int copy = host::clone_mount(mount.opened.get(), "", host::Recursion::yes);
    if (copy < 0) return refuse(-copy, "clone its mount");
    Fd tree(copy);
    if (mount.must_allow_devices) {
      if (const int result = host::allow_devices(tree.get()); result < 0) return refuse(-result, "allow devices on it");
    }
    int userns_fd = sandbox_userns_fd;
    Fd owner_map;
    if (mount.is_workspace) {
      owner_map = TRY(make_owner_map({mount.owner_uid, mount.owner_gid}, sandbox_->uids_->base, ids_));
      userns_fd = owner_map.get();
    } else if (mount.is_caller_mount) {
      if (!caller_map_.is_open())
        caller_map_ = TRY(make_owner_map({::geteuid(), ::getegid()}, sandbox_->uids_->base, ids_));
      userns_fd = caller_map_.get();
    }
    const int set = host::set_mount_attributes(tree.get(), mount.attributes, userns_fd, host::Recursion::yes);
    if (set == 0) return tree;
    if (mount.is_caller_mount && !mount.is_workspace)
      return refuse(-set,
                    "map its files to the sandbox's user; this file system, or one mounted below it, has no idmapped "
                    "mounts (ext4, xfs, btrfs "
                    "and tmpfs have); copy it to one that does");
    // The image stays readable without the map; its files then seem to belong to nobody.
    const int plain = host::set_mount_attributes(tree.get(), mount.attributes, -1, host::Recursion::yes);
    if (plain < 0) return refuse(-plain, "set its mount attributes");
    if (mount.is_workspace) {
      mount.must_be_copied = true;
      return tree;
    }
    mark_weaker("ownership", "the file system of the image can't be idmapped: system files appear to belong to nobody");
    return tree;
  }

  void mark_weaker(const std::string& name, const std::string& why) {
    Isolation& isolation = sandbox_->isolation_;
    if (std::erase(isolation.enforced, name) > 0) isolation.weaker.push_back({name, why});
  }

  Result<void> send(ParentMessage message, const std::vector<int>& fds) {
    const long sent = host::send_with_descriptors(sandbox_->control_.get(), std::as_bytes(std::span(&message, 1)), fds);
    if (sent == 1) return {};
    // Init ended early and said why, or was killed: finish() will read it.
    if (sent == -EPIPE || sent == -ECONNRESET) return {};
    return fail(ErrorCode::start_failed,
                fmt::format("can't reach the sandbox's init: {}", errno_text(static_cast<int>(-sent))));
  }

  // Tasks of a user-space kernel and its broker that are none of the program's.
  std::uint64_t own_tasks() const { return kernel_ || sandbox_->plan_.user_kernel ? kernel_tasks(sandbox_->spec_) : 0; }

  std::unique_ptr<ContainerSandbox> sandbox_;
  std::optional<UserKernel> kernel_;
  bool is_root_ = false;
  std::optional<OwnProgram> own_program_;
  std::unique_ptr<LoadedImage> loaded_;
  ProgramIds ids_;
  OwnStat own_;
  cpu_set_t cpus_{};
  std::array<Fd, 5> sandbox_ends_;
  Fd proc_folder_;
  std::array<Fd, 2> io_files_;  // init's, opened while that is allowed: of itself, and with what it waited for
  Fd caller_map_;
};

Result<void> check_calls_are_not_traced(const SandboxSpec& spec) {
  if (!spec.traces_calls) return {};
  return fail(ErrorCode::usage,
              "--strace shows what a user-space kernel answers, which the container tier has none of; use --isolation "
              "kernel");
}

class ContainerTier final : public Tier {
 public:
  std::string_view name() const override { return "container"; }
  std::vector<WallReport> probe() const override { return assess_walls(host_facts(caller_privilege())); }
  Result<void> check(const SandboxSpec& spec) const override {
    TRY_VOID(check_calls_are_not_traced(spec));
    return check_refused_limits(name(), spec.limits);
  }
  Result<std::unique_ptr<RunningSandbox>> start(const SandboxSpec& spec) const override {
    TRY_VOID(check_calls_are_not_traced(spec));  // of limits it is looked at what this host can do, too
    return Starter(spec).start();
  }
  Result<SandboxSpec> trial() const override {
    SandboxSpec spec;
    spec.command = {"true"};
    return spec;
  }
};

}  // namespace

Result<std::unique_ptr<RunningSandbox>> start_with_kernel(const SandboxSpec& spec, UserKernel kernel) {
  return Starter(spec, std::move(kernel)).start();
}

}  // namespace container

const Tier& container_tier() {
  static const container::ContainerTier kTier;
  return kTier;
}

Result<std::unique_ptr<RunningSandbox>> start_own_program(const SandboxSpec& spec, OwnProgram program) {
  return container::Starter(spec, std::move(program)).start();
}

std::string script_target(const SandboxSpec& spec) {
  return fmt::format("{}/{}", container::kScriptFolder, spec.script.substr(spec.script.rfind('/') + 1));
}

bool is_sandbox_owner_alive(const std::string& cgroup_name) {
  pid_t pid = 0;
  const char* last = cgroup_name.data() + cgroup_name.size();
  const auto parsed = std::from_chars(cgroup_name.data(), last, pid);
  if (parsed.ec != std::errc() || parsed.ptr == last || *parsed.ptr != '-') return true;  // not a name of ours
  const std::string_view start(parsed.ptr + 1, static_cast<std::size_t>(last - parsed.ptr - 1));
  return container::is_alive(pid, start.substr(0, start.find('-')));
}

}  // namespace belljar
