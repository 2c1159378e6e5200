// StartPlan: what one sandbox will be. Made by make_plan.cc from a SandboxSpec; init reads a copy (init_plan_shm.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "host/mount.h"
#include "spec/sandbox_spec.h"

namespace belljar::container {

inline constexpr unsigned kSandboxUid = 1000;
inline constexpr unsigned kIdRangeSize = 65536;
inline constexpr const char* kHome = "/tmp/home";
inline constexpr const char* kScriptFolder = "/app";
inline constexpr std::size_t kOwnFoldersMax = 10;

// Who the program is inside.
struct ProgramIds {
  unsigned uid = kSandboxUid;
  unsigned gid = kSandboxUid;
};

enum class Privilege {
  root,  // ids of its own range, idmapped mounts
  user,  // one id, mounts cloned inside the sandbox's own user namespace
};

// One mount of a host folder or file.
struct PlannedMount {
  std::string source;  // absolute, on the host
  std::string target;  // absolute, inside
  Fd opened;           // O_PATH, opened once as the caller; what gets mounted is this
  dev_t device = 0;
  ino_t inode = 0;
  bool is_folder = true;
  std::uint64_t attributes = 0;     // MOUNT_ATTR_*
  bool must_allow_devices = false;  // its copy, for the mount that it is of does not
  bool changes_allowed = false;     // a Landlock rule grants changes below it
  bool is_caller_mount = false;     // mapped to the sandbox's uid rather than its root
  bool is_workspace = false;        // not attached as it is, but seen through an overlay or as a copy
  bool must_be_copied = false;      // of is_workspace: its files can't be shown as the program's own
  unsigned owner_uid = 0;           // of is_workspace: whose files become the program's
  unsigned owner_gid = 0;
};

struct RootLink {
  std::string name;
  std::string target;
};

struct PlannedFile {
  std::string path;
  std::string content;
};

// Limits that init holds itself, where no cgroup does; 0 where one does.
struct SampledLimits {
  std::uint64_t memory_bytes = 0;
  std::uint64_t millicpus = 0;
  std::uint64_t tasks = 0;
};

// What a sandbox with a user-space kernel has besides: the programs of src/tiers/kernel, and what the kernel is told.
struct UserKernel {
  Fd image;           // the kernel's image, executable
  Fd broker;          // the program of that name, executable
  Fd readable_cache;  // of contents (tiers/kernel/content_cache.h); neither is open where there is none
  Fd writable_cache;
  std::uint64_t memory_bytes = 0;
  std::uint64_t tasks = 0;
  unsigned cpus = 1;
  bool traces_calls = false;
};

// A part of this process's memory.
struct MemoryArea {
  char* begin = nullptr;
  std::size_t size = 0;
};

struct StartPlan {
  Privilege privilege = Privilege::user;
  std::string system = "the host's /usr";  // what the program sees, for errors

  // The new root.
  std::vector<PlannedMount> mounts;       // the image first, then the caller's, in order
  std::vector<RootLink> root_links;       // bin -> usr/bin ...
  std::vector<std::string> folders;       // to be made in the new root beside /proc, parents before children
  std::vector<PlannedFile> files;         // small files to be made in the new root
  std::vector<PlannedFile> cover_files;   // files that are there already, and what they show
  std::vector<std::string> hidden_paths;  // shown empty
  std::vector<std::string> sockets;       // of the host's services, in the caller's mounts: shown as empty files
  bool dev_is_mounted = false;            // /dev is one of the mounts; else it is filled from the host's nodes
  std::vector<std::string> own_folders;   // absolute; writable places below the root, made for SandboxSpec::collect
  std::string tmp_size;                   // bytes of the writable tmpfs
  std::string tmp_inodes;

  std::string script_folder = kScriptFolder;  // where no mount of the caller's may be; empty: there is none
  Fd script;                                  // opened as the caller; copied to script_target
  std::string script_target;

  // The program.
  std::vector<std::string> exec_paths;  // tried in order, as execvp(3) does
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string working_folder;
  std::optional<TerminalSpec> terminal;
  std::uint64_t open_files = 0;
  std::uint64_t file_size = 0;  // bytes; 0: none of its own
  int landlock_abi = 0;
  SampledLimits sampled;
  std::optional<UserKernel> user_kernel;

  // The supervisor's own arguments and environment, which init's copy must not show in /proc/1.
  MemoryArea own_arguments;
  MemoryArea own_environment;
};

// How the program sees the workspace; stands beside the writable space that init hands over.
enum class WorkspaceForm : std::uint8_t { none, overlay, copy };

// What the workspace's place in the writable space is called: the upper folder of an overlayfs, or the copy.
inline constexpr const char* kWorkspaceUpper = "workspace";

// What the parent sends on the control socket, in this order; one byte a packet.
enum class ParentMessage : std::uint8_t {
  ids_ready = 1,  // the id maps are written
  go = 2,         // the InitPlan is whole; with the descriptors (SCM_RIGHTS) that it counts
};
inline constexpr unsigned kPassedFdsMax = 200;  // below SCM_MAX_FD, unix(7)

}  // namespace belljar::container
