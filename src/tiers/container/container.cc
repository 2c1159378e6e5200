#include "tiers/container/container.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/mapping.h"
#include "cgroup/cgroup.h"
#include "host/mount.h"
#include "host/privilege.h"
#include "host/process.h"
#include "image/host_image.h"
#include "spec/errors.h"
#include "tiers/container/cpu_view.h"
#include "tiers/container/frames.h"
#include "tiers/container/id_map.h"
#include "tiers/container/lease.h"
#include "tiers/container/make_plan.h"
#include "tiers/container/own_stat.h"
#include "tiers/container/walls.h"
#include "tiers/watcher.h"

namespace belljar {
namespace container {
namespace {

// The others init makes itself (init_child.cc), while this process is busy with its control groups.
constexpr std::uint64_t kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID;

std::string new_cgroup_name(const OwnStat& own) {
  static std::atomic<unsigned> count = 0;
  return fmt::format("{}-{}-{}", ::getpid(), own.start_time, count.fetch_add(1));
}

Error describe_setup_failure(const Frame& frame, const StartPlan& plan) {
  std::string what = setup_step_text(frame.step);
  const auto index = static_cast<std::size_t>(frame.detail);
  switch (frame.step) {
    case SetupStep::mount:
    case SetupStep::open_source:
    case SetupStep::source_changed:
      if (index >= plan.mounts.size()) break;
      if (frame.step == SetupStep::mount && frame.errno_value == ENOENT) {
        return {
            ErrorCode::bad_mount,
            fmt::format("--mount {}:{}: there is no such place in the read-only image; choose another, such as /data",
                        plan.mounts[index].source, plan.mounts[index].target)};
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
      if (index < plan.hidden_paths.size()) what += fmt::format(" ({})", plan.hidden_paths[index]);
      break;
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
      return {
          ErrorCode::not_found,
          fmt::format("{}: command not found in the sandbox; it sees the host's /usr and what is mounted", program)};
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

class ContainerSandbox final : public RunningSandbox {
 public:
  ~ContainerSandbox() override {
    // Order: the process first (it and all its descendants end), then the groups it was in.
    init_ = host::Process();
    cgroups_.reset();
  }

  HostStreams& streams() override { return streams_; }
  int ended_fd() const override { return init_.pidfd(); }
  void kill() override { init_.kill(); }
  const Isolation& isolation() const override { return isolation_; }
  TierExit finish() override;
  void abandon() override;

 private:
  friend class Starter;

  CleanupNeeds cleanup_needs() const;
  void read_frames(TierExit* exit);
  void read_usage(const host::ExitRecord& record, TierExit* exit);

  SandboxSpec spec_;
  StartPlan plan_;
  Isolation isolation_;
  HostStreams streams_;
  Fd control_;
  Fd image_lock_;
  std::optional<LeaseFile> cpu_pins_;
  std::optional<UidRange> uids_;
  std::unique_ptr<CgroupDir> cgroups_;
  Mapping totals_;
  std::optional<Watcher> watcher_;
  host::Process init_;
};

CleanupNeeds ContainerSandbox::cleanup_needs() const {
  CleanupNeeds needs;
  needs.process_fd = init_.pidfd();
  if (uids_) needs.keep_open.push_back(uids_->lease.fd());
  if (cpu_pins_) needs.keep_open.push_back(cpu_pins_->fd());
  if (image_lock_.is_open()) needs.keep_open.push_back(image_lock_.get());
  if (cgroups_) needs.folders = cgroups_->folders();
  needs.deadline_ms = monotonic_ms() + spec_.limits.timeout.value;
  return needs;
}

void ContainerSandbox::abandon() {
  watcher_->leave_to_it();
  init_.release();
  (void)cgroups_.release();
}

void ContainerSandbox::read_frames(TierExit* exit) {
  bool reported = false;
  while (true) {
    std::byte packet[sizeof(Frame) + 1];
    const ssize_t count = ::recv(control_.get(), packet, sizeof packet, MSG_DONTWAIT);
    // An init that gave up before it read everything sent to it says so by this error first; its report comes after.
    if (count < 0 && (errno == ECONNRESET || errno == EINTR)) continue;
    if (count <= 0) break;
    const std::optional<Frame> frame = read_frame({packet, static_cast<std::size_t>(count)});
    if (!frame) {
      exit->error = Error{ErrorCode::internal, "the sandbox's init sent a malformed report"};
      return;
    }
    reported = true;
    switch (frame->kind) {
      case FrameKind::setup_failed:
        exit->error = describe_setup_failure(*frame, plan_);
        break;
      case FrameKind::exec_failed:
        exit->error = describe_exec_failure(*frame, plan_);
        break;
      case FrameKind::memory_exceeded:
        exit->signal = SIGKILL;
        exit->hit_memory_limit = true;
        break;
      case FrameKind::exited:
        if (frame->exit_code >= 0) exit->exit_code = frame->exit_code;
        if (frame->signal >= 0) exit->signal = frame->signal;
        exit->hit_disk_limit = frame->full == 1;
        exit->usage.disk_written_bytes = frame->written_bytes;
        break;
    }
  }
  if (reported) return;
  exit->ended_unreported = true;
  exit->signal = SIGKILL;
}

void ContainerSandbox::read_usage(const host::ExitRecord& record, TierExit* exit) {
  const auto to_ms = [](const timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1000 + static_cast<std::uint64_t>(time.tv_usec) / 1000;
  };
  exit->usage.cpu_user_ms = to_ms(record.usage.ru_utime);
  exit->usage.cpu_system_ms = to_ms(record.usage.ru_stime);
  exit->usage.memory_peak_bytes = static_cast<std::uint64_t>(record.usage.ru_maxrss) * kKiB;
  if (plan_.sampled_totals != nullptr) {
    exit->usage.memory_peak_bytes = plan_.sampled_totals->memory_peak_bytes;
    exit->usage.cpu_user_ms = std::max<std::uint64_t>(exit->usage.cpu_user_ms, plan_.sampled_totals->cpu_ms);
  }
  if (!cgroups_) return;
  const auto usage = cgroups_->usage();
  if (!usage) return;
  exit->usage.cpu_user_ms = usage->cpu_user_ms;
  exit->usage.cpu_system_ms = usage->cpu_system_ms;
  exit->usage.memory_peak_bytes = usage->memory_peak_bytes;
  exit->usage.processes_peak = usage->tasks_peak > 0 ? usage->tasks_peak - 1 : 0;  // less init
  exit->hit_memory_limit = usage->oom_kills > 0;
  exit->hit_tasks_limit = usage->task_refusals > 0;
  if (usage->oom_kills > 0) {
    exit->denials.push_back({"memory", "more memory", limit_sentence(limit_rows()[0], spec_.limits.memory.value),
                             "--memory", usage->oom_kills});
  }
  if (usage->task_refusals > 0) {
    exit->denials.push_back({"tasks", "a new process or thread",
                             fmt::format("at most {} tasks", spec_.limits.tasks.value), "--tasks",
                             usage->task_refusals});
  }
}

TierExit ContainerSandbox::finish() {
  TierExit exit;
  watcher_->dismiss();  // it ends while this process goes on; should this one be killed now, gc finds the groups
  read_frames(&exit);
  const auto record = init_.reap();
  if (record) read_usage(*record, &exit);
  cgroups_.reset();
  return exit;
}

// Keeps this thread on the sandbox's processors while init starts: the two take turns, and waking an idle processor for
// each turn costs more than sharing one.
class StartAffinity {
 public:
  explicit StartAffinity(const cpu_set_t& cpus) {
    ::sched_getaffinity(0, sizeof before_, &before_);
    ::sched_setaffinity(0, sizeof cpus, &cpus);
  }
  StartAffinity(const StartAffinity&) = delete;
  StartAffinity& operator=(const StartAffinity&) = delete;
  ~StartAffinity() { ::sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

// Remembers the calling thread's network, IPC and UTS namespaces, and goes back to them at the end. A thread that can't
// go back is of no more use to its process, and ends it.
class NamespaceExcursion {
 public:
  NamespaceExcursion() {
    for (std::size_t i = 0; i < home_.size(); ++i) {
      auto fd = open_at(AT_FDCWD, kFiles[i], O_RDONLY);
      if (!fd) {
        error_ = fd.error().value;
        return;
      }
      home_[i] = std::move(*fd);
    }
  }
  NamespaceExcursion(const NamespaceExcursion&) = delete;
  NamespaceExcursion& operator=(const NamespaceExcursion&) = delete;
  ~NamespaceExcursion() {
    for (const Fd& fd : home_) {
      if (fd.is_open() && ::setns(fd.get(), 0) != 0) std::abort();
    }
  }

  int error() const { return error_; }

 private:
  static constexpr std::array<const char*, 3> kFiles = {"/proc/thread-self/ns/net", "/proc/thread-self/ns/ipc",
                                                        "/proc/thread-self/ns/uts"};
  std::array<Fd, 3> home_;
  int error_ = 0;
};

// Starts one sandbox; each function is a step that leaves what it made in the ContainerSandbox, whose destructor undoes
// it.
class Starter {
 public:
  explicit Starter(const SandboxSpec& spec) : sandbox_(std::make_unique<ContainerSandbox>()) { sandbox_->spec_ = spec; }

  Result<std::unique_ptr<RunningSandbox>> start() {
    // The watcher makes namespaces on another processor while this one does all that needs none of them.
    const CallerPrivilege caller = caller_privilege();
    sandbox_->watcher_.emplace(TRY(Watcher::start(caller.privilege == Privilege::root ? Watcher::Namespaces::net_ipc_uts
                                                                                      : Watcher::Namespaces::none)));
    const HostFacts facts = host_facts(caller);
    const std::vector<WallReport> walls = assess_walls(facts);
    TRY_VOID(check_demands(walls, sandbox_->spec_));
    TRY_VOID(check_own_binary(facts));
    sandbox_->isolation_ = to_isolation(walls);
    TRY_VOID(plan(facts));
    TRY_VOID(connect());
    TRY_VOID(make_cgroups());
    const StartAffinity affinity(sandbox_->plan_.cpus);
    TRY_VOID(clone_init());
    TRY_VOID(map_ids());
    TRY_VOID(sandbox_->watcher_->arm(sandbox_->cleanup_needs()));
    TRY_VOID(send_mounts());
    return std::move(sandbox_);
  }

 private:
  StartPlan& plan_ref() { return sandbox_->plan_; }
  bool is_root() const { return sandbox_->plan_.privilege == Privilege::root; }

  Result<void> plan(const HostFacts& facts) {
    HostImage image = TRY(open_host_image());
    sandbox_->plan_ = TRY(make_plan(sandbox_->spec_, facts, image));
    sandbox_->image_lock_ = std::move(image.lock);
    CpuView view = TRY(choose_cpus(sandbox_->spec_.limits.cpus.value));
    StartPlan& plan = sandbox_->plan_;
    plan.cpus = view.cpus;
    plan.proc_files = std::move(view.proc_files);
    plan.folders.insert(plan.folders.end(), view.sys_folders.begin(), view.sys_folders.end());
    plan.files = std::move(view.sys_files);
    sandbox_->cpu_pins_ = std::move(view.pins);
    if (is_root()) sandbox_->uids_ = TRY(lease_uid_range());
    own_ = TRY(read_own_stat());
    plan.own_arguments = own_.arguments;
    plan.own_environment = own_.environment;
    const Limits& limits = sandbox_->spec_.limits;
    if (!facts.cgroups.memory) plan.sampled.memory_bytes = limits.memory.value;
    if (!facts.cgroups.cpu) plan.sampled.millicpus = limits.cpus.value;
    if (!facts.cgroups.tasks) plan.sampled.tasks = limits.tasks.value;
    if (facts.cgroups.memory && facts.cgroups.cpu) return {};
    auto totals = Mapping::create_shared(sizeof(SampledTotals));
    if (!totals)
      return fail(ErrorCode::no_resources, fmt::format("can't map a page: {}", errno_text(totals.error().value)));
    sandbox_->totals_ = std::move(*totals);
    plan.sampled_totals = new (sandbox_->totals_.address()) SampledTotals;
    return {};
  }

  Result<void> connect() {
    const auto failed = [](const char* what, int error) {
      return fail(ErrorCode::no_resources, fmt::format("can't make {}: {}", what, errno_text(error)));
    };
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return failed("a socket pair", errno);
    sandbox_->control_ = Fd(ends[0]);
    plan_ref().control = Fd(ends[1]);
    auto in = make_pipe();
    auto out = make_pipe();
    auto err = make_pipe();
    if (!in || !out || !err) return failed("pipes", (!in ? in : !out ? out : err).error().value);
    if (is_root()) {
      // So that /dev/stdout and the like can be opened again by the program's own uid.
      const unsigned owner = sandbox_->uids_->base + kSandboxUid;
      for (const Fd* end : {&in->read, &out->write, &err->write}) {
        if (::fchown(end->get(), owner, owner) != 0) return failed("pipes", errno);
      }
    }
    plan_ref().stdin_read = std::move(in->read);
    plan_ref().stdout_write = std::move(out->write);
    plan_ref().stderr_write = std::move(err->write);
    sandbox_->streams_ = {std::move(in->write), std::move(out->read), std::move(err->read)};
    return {};
  }

  Result<void> make_cgroups() {
    Limits limits = sandbox_->spec_.limits;
    limits.tasks.value += 1;  // init
    sandbox_->cgroups_ = TRY(create_cgroups(new_cgroup_name(own_), limits));
    return {};
  }

  Result<void> clone_init() {
    const int cgroup_fd = sandbox_->cgroups_ ? sandbox_->cgroups_->clone_into_fd() : -1;
    host::CloneResult clone = TRY(clone_into_namespaces(cgroup_fd));
    sandbox_->init_ = std::move(clone.process);
    // The sandbox's ends live on in init only, so that their other ends see its end.
    StartPlan& plan = plan_ref();
    for (Fd* end : {&plan.control, &plan.stdin_read, &plan.stdout_write, &plan.stderr_write, &plan.script})
      end->reset();
    return {};
  }

  // Root: this thread steps into the watcher's namespaces for the clone, which init then has. They belong to the host's
  // user namespace, so that nothing inside has rights over them.
  Result<host::CloneResult> clone_into_namespaces(int cgroup_fd) {
    std::optional<NamespaceExcursion> excursion;
    if (is_root()) {
      excursion.emplace();
      if (excursion->error() != 0) return fail(ErrorCode::host_unsupported, describe_clone_failure(excursion->error()));
      TRY_VOID(sandbox_->watcher_->enter_namespaces());
    }
    // As the range's own first user, so that quotas of the kernel (inotify instances, queued signals, namespaces) are
    // the sandbox's own, and not those that root and all other sandboxes share.
    std::optional<host::ActAsUser> own_user;
    if (is_root()) own_user.emplace(sandbox_->uids_->base);
    if (own_user && own_user->result() < 0) {
      return fail(ErrorCode::start_failed,
                  fmt::format("can't act as the sandbox's own user: {}", errno_text(-own_user->result())));
    }
    auto clone = host::clone_process(kNamespaces, cgroup_fd);
    if (!clone) return fail(ErrorCode::host_unsupported, describe_clone_failure(clone.error().value));
    if (clone->side == host::Side::child) init_main(sandbox_->plan_);
    return std::move(*clone);
  }

  static std::string describe_clone_failure(int error) {
    switch (error) {
      case EPERM:
        return "this user may not make user namespaces; allow it (sysctl kernel.unprivileged_userns_clone=1, or on "
               "Ubuntu "
               "kernel.apparmor_restrict_unprivileged_userns=0 or an AppArmor profile for belljar), or run as root";
      case ENOSPC:
      case EUSERS:
        return "no more user namespaces are allowed (sysctl user.max_user_namespaces)";
      default:
        return fmt::format("can't make the sandbox's namespaces: {}", errno_text(error));
    }
  }

  Result<void> map_ids() {
    proc_folder_ = TRY(open_proc_folder(sandbox_->init_.pid()));
    if (is_root()) {
      TRY_VOID(map_id_range(proc_folder_.get(), sandbox_->uids_->base));
    } else {
      TRY_VOID(map_own_ids(proc_folder_.get()));
    }
    return send(ParentMessage::ids_ready, {});
  }

  // Root: clones and idmaps each mount here, where that is allowed, and hands them over.
  Result<void> send_mounts() {
    std::vector<Fd> mounts;
    if (is_root()) {
      const auto userns = open_at(proc_folder_.get(), "ns/user", O_RDONLY);
      if (!userns) return fail(ErrorCode::start_failed, "the sandbox's init ended early");
      for (const PlannedMount& mount : plan_ref().mounts) mounts.push_back(TRY(prepare_mount(mount, userns->get())));
    }
    std::vector<int> fds;
    for (const Fd& mount : mounts) fds.push_back(mount.get());
    if (sandbox_->cgroups_) {
      for (const int fd : sandbox_->cgroups_->attach_fds()) fds.push_back(fd);
    }
    return send(ParentMessage::go, fds);
  }

  Result<Fd> prepare_mount(const PlannedMount& mount, int sandbox_userns_fd) {
    const auto refuse = [&](int error, const char* doing) {
      return fail(ErrorCode::bad_mount, fmt::format("{}: can't {}: {}", mount.source, doing, errno_text(error)));
    };
    const int copy = host::clone_mount(mount.opened.get(), "", host::Recursion::yes);
    if (copy < 0) return refuse(-copy, "clone its mount");
    Fd tree(copy);
    int userns_fd = sandbox_userns_fd;
    if (mount.is_caller_mount) {
      if (!caller_map_.is_open()) caller_map_ = TRY(make_caller_map(sandbox_->uids_->base));
      userns_fd = caller_map_.get();
    }
    const int set = host::set_mount_attributes(tree.get(), mount.attributes, userns_fd, host::Recursion::yes);
    if (set == 0) return tree;
    if (mount.is_caller_mount)
      return refuse(-set,
                    "map its files to the sandbox's user; this file system has no idmapped mounts (ext4, xfs, btrfs "
                    "and tmpfs have); copy it to one that does");
    // The image stays readable without the map; its files then seem to belong to nobody.
    const int plain = host::set_mount_attributes(tree.get(), mount.attributes, -1, host::Recursion::yes);
    if (plain < 0) return refuse(-plain, "set its mount attributes");
    mark_weaker("ownership", "the file system of /usr can't be idmapped: system files appear to belong to nobody");
    return tree;
  }

  void mark_weaker(const std::string& name, const std::string& why) {
    Isolation& isolation = sandbox_->isolation_;
    if (std::erase(isolation.enforced, name) > 0) isolation.weaker.push_back({name, why});
  }

  Result<void> send(ParentMessage message, const std::vector<int>& fds) {
    iovec data{&message, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kPassedFdsMax)] = {};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    if (!fds.empty()) {
      header.msg_control = control;
      header.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
      cmsghdr* part = CMSG_FIRSTHDR(&header);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
      std::memcpy(CMSG_DATA(part), fds.data(), sizeof(int) * fds.size());
    }
    if (::sendmsg(sandbox_->control_.get(), &header, MSG_NOSIGNAL) == 1) return {};
    // Init ended early and said why, or was killed: finish() will read it.
    if (errno == EPIPE || errno == ECONNRESET) return {};
    return fail(ErrorCode::start_failed, fmt::format("can't reach the sandbox's init: {}", errno_text(errno)));
  }

  std::unique_ptr<ContainerSandbox> sandbox_;
  OwnStat own_;
  Fd proc_folder_;
  Fd caller_map_;
};

class ContainerTier final : public Tier {
 public:
  std::string_view name() const override { return "container"; }
  std::vector<WallReport> probe() const override { return assess_walls(host_facts(caller_privilege())); }
  Result<std::unique_ptr<RunningSandbox>> start(const SandboxSpec& spec) const override {
    return Starter(spec).start();
  }
};

}  // namespace
}  // namespace container

const Tier& container_tier() {
  static const container::ContainerTier kTier;
  return kTier;
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
