// A sandbox's control groups, on cgroup v2, v1 and hybrid hosts, behind one interface.
// cgroups(7); Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/ of the kernel.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "spec/limits.h"
#include "spec/outcome.h"

namespace belljar {

// Which limit this host's cgroups can hold for this user, and why not where they can't.
struct CgroupSupport {
  enum class Version { none, v1, v2 };
  Version version = Version::none;  // v1 on hybrid hosts whose controllers are on v1
  bool memory = false;
  bool swap = false;           // memory.swap.max or memory.memsw; true too where the host has no swap
  bool kernel_memory = false;  // pipes, sockets, page tables and so on count as memory
  bool cpu = false;
  bool tasks = false;
  bool cpu_time = false;    // processor time is counted
  bool read_rate = false;   // of disks
  bool write_rate = false;  // v1 slows no write that goes through the page cache
  // True where more would be held if this user's systemd gave Belljar a group of its own, as in
  // `systemd-run --user --scope -p Delegate=yes belljar ...` (systemd-run(1)).
  bool scope_helps = false;
  std::string why_not;  // one line; empty when all of memory, kernel memory, cpu and tasks are held
};

struct CgroupUsage {
  std::uint64_t cpu_user_ms = 0;
  std::uint64_t cpu_system_ms = 0;
  std::uint64_t cpu_throttled_ms = 0;  // how long the groups had to wait for their quota's next period
  // Anonymous and shared memory, swap, and kernel memory. The page cache of files is left out: the kernel counts it,
  // but drops it when memory is wanted.
  std::uint64_t memory_peak_bytes = 0;
  // There was page cache to be left out: then the peak is as exact as the looks (observe()) were frequent.
  bool memory_peak_is_sampled = false;
  std::uint64_t tasks_peak = 0;  // before Linux 6.11: the highest that any call of usage() saw
  std::uint64_t oom_kills = 0;
  std::uint64_t task_refusals = 0;  // forks refused at the task limit
};

// The groups of one sandbox, for one thread at a time. Its destructor kills what is left in them and removes them.
class [[nodiscard]] CgroupDir {
 public:
  virtual ~CgroupDir() = default;

  // Descriptors into each of which the sandbox's first process writes "0" to move itself in ("tasks" on v1: the only
  // way that skips the global rwsem's grace period). Valid as long as this object. Empty where clone_into_fd() serves.
  virtual std::vector<int> attach_fds() const = 0;

  // Descriptors into each of which init writes "0" to leave again, for where it was before. Empty where that can't be
  // had: on v2, and where the caller may not move a process there.
  virtual std::vector<int> exit_fds() const = 0;

  // A cgroup v2 folder for clone3(2) with CLONE_INTO_CGROUP, or -1.
  virtual int clone_into_fd() const = 0;

  // Moves a process in from outside, where neither of the above could be used in time. May wait some milliseconds for a
  // grace period of the kernel.
  virtual Result<void> move_in(pid_t pid) = 0;

  // The processes inside, as numbers of the caller's pid namespace.
  virtual std::vector<pid_t> processes() const = 0;

  // A look at memory, for the peak (some 100 us). Returns the bytes that the kernel counts now, page cache included.
  virtual std::uint64_t observe() = 0;

  // Processor time used so far.
  virtual std::uint64_t cpu_ms() const = 0;

  // Reads the counters (some 100 us). Valid after the processes have gone too, until remove().
  virtual Result<CgroupUsage> usage() = 0;

  // Kills every process in the groups until none is left or two seconds have passed: by cgroup.kill, or by setting the
  // task limit to 0, so that no fork succeeds any more, and passing over the members. It doesn't reach a process that
  // has not moved itself in yet: its parent kills that one.
  virtual void kill_all() = 0;

  // Removes the groups; called by the destructor too. False when something is still inside.
  virtual bool remove() = 0;

  // What another process needs to clean up after this one was killed: absolute paths of the folders, deepest first.
  virtual std::vector<std::string> folders() const = 0;
};

// Probes the host once per process; cheap (a few opens), no side effects that last.
const CgroupSupport& cgroup_support();

// Whether /sys/fs/cgroup is cgroup v2 alone: then groups are to be made before the clone that enters them. One
// statfs(2).
bool host_has_only_cgroup_v2();

// Makes the groups named `name` below Belljar's own folder ("belljar" below the caller's cgroup in each hierarchy) and
// sets the limits that cgroup_support() says hold. Null (not an error) where support is none. `limits.tasks` counts
// every task in the groups, so a tier adds its own init to the caller's number first. On cgroup v2 the first call may
// move this process into a child of its group, where a delegated group must be emptied to have controllers.
Result<std::unique_ptr<CgroupDir>> create_cgroups(const std::string& name, const Limits& limits);

// Removes groups left by Belljar processes that no longer live: those whose `name` is in the set of sandboxes that
// `is_alive` denies. Kills what runs in them first. Returns the number of sandboxes. A sandbox must count as alive from
// before its create_cgroups() on.
std::uint64_t sweep_cgroups(bool (*is_alive)(const std::string& name));

// Lets the dying have all the processor they need: under its quota, a fork bomb takes long to end. For killed
// sandboxes.
void lift_cpu_limit(const std::vector<std::string>& folders);

// Kills what is left in these folders (as folders() gave them) and removes them. For the watcher.
void remove_cgroup_folders(const std::vector<std::string>& folders);

}  // namespace belljar
