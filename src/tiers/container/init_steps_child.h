// The steps of init, between clone(2) and execve(2): no allocation, no locks, no logs. A step that fails reports itself
// on the control socket and ends the process, which ends the sandbox.
#pragma once

#include <array>
#include <span>

#include "tiers/container/frames.h"
#include "tiers/container/init_plan_shm.h"

namespace belljar::container {

// Sends a setup_failed frame and exits. `result` is -errno.
[[noreturn]] void give_up(const InitPlan& plan, SetupStep step, int result, int detail = 0);

// give_up() when `result` is negative.
inline int check(const InitPlan& plan, SetupStep step, int result, int detail = 0) {
  if (result < 0) [[unlikely]]
    give_up(plan, step, result, detail);
  return result;
}

// -errno of a call that failed.
int errno_result(long result);

// The descriptors that came with `go`, in the order in which InitPlan counts them.
class Received {
 public:
  std::span<const int> mounts(const InitPlan& plan) const { return {fds, plan.mount_fds}; }
  std::span<const int> script(const InitPlan& plan) const { return {fds + plan.mount_fds, plan.script_fds}; }
  std::span<const int> groups(const InitPlan& plan) const {
    return {fds + plan.mount_fds + plan.script_fds, plan.group_fds};
  }
  std::span<const int> group_exits(const InitPlan& plan) const {
    return {fds + plan.mount_fds + plan.script_fds + plan.group_fds, plan.group_exit_fds};
  }
  std::span<const int> kernel(const InitPlan& plan) const {
    return {fds + plan.mount_fds + plan.script_fds + plan.group_fds + plan.group_exit_fds, plan.kernel_fds};
  }
  std::span<const int> io(const InitPlan& plan) const {
    return {fds + plan.mount_fds + plan.script_fds + plan.group_fds + plan.group_exit_fds + plan.kernel_fds,
            plan.io_fds};
  }

  int fds[kPassedFdsMax];
  unsigned fd_count = 0;
};

// Waits for `expected`; exits when the parent is gone.
void receive_message(const InitPlan& plan, ParentMessage expected, Received* received);

// Makes the new root and changes to it; the host's tree is out of reach afterwards. Waits for `go` on the way, and
// takes the prepared mounts and the script that came with it (or clones the mounts itself, Privilege::user).
void build_root(const InitPlan& plan, Received* received);

// Makes the workspace that the program sees of the folder `mount_fd` (a detached mount), and attaches it at `place`.
// The writable space is mounted at /tmp, and nothing over it yet.
WorkspaceForm mount_workspace(const InitPlan& plan, const InitMount& mount, int mount_fd, int place);

// Sends the supervisor the descriptor by which it reads what the program will have left, and closes the socket for
// that.
void hand_over_space(const InitPlan& plan, int space, WorkspaceForm form);

// Makes the root read-only; the last change to it.
void lock_root(const InitPlan& plan);

// With SandboxSpec::allow: makes the only way out of the network namespace, and hands its sockets over.
void make_egress(const InitPlan& plan);

// What guests of a user-space kernel and its broker share, as init made it; nothing where there is no such kernel.
struct KernelParts {
  int arena = -1;
  int content = -1;
  int readable_cache = -1;  // of contents; neither is open where there is none
  int writable_cache = -1;
  int broker = -1;
  void* shared = nullptr;  // the mapped first part of the arena
  int first_process = -1;  // all others end with it
};

// With a user-space kernel: makes the memory that it shares with its broker, and starts its first process, in a pid
// namespace and an empty root of its own.
KernelParts start_kernel(const InitPlan& plan, const Received& received);

// What of confine() holds for guest processes, which install a filter of their own.
void confine_kernel(const InitPlan& plan);

// Becomes the broker, in place of the program. Returns the errno of a failed exec.
int become_broker(const InitPlan& plan, const KernelParts& parts);

// After the first process has ended: tells the broker, which passes on what was printed before, and ends.
void note_kernel_gone(const KernelParts& parts);

// How the sandbox ended, where the exit of the broker does not tell: fills in the frame, which says exited otherwise.
// And what the writable space held, which is the kernel's own.
void read_kernel_end(const InitPlan& plan, const KernelParts& parts, Frame* frame);

// Rlimits, Landlock, capabilities, identity, no_new_privs and, last, seccomp: everything the program can't undo.
void confine(const InitPlan& plan, const KernelParts& kernel);

// What the program gets as descriptors 0, 1 and 2: the pipes, or three times its terminal.
struct ProgramStreams {
  int in;
  int out;
  int err;
  bool is_terminal;
};

// Makes the terminal, where one is wanted, and sends its other end to the supervisor.
ProgramStreams make_streams(const InitPlan& plan);

// Forks and executes the program; returns its pid. Closes `streams` here.
int start_program(const InitPlan& plan, const ProgramStreams& streams, const KernelParts& kernel);

struct DirectoryEntry {  // getdents64(2)
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t length;
  std::uint8_t type;
  char name[];
};

// Whether a file that is exactly as large as plan.file_size lies where the program can write. Nobody is told of a write
// that was refused for RLIMIT_FSIZE, but what went before it fills the file up to the limit (setrlimit(2)).
bool has_file_at_limit(const InitPlan& plan);

// Holds plan.sampled while the program runs: adds up memory and CPU time of the whole tree from /proc (proc(5)), and
// stops the tree for the part of each period that its quota does not cover. One call, one sample.
class Sampler {
 public:
  Sampler(const SampledLimits& limits, SeenByInit* shared);
  bool is_needed() const { return limits_.memory_bytes > 0 || limits_.millicpus > 0; }
  // Whether the last sample is old enough.
  bool is_due() const;
  enum class Verdict { within, memory_exceeded, blind };
  Verdict sample();
  // The errno of what could not be read, after Verdict::blind.
  int failure() const { return failure_; }
  // When the program has ended and what it started is still there: a look may not have come since it was refused more.
  void count_tasks_at_end();

 private:
  struct Totals {
    std::uint64_t memory_bytes = 0;
    std::uint64_t table_bytes = 0;  // of page tables, a part of memory_bytes
    std::uint64_t cpu_ms = 0;
    std::uint64_t tasks = 0;      // without init
    std::uint64_t processes = 0;  // the same
  };
  struct Seen {
    std::uint64_t pid;
    std::uint64_t start;
    std::uint64_t own_ms;
  };
  struct SeenList {  // by rising pid; more processes than fit are counted in the other way only
    std::array<Seen, 512> processes;
    std::size_t count = 0;
  };

  struct Held {
    std::uint64_t pid = 0;
    std::uint64_t threads = 0;
    std::uint64_t own_bytes = 0;     // anonymous, swapped out ones too
    std::uint64_t shared_bytes = 0;  // resident
    std::uint64_t table_bytes = 0;
    bool is_shown = false;
  };

  void note(int error);
  Held read_held(int folder_fd);
  template <typename Visit>
  void for_each_memory(Visit visit);
  std::uint64_t detached_segment_bytes();
  std::uint64_t nameless_shared_bytes();
  void look_at_nameless();
  Totals add_up();
  void add_times(std::uint64_t pid, const char* stat, std::uint64_t* totals_ms);
  std::uint64_t measure_memory();
  std::optional<std::uint64_t> measure_when_due();
  void see_memory(std::uint64_t bytes);
  bool memory_is_exceeded(const Totals& totals);
  void hold_quota(std::uint64_t cpu_ms, std::uint64_t passed_ms);

  SampledLimits limits_;
  SeenByInit* shared_;
  int proc_fd_ = -1;
  std::uint64_t last_ms_ = 0;          // CLOCK_MONOTONIC at the last sample
  std::uint64_t next_measure_ms_ = 0;  // not before this time
  std::uint64_t nameless_bytes_ = 0;
  std::uint64_t next_nameless_ms_ = 0;  // not before this time
  int failure_ = 0;                     // errno
  int looks_over_limit_ = 0;            // exact measures in a row that were over the limit
  SeenList now_;
  SeenList before_;
  std::size_t next_before_ = 0;
  std::uint64_t watched_ms_ = 0;  // CPU time seen to be used by processes while they lived
  std::uint64_t last_cpu_ms_ = 0;
  std::uint64_t debt_us_ = 0;  // CPU time used beyond the quota
  bool is_stopped_ = false;
};

// Reaps until the program has ended, reports how, and exits.
[[noreturn]] void reap_until_end(const InitPlan& plan, const Received& received, const KernelParts& kernel,
                                 int program);

}  // namespace belljar::container
