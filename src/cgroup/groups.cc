#include "cgroup/groups.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <set>

#include "cgroup/group_folder.h"
#include "spec/errors.h"

namespace belljar {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kKillTimeMax{2000};
constexpr milliseconds kRemoveTimeMax{500};
constexpr int kCreateTries = 100;
constexpr std::uint64_t kSocketShare = 8;     // v1: socket buffers get this part of the memory limit on top of it
constexpr std::uint64_t kPeriodUs = 100'000;  // the kernel's default length of a CPU quota's period, on v1 and v2
constexpr std::uint64_t kQuotaUsMin = 1'000;  // and its smallest quota

// The share of each period: a thousandth of a core is 100 us of 100 ms.
std::uint64_t quota_us(const Limits& limits) {
  return std::max(limits.cpus.value * kPeriodUs / 1000, kQuotaUsMin);
}

Error limit_error(const GroupFolder& folder, const char* limit, const char* file, int errno_value) {
  return {ErrorCode::cannot_enforce,
          fmt::format("the {} limit can't be set: {}/{}: {}", limit, folder.path, file, errno_text(errno_value))};
}

ErrorCode code_for(int errno_value) {
  switch (errno_value) {
    case EAGAIN:  // cgroup.max.descendants
    case ENOSPC:
    case ENOMEM:
      return ErrorCode::no_resources;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::cannot_enforce;
    default:
      return ErrorCode::start_failed;
  }
}

std::unexpected<Error> folder_error(const std::string& path, int errno_value) {
  return fail(code_for(errno_value),
              fmt::format("the control group {} can't be made: {}", path, errno_text(errno_value)));
}

// Writes one control file of a limit; the error names the limit as the caller knows it.
Result<void> set_limit(const GroupFolder& folder, const char* limit, const char* file, const std::string& value) {
  const auto written = write_control_file(AT_FDCWD, (folder.path + "/" + file).c_str(), value);
  if (!written) return std::unexpected(limit_error(folder, limit, file, written.error().value));
  return {};
}

bool limits_rates(const Limits& limits) {
  return !is_unlimited(limit_row("read_rate"), limits.read_rate.value) ||
         !is_unlimited(limit_row("write_rate"), limits.write_rate.value);
}

// The host's disks as "major:minor", which is what rates are set for: whole ones, for the kernel takes no partition.
// Empty ones such as unused loop devices are left out.
std::vector<std::string> disks() {
  std::vector<std::string> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/sys/block"), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    if (entry->d_name[0] == '.') continue;
    const std::string path = std::string("/sys/block/") + entry->d_name;
    std::string number = read_control_text(path + "/dev");
    if (number.ends_with('\n')) number.pop_back();
    if (!number.empty() && read_control_number(path + "/size") > 0) numbers.push_back(std::move(number));
  }
  return numbers;
}

// One line for each disk: `line` makes it of the disk's number.
template <typename Line>
Result<void> set_rates(const GroupFolder& folder, const char* file, Line line) {
  const std::vector<std::string> all = disks();
  if (all.empty()) return fail(ErrorCode::cannot_enforce, "the disk rates can't be set: /sys/block shows no disk");
  for (const std::string& disk : all) TRY_VOID(set_limit(folder, "disk rate", file, line(disk)));
  return {};
}

std::unexpected<Error> removed_error() {
  return fail(ErrorCode::internal, "the control groups have been removed, and their counters with them");
}

Result<void> move_into(const GroupFolder& folder, pid_t pid) {
  const auto moved = write_control_file(AT_FDCWD, (folder.path + "/cgroup.procs").c_str(), fmt::to_string(pid));
  if (moved) return {};
  return fail(ErrorCode::cannot_enforce,
              fmt::format("the sandbox can't be moved into {}: {}", folder.path, errno_text(moved.error().value)));
}

// The group around Belljar's own folder around a sandbox's group.
std::string outer_group(const std::string& group) {
  const std::string base = group.substr(0, group.rfind('/'));
  return base.substr(0, base.rfind('/'));
}

// Removes Belljar's own folder around a removed group, when it is empty, so that the caller's group can be removed in
// its turn. That of a hierarchy's root, which nobody removes, stays for the next run.
void remove_base_of(const std::string& group) {
  const std::string base = group.substr(0, group.rfind('/'));
  if (::faccessat(AT_FDCWD, (base + "/../../cgroup.procs").c_str(), F_OK, 0) == 0) (void)::rmdir(base.c_str());
}

// The peak of memory without page cache. Between two looks the kernel's own peak counts, so that nothing short is
// missed; what of it was page cache is the most that either look saw.
class MemoryPeak {
 public:
  void look(std::uint64_t now, std::uint64_t highest_since_last, std::uint64_t page_cache) {
    const auto without = [](std::uint64_t bytes, std::uint64_t cache) { return bytes - std::min(bytes, cache); };
    const std::uint64_t between = without(highest_since_last, std::max(page_cache, page_cache_));
    bytes_ = std::max({bytes_, without(now, page_cache), between});
    page_cache_ = page_cache;
    is_sampled_ |= page_cache > 0;
  }
  std::uint64_t bytes() const { return bytes_; }
  bool is_sampled() const { return is_sampled_; }

 private:
  std::uint64_t bytes_ = 0;
  std::uint64_t page_cache_ = 0;
  bool is_sampled_ = false;
};

// Both versions: the folders, their end, and what is counted alike.
class Groups : public CgroupDir {
 public:
  ~Groups() override { finish(); }

  void add(GroupFolder folder) { folders_.push_back(std::move(folder)); }

  void kill_all() final {
    remember_refusals();
    (void)kill_in_folders(folders(), kKillTimeMax);
  }

  bool remove() final {
    std::erase_if(folders_, [](const GroupFolder& folder) {
      const bool is_removed = remove_folder(folder.path, milliseconds(0)) == Removal::done;
      if (is_removed) remove_base_of(folder.path);
      return is_removed;
    });
    return folders_.empty();
  }

  std::vector<pid_t> processes() const final {
    return folders_.empty() ? std::vector<pid_t>() : group_processes(folders_.front().path);
  }

  std::vector<std::string> folders() const final {
    std::vector<std::string> paths;
    for (const GroupFolder& folder : folders_) paths.push_back(folder.path);
    return paths;
  }

 protected:
  const std::vector<GroupFolder>& group_folders() const { return folders_; }
  std::vector<GroupFolder>& group_folders() { return folders_; }

  // The folder with this controller, or null.
  const GroupFolder* folder_with(Controller controller) const {
    for (const GroupFolder& folder : folders_) {
      if (folder.controllers.has(controller)) return &folder;
    }
    return nullptr;
  }

  // Both versions name these files alike. Without pids.peak (before Linux 6.11) the peak is the highest number that any
  // call saw.
  void add_task_usage(CgroupUsage& usage) const {
    const GroupFolder* folder = folder_with(Controller::pids);
    if (folder == nullptr) return;
    const std::string& path = folder->path;
    usage.tasks_peak = read_control_number(path + "/pids.peak");
    if (usage.tasks_peak == 0) {
      tasks_seen_max_ = std::max(tasks_seen_max_, read_control_number(path + "/pids.current"));
      usage.tasks_peak = tasks_seen_max_;
    }
    usage.task_refusals =
        refusals_known_ ? refusals_at_kill_ : counter_in(read_control_text(path + "/pids.events"), "max");
  }

 private:
  // Killing sets the task limit to 0; what that refuses is not the program's doing.
  void remember_refusals() {
    const GroupFolder* folder = folder_with(Controller::pids);
    if (refusals_known_ || folder == nullptr) return;
    refusals_at_kill_ = counter_in(read_control_text(folder->path + "/pids.events"), "max");
    refusals_known_ = true;
  }

  void finish() {
    if (remove()) return;
    const std::vector<std::string> left = folders();
    (void)kill_in_folders(left, kKillTimeMax);
    for (const std::string& folder : left) (void)remove_folder(folder, kRemoveTimeMax);
  }

  std::vector<GroupFolder> folders_;
  mutable std::uint64_t tasks_seen_max_ = 0;
  std::uint64_t refusals_at_kill_ = 0;
  bool refusals_known_ = false;
};

class V1Groups final : public Groups {
 public:
  // Permission to move is the opener's, so the files are opened here and written by the sandbox's first process.
  Result<void> open_tasks() {
    for (GroupFolder& folder : group_folders()) {
      const std::string path = folder.path + "/tasks";
      auto tasks = open_at(AT_FDCWD, path.c_str(), O_WRONLY);
      if (!tasks) return folder_error(path, tasks.error().value);
      folder.entry = std::move(*tasks);
      auto outside = open_at(AT_FDCWD, (outer_group(folder.path) + "/tasks").c_str(), O_WRONLY);
      if (outside) folder.exit = std::move(*outside);
    }
    return {};
  }

  Result<void> set_limits(const Limits& limits, SwapControl swap_control) {
    if (const GroupFolder* folder = folder_with(Controller::memory)) {
      const std::string bytes = fmt::to_string(limits.memory.value);
      TRY_VOID(set_limit(*folder, "memory", "memory.limit_in_bytes", bytes));
      // Memory and swap together; it may not be below the memory limit, so it comes second.
      if (swap_control == SwapControl::limited) {
        const std::string with_swap = fmt::to_string(limits.memory.value + limits.swap.value);
        TRY_VOID(set_limit(*folder, "swap", "memory.memsw.limit_in_bytes", with_swap));
        counts_swap_ = true;
      }
      // v1 counts the buffers of TCP and UDP sockets apart, and only where they have a limit of their own: without it a
      // program could hold any amount in connections to itself.
      TRY_VOID(set_limit(*folder, "memory", "memory.kmem.tcp.limit_in_bytes",
                         fmt::to_string(limits.memory.value / kSocketShare)));
    }
    if (const GroupFolder* folder = folder_with(Controller::pids)) {
      TRY_VOID(set_limit(*folder, "tasks", "pids.max", fmt::to_string(limits.tasks.value)));
    }
    if (const GroupFolder* folder = folder_with(Controller::cpu)) TRY_VOID(set_cpu_limit(*folder, limits));
    if (const GroupFolder* folder = folder_with(Controller::blkio)) {
      return set_rates(*folder, "blkio.throttle.read_bps_device",
                       [&](const std::string& disk) { return fmt::format("{} {}", disk, limits.read_rate.value); });
    }
    return {};
  }

  std::vector<int> attach_fds() const override {
    std::vector<int> fds;
    for (const GroupFolder& folder : group_folders()) fds.push_back(folder.entry.get());
    return fds;
  }

  std::vector<int> exit_fds() const override {
    std::vector<int> fds;
    for (const GroupFolder& folder : group_folders()) {
      if (!folder.exit.is_open()) return {};
      fds.push_back(folder.exit.get());
    }
    return fds;
  }

  int clone_into_fd() const override { return -1; }

  Result<void> move_in(pid_t pid) override {
    for (const GroupFolder& folder : group_folders()) TRY_VOID(move_into(folder, pid));
    return {};
  }

  std::uint64_t observe() override {
    const GroupFolder* folder = folder_with(Controller::memory);
    if (folder == nullptr) return 0;
    const std::string stat = read_control_text(folder->path + "/memory.stat");
    const std::uint64_t shared = counter_in(stat, "shmem");  // is in "cache" too
    const std::uint64_t cache = counter_in(stat, "cache");
    const std::string counter = folder->path + (counts_swap_ ? "/memory.memsw." : "/memory.");
    const std::string highest = counter + "max_usage_in_bytes";
    const std::uint64_t now = read_control_number(counter + "usage_in_bytes");
    peak_.look(now, read_control_number(highest), cache - std::min(cache, shared));
    (void)write_control_file(AT_FDCWD, highest.c_str(), "0");  // the peak starts anew from what is used now
    return now;
  }

  std::uint64_t cpu_ms() const override {
    const GroupFolder* folder = folder_with(Controller::cpuacct);
    return folder == nullptr ? 0 : read_control_number(folder->path + "/cpuacct.usage") / 1'000'000;
  }

  Result<CgroupUsage> usage() override {
    if (group_folders().empty()) return removed_error();
    CgroupUsage usage;
    if (const GroupFolder* folder = folder_with(Controller::memory)) {
      (void)observe();
      usage.memory_peak_bytes = peak_.bytes();
      usage.memory_peak_is_sampled = peak_.is_sampled();
      usage.oom_kills = counter_in(read_control_text(folder->path + "/memory.oom_control"), "oom_kill");
    }
    if (const GroupFolder* folder = folder_with(Controller::cpuacct)) add_cpu_usage(*folder, usage);
    if (const GroupFolder* folder = folder_with(Controller::cpu)) {
      usage.cpu_throttled_ms = counter_in(read_control_text(folder->path + "/cpu.stat"), "throttled_time") / 1'000'000;
    }
    add_task_usage(usage);
    return usage;
  }

 private:
  static Result<void> set_cpu_limit(const GroupFolder& folder, const Limits& limits) {
    const auto written =
        write_control_file(AT_FDCWD, (folder.path + "/cpu.cfs_quota_us").c_str(), fmt::to_string(quota_us(limits)));
    // EINVAL: a group above has a lower quota, and holds the sandbox to that.
    if (written || written.error().value == EINVAL) return {};
    return std::unexpected(limit_error(folder, "cpus", "cpu.cfs_quota_us", written.error().value));
  }

  // cpuacct.usage is exact; the split between user and system is sampled in ticks, so it only gives the proportion.
  static void add_cpu_usage(const GroupFolder& folder, CgroupUsage& usage) {
    const std::uint64_t total_ns = read_control_number(folder.path + "/cpuacct.usage");
    const std::string split = read_control_text(folder.path + "/cpuacct.stat");
    const std::uint64_t user = counter_in(split, "user");
    const std::uint64_t system = counter_in(split, "system");
    const std::uint64_t total_ms = (total_ns + 500'000) / 1'000'000;
    usage.cpu_system_ms = user + system == 0 ? 0 : total_ms * system / (user + system);
    usage.cpu_user_ms = total_ms - usage.cpu_system_ms;
  }

  MemoryPeak peak_;
  bool counts_swap_ = false;
};

class V2Groups final : public Groups {
 public:
  // For clone3: an O_PATH descriptor is enough (clone(2)).
  Result<void> open_folder() {
    GroupFolder& folder = group_folders().front();
    auto opened = open_at(AT_FDCWD, folder.path.c_str(), O_PATH | O_DIRECTORY);
    if (!opened) return folder_error(folder.path, opened.error().value);
    folder.entry = std::move(*opened);
    return {};
  }

  // Whether the parent group has handed its controllers down.
  bool has_controllers(const Limits& limits) const {
    constexpr std::pair<Controller, const char*> kFiles[] = {{Controller::memory, "memory.max"},
                                                             {Controller::cpu, "cpu.max"},
                                                             {Controller::pids, "pids.max"},
                                                             {Controller::io, "io.max"}};
    return std::all_of(std::begin(kFiles), std::end(kFiles), [&](const auto& file) {
      const GroupFolder& folder = group_folders().front();
      if (file.first == Controller::io && !limits_rates(limits)) return true;
      return !folder.controllers.has(file.first) || ::access((folder.path + "/" + file.second).c_str(), F_OK) == 0;
    });
  }

  Result<void> set_limits(const Limits& limits, SwapControl swap_control) {
    if (const GroupFolder* folder = folder_with(Controller::memory)) {
      TRY_VOID(set_limit(*folder, "memory", "memory.max", fmt::to_string(limits.memory.value)));
      if (swap_control == SwapControl::limited) {
        TRY_VOID(set_limit(*folder, "swap", "memory.swap.max", fmt::to_string(limits.swap.value)));
      }
      // Kill the whole sandbox, not just its largest process. Missing before Linux 4.19: then usage() tells.
      (void)write_control_file(AT_FDCWD, (folder->path + "/memory.oom.group").c_str(), "1");
    }
    if (const GroupFolder* folder = folder_with(Controller::pids)) {
      TRY_VOID(set_limit(*folder, "tasks", "pids.max", fmt::to_string(limits.tasks.value)));
    }
    if (const GroupFolder* folder = folder_with(Controller::cpu)) {
      TRY_VOID(set_limit(*folder, "cpus", "cpu.max", fmt::format("{} {}", quota_us(limits), kPeriodUs)));
    }
    if (const GroupFolder* folder = folder_with(Controller::io); folder != nullptr && limits_rates(limits)) {
      return set_rates(*folder, "io.max", [&](const std::string& disk) {
        return fmt::format("{} rbps={} wbps={}", disk, limits.read_rate.value, limits.write_rate.value);
      });
    }
    return {};
  }

  std::vector<int> attach_fds() const override { return {}; }
  std::vector<int> exit_fds() const override { return {}; }
  int clone_into_fd() const override { return group_folders().empty() ? -1 : group_folders().front().entry.get(); }
  Result<void> move_in(pid_t pid) override { return move_into(group_folders().front(), pid); }

  std::uint64_t observe() override {
    if (folder_with(Controller::memory) == nullptr) return 0;
    const std::string& path = group_folders().front().path;
    const std::string stat = read_control_text(path + "/memory.stat");
    const std::uint64_t files = counter_in(stat, "file");
    const std::uint64_t now =
        read_control_number(path + "/memory.current") + read_control_number(path + "/memory.swap.current");
    // memory.peak (Linux 5.19) is of the group's whole life: it tells of the time since the last look when it has
    // risen.
    const std::uint64_t highest = read_control_number(path + "/memory.peak");
    peak_.look(now, highest > highest_before_ ? highest : now, files - std::min(files, counter_in(stat, "shmem")));
    highest_before_ = highest;
    return now;
  }

  std::uint64_t cpu_ms() const override {
    if (group_folders().empty()) return 0;
    return counter_in(read_control_text(group_folders().front().path + "/cpu.stat"), "usage_usec") / 1000;
  }

  Result<CgroupUsage> usage() override {
    if (group_folders().empty()) return removed_error();
    CgroupUsage usage;
    const std::string& path = group_folders().front().path;
    if (folder_with(Controller::memory) != nullptr) {
      (void)observe();
      usage.memory_peak_bytes = peak_.bytes();
      usage.memory_peak_is_sampled = peak_.is_sampled();
      usage.oom_kills = counter_in(read_control_text(path + "/memory.events"), "oom_kill");
    }
    const std::string cpu = read_control_text(path + "/cpu.stat");  // there even without the cpu controller
    usage.cpu_user_ms = (counter_in(cpu, "user_usec") + 500) / 1000;
    usage.cpu_system_ms = (counter_in(cpu, "system_usec") + 500) / 1000;
    usage.cpu_throttled_ms = counter_in(cpu, "throttled_usec") / 1000;
    add_task_usage(usage);
    return usage;
  }

 private:
  MemoryPeak peak_;
  std::uint64_t highest_before_ = 0;
};

Result<GroupFolder> make_group(const GroupBase& base, const std::string& name) {
  const std::string base_folder = base.folder();
  GroupFolder folder{base_folder + "/" + name, base.controllers, Fd()};
  // Another Belljar's sweep may remove the base, found empty, right after it was made: hence the tries.
  int tries = 0;
  while (::mkdir(folder.path.c_str(), 0755) != 0) {
    if (errno != ENOENT || ++tries > kCreateTries) return folder_error(folder.path, errno);
    if (::mkdir(base_folder.c_str(), 0755) != 0 && errno != EEXIST) return folder_error(base_folder, errno);
  }
  return folder;
}

// Moves this process and its children out of the group into a child of it, so that the group may have controllers.
void leave_group(const std::string& group) {
  const std::string own = group + kSupervisorGroup;
  (void)::mkdir(own.c_str(), 0755);
  if (!holds_only_own_processes(group)) return;  // someone came in since: enabling will fail and say why
  for (const pid_t pid : group_processes(group)) {
    (void)write_control_file(AT_FDCWD, (own + "/cgroup.procs").c_str(), fmt::to_string(pid));
  }
}

// Hands the controllers down from the parent to the sandboxes' groups, two levels below.
Result<void> enable_controllers(const CgroupSite& site, const Limits& limits) {
  const GroupBase& base = site.bases.front();
  std::string wanted;
  for (const Controller controller : {Controller::memory, Controller::cpu, Controller::pids, Controller::io}) {
    if (!base.controllers.has(controller) || (controller == Controller::io && !limits_rates(limits))) continue;
    wanted += fmt::format("{}+{}", wanted.empty() ? "" : " ", kControllerNames[static_cast<std::size_t>(controller)]);
  }
  if (site.parent_use == ParentUse::leave_first) leave_group(base.parent);
  for (const std::string& group : {base.parent, base.folder()}) {
    const auto enabled = write_control_file(AT_FDCWD, (group + "/cgroup.subtree_control").c_str(), wanted);
    if (!enabled) {
      return fail(ErrorCode::cannot_enforce, fmt::format("the controllers {} can't be enabled in {}: {}", wanted, group,
                                                         errno_text(enabled.error().value)));
    }
  }
  return {};
}

Result<std::unique_ptr<CgroupDir>> create_v1(const CgroupSite& site, const std::string& name, const Limits& limits) {
  auto groups = std::make_unique<V1Groups>();
  for (const GroupBase& base : site.bases) {
    if (base.controllers == ControllerSet().add(Controller::blkio) && !limits_rates(limits)) continue;
    groups->add(TRY(make_group(base, name)));
  }
  TRY_VOID(groups->open_tasks());
  TRY_VOID(groups->set_limits(limits, site.swap_control));
  return groups;
}

Result<std::unique_ptr<CgroupDir>> create_v2(const CgroupSite& site, const std::string& name, const Limits& limits) {
  auto groups = std::make_unique<V2Groups>();
  groups->add(TRY(make_group(site.bases.front(), name)));
  TRY_VOID(groups->open_folder());
  if (!groups->has_controllers(limits)) TRY_VOID(enable_controllers(site, limits));
  TRY_VOID(groups->set_limits(limits, site.swap_control));
  return groups;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.size() <= 200 && name.find('/') == std::string::npos;
}

// The names of the groups below a base.
std::vector<std::string> groups_below(const std::string& base_folder) {
  std::vector<std::string> names;
  DIR* folder = ::opendir(base_folder.c_str());
  if (folder == nullptr) return names;
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_type == DT_DIR && is_plain_name(entry->d_name)) names.emplace_back(entry->d_name);
  }
  ::closedir(folder);
  return names;
}

}  // namespace

Result<std::unique_ptr<CgroupDir>> create_groups_at(const CgroupSite& site, const std::string& name,
                                                    const Limits& limits) {
  if (site.bases.empty()) return nullptr;
  if (!is_plain_name(name)) return fail(ErrorCode::internal, fmt::format("\"{}\" can't name a control group", name));
  if (site.support.version == CgroupSupport::Version::v2) return create_v2(site, name, limits);
  return create_v1(site, name, limits);
}

std::uint64_t sweep_site(const CgroupSite& site, bool (*is_alive)(const std::string& name)) {
  std::set<std::string> removed;
  for (const GroupBase& base : site.bases) {
    const std::string base_folder = base.folder();
    for (const std::string& name : groups_below(base_folder)) {
      if (is_alive(name)) continue;
      const std::string path = base_folder + "/" + name;
      (void)kill_in_folders({&path, 1}, kKillTimeMax);
      if (remove_folder(path, kRemoveTimeMax) == Removal::done) removed.insert(name);
    }
    (void)::rmdir(base_folder.c_str());  // only when empty
  }
  return removed.size();
}

void lift_cpu_limit(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    (void)write_control_file(AT_FDCWD, (folder + "/cpu.cfs_quota_us").c_str(), "-1");
    (void)write_control_file(AT_FDCWD, (folder + "/cpu.max").c_str(), "max");
  }
}

void remove_cgroup_folders(const std::vector<std::string>& folders) {
  (void)kill_in_folders(folders, kKillTimeMax);
  for (const std::string& folder : folders) {
    if (remove_folder(folder, kRemoveTimeMax) == Removal::done) remove_base_of(folder);
  }
}

}  // namespace belljar
