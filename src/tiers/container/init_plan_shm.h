// InitPlan: all that init knows, as plain data in memory that the supervisor shares with it. Init is cloned before the
// plan is made, so that it makes namespaces and a root meanwhile; what it needs for that is written before the clone,
// the rest before ParentMessage::go. Both processes have the memory at the same address, so pointers in it hold in
// both. The program never sees it: it loses the mapping when it is executed.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "host/redirect.h"
#include "tiers/container/plan.h"

namespace belljar::container {

struct InitMount {
  const char* source;
  const char* target;
  dev_t device;
  ino_t inode;
  std::uint64_t attributes;
  bool is_folder;
  bool changes_allowed;
  bool is_caller_mount;
  bool is_workspace;
  bool must_be_copied;
};

struct InitLink {
  const char* name;
  const char* target;
};

struct InitFile {
  const char* path;
  std::string_view content;
};

// What init has seen: readable while it runs, and after it was killed.
struct SeenByInit {
  std::atomic<std::uint64_t> program_start_us = 0;  // CLOCK_MONOTONIC when the program had been executed
  // Of all that it has waited for, when the program has ended; getrusage(2).
  std::atomic<std::uint64_t> user_ms = 0;
  std::atomic<std::uint64_t> system_ms = 0;
  // Added up by the sampler.
  std::atomic<std::uint64_t> cpu_ms = 0;
  std::atomic<std::uint64_t> tasks_peak = 0;
  std::atomic<std::uint64_t> memory_peak_bytes = 0;
};

struct InitPlan {
  // Before the clone.
  Privilege privilege = Privilege::user;
  ProgramIds ids;
  cpu_set_t caller_cpus{};  // the supervisor's own affinity
  int control = -1;         // the sandbox's ends of its sockets and pipes
  int stdin_read = -1;
  int stdout_write = -1;
  int stderr_write = -1;
  int report_write = -1;  // with an OwnProgram: becomes its descriptor 3
  int egress_link = -1;   // with SandboxSpec::allow: a socket of the egress process, for the sockets made inside
  std::uint32_t egress_rate = 0;  // connections a second
  unsigned egress_port_count = 0;
  unsigned egress_address_count = 0;
  std::array<std::uint16_t, kEgressPortsMax> egress_ports{};
  std::array<host::RedirectAddress, kEgressLiteralsMax> egress_addresses{};
  int space_link =
      -1;  // with SandboxSpec::collect or ::workspace: a socket on which init hands its writable space over

  // Before `go`: see StartPlan, whose members these are.
  std::span<const InitMount> mounts;
  std::span<const InitLink> root_links;
  std::span<const char* const> folders;
  std::span<const InitFile> files;
  std::span<const InitFile> cover_files;
  std::span<const char* const> hidden_paths;
  std::span<const char* const> sockets;
  std::span<const char* const> own_folders;
  bool dev_is_mounted = false;
  const char* tmp_size = nullptr;
  const char* tmp_inodes = nullptr;
  const char* script_target = nullptr;
  std::span<const char* const> exec_paths;
  char* const* arguments = nullptr;  // null-terminated, as execve(2) takes them
  char* const* environment = nullptr;
  const char* working_folder = nullptr;
  std::optional<TerminalSpec> terminal;
  std::uint64_t open_files = 0;
  std::uint64_t file_size = 0;
  int landlock_abi = 0;
  SampledLimits sampled;
  std::uint64_t kernel_memory_bytes = 0;  // of a user-space kernel: see UserKernel
  std::uint64_t kernel_tasks = 0;
  unsigned kernel_cpus = 0;
  bool kernel_traces_calls = false;
  MemoryArea own_arguments;
  MemoryArea own_environment;

  // How many descriptors come with `go`, in this order.
  unsigned mount_fds = 0;       // one for each of `mounts` (Privilege::root)
  unsigned script_fds = 0;      // the script, if there is one
  unsigned group_fds = 0;       // cgroup files through which init enters
  unsigned group_exit_fds = 0;  // and those through which it leaves
  unsigned kernel_fds = 0;      // with a user-space kernel: its image and its broker, and its cache twice
  unsigned io_fds = 0;          // proc_pid_io(5) of itself alone and with its children, to read but not to open

  mutable SeenByInit seen;  // init's to write
};

// Runs as pid 1 of the sandbox, from clone to exit.
[[noreturn]] void init_main(const InitPlan& plan);

}  // namespace belljar::container
