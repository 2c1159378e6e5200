// The container tier: namespaces, cgroups, seccomp and Landlock around a process tree. docs/container-tier.md.
#pragma once

#include "tiers/tier.h"

namespace belljar {

const Tier& container_tier();

// A file of Belljar's own in a sandbox, read-only.
struct SandboxFile {
  Fd opened;           // O_PATH
  std::string path;    // on the host, absolute
  std::string target;  // inside, absolute
};

// A program of Belljar's own, which stands between the caller's and the sandbox: it is all that the sandbox has,
// besides the caller's mounts and the writable space. It has no environment: what the caller's program is given there
// is not for it. SandboxSpec::script goes in by descriptor as ever, and nothing
// else of the caller's program is looked at.
struct OwnProgram {
  std::vector<SandboxFile> files;
  std::string program;                 // inside: one of the files
  std::vector<std::string> arguments;  // the first is its name
  Fd report;                           // for writing; becomes its descriptor 3
  std::uint64_t script_bytes_max = 0;
};

// As Tier::start() of the container tier.
Result<std::unique_ptr<RunningSandbox>> start_own_program(const SandboxSpec& spec, OwnProgram program);

// Where a script goes.
std::string script_target(const SandboxSpec& spec);

namespace container {
// The environment of the caller's program, NAME=value, where it sees nothing of an image or of the network.
std::vector<std::string> environment_of(const SandboxSpec& spec);

struct UserKernel;
// Starts a sandbox of this tier whose program runs on a user-space kernel. `kernel`: its programs, opened.
Result<std::unique_ptr<RunningSandbox>> start_with_kernel(const SandboxSpec& spec, UserKernel kernel);
}  // namespace container

// True while the Belljar process that named these cgroups lives; for sweep_cgroups().
bool is_sandbox_owner_alive(const std::string& cgroup_name);

}  // namespace belljar
