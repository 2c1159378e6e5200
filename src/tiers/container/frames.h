// What the sandbox's first process (init) says to the supervisor over a SOCK_SEQPACKET pair. One frame a packet, fixed
// size. Init is our own code, but the supervisor treats every frame as hostile: read_frame() checks all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace belljar::container {

// STEP(name, "what init was doing"): where a set-up failed.
#define BELLJAR_SETUP_STEPS(STEP)                                                              \
  STEP(namespaces, "making the network, IPC and UTS namespaces")                               \
  STEP(network, "making the way to the network, which needs nf_tables with NAT in the kernel") \
  STEP(take_ids, "taking the sandbox's ids")                                                   \
  STEP(open_source, "opening a mount source in the sandbox's mount namespace")                 \
  STEP(source_changed, "checking a mount source, which was replaced meanwhile")                \
  STEP(new_proc, "making a new /proc")                                                         \
  STEP(new_root, "making a new root")                                                          \
  STEP(pivot, "changing to the new root")                                                      \
  STEP(receive, "receiving prepared mounts")                                                   \
  STEP(root_entries, "filling the new root")                                                   \
  STEP(mount, "mounting a folder")                                                             \
  STEP(mount_dev, "mounting /dev")                                                             \
  STEP(mount_writable, "mounting the writable space")                                          \
  STEP(workspace, "making the workspace")                                                      \
  STEP(hand_over, "handing the writable space over")                                           \
  STEP(mask_proc, "masking parts of /proc")                                                    \
  STEP(hide_path, "hiding a path")                                                             \
  STEP(enter_cgroup, "entering the control groups")                                            \
  STEP(copy_script, "copying the script in")                                                   \
  STEP(terminal, "making a terminal")                                                          \
  STEP(lock_root, "making the root read-only")                                                 \
  STEP(rlimits, "setting resource limits")                                                     \
  STEP(landlock, "enforcing Landlock rules")                                                   \
  STEP(capabilities, "dropping capabilities")                                                  \
  STEP(identity, "taking the program's identity")                                              \
  STEP(home, "making HOME")                                                                    \
  STEP(working_folder, "entering the working folder")                                          \
  STEP(seccomp, "installing the seccomp filter")                                               \
  STEP(kernel, "starting the user-space kernel")                                               \
  STEP(fork_program, "forking the program")                                                    \
  STEP(sample, "reading what its processes hold")

enum class SetupStep : std::uint32_t {
#define STEP(name, text) name,
  BELLJAR_SETUP_STEPS(STEP)
#undef STEP
      count,
};

const char* setup_step_text(SetupStep step);

// Descriptors that come with one frame.
inline constexpr std::size_t kHandlesMax = 2;

enum class FrameKind : std::uint32_t {
  setup_failed = 1,
  exec_failed = 2,
  exited = 3,
  memory_exceeded = 4,
  terminal = 5,
  handles = 6,
  kernel_stopped = 7,  // the user-space kernel did not end as a program's end makes it
};

// Fixed layout, sent as it lies in memory. Two kinds come with descriptors (SCM_RIGHTS): `terminal` with the
// supervisor's end, `handles` with the writable space (O_PATH) and, where there is one, the listener of
// seccomp_unotify(2).
struct Frame {
  FrameKind kind;
  SetupStep step;                // setup_failed
  std::int32_t errno_value;      // setup_failed, exec_failed
  std::int32_t detail;           // setup_failed: index of the mount or hidden path concerned, else 0
  std::int32_t exit_code;        // exited: 0..255, or -1
  std::int32_t signal;           // exited: 1..64, or -1
  std::uint64_t written_bytes;   // exited: held in the writable space
  std::uint64_t written_inodes;  // exited: files and folders there
  std::uint64_t io_read_bytes;   // exited: rchar and wchar of proc_pid_io(5), of all that init waited for
  std::uint64_t io_written_bytes;
  std::uint32_t io_is_known;  // exited: 1 when these two are
  std::uint32_t bytes_full;   // exited: 1 when the writable space has no block left
  std::uint32_t inodes_full;  // exited: 1 when it has no inode left
  std::uint32_t file_full;    // exited: 1 when the program failed and a file is as large as one may be
  // exited, as a user-space kernel tells them; else 0.
  std::uint32_t tasks_peak;
  std::uint32_t task_refusals;
  std::uint32_t file_refused;  // 1 when a file would have grown larger than one may be
  std::uint32_t left_groups;   // exited: 1 when no process was left and init has moved itself out of the control groups
};

// The frame in `bytes`, or nothing when it isn't one: wrong size, unknown kind, values out of range.
std::optional<Frame> read_frame(std::span<const std::byte> bytes);

}  // namespace belljar::container
