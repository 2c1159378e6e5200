// A tier is one mechanism of isolation. It starts sandboxes; the supervisor watches them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "spec/outcome.h"
#include "spec/sandbox_spec.h"

namespace belljar {

// The host's ends of the program's standard streams. The sandbox holds the other ends and nothing else of the host.
struct HostStreams {
  Fd stdin_write;
  Fd stdout_read;
  Fd stderr_read;
};

// An ending that the tier alone can judge, such as a limit that only it holds.
struct Verdict {
  RunStatus status;
  std::string reason;
};

// How a sandbox ended, as its tier knows it.
struct TierExit {
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::optional<Error> error;      // the program was never started, or the sandbox ended without a report
  bool ended_unreported = false;   // every process was killed at once, from outside
  bool was_tampered_with = false;  // the user-space kernel of the sandbox came to harm
  bool hit_memory_limit = false;
  bool hit_tasks_limit = false;
  bool hit_disk_limit = false;     // bytes of the writable space
  bool hit_inode_limit = false;    // files and folders there
  bool hit_file_limit = false;     // bytes of one file
  bool has_file_at_limit = false;  // one is as large as may be; whether it was to be larger is not known
  std::optional<Verdict> verdict;
  Usage usage;
  std::vector<Denial> denials;
  std::vector<NetworkUse> network;
};

// A folder of the sandbox's own in which its program could write, with what it left there.
struct WritablePlace {
  enum class Kind {
    own,      // nothing else is in it
    overlay,  // the upper folder of an overlayfs over SandboxSpec::workspace: only what differs from it
    copy,     // a copy of SandboxSpec::workspace
  };
  std::string path;  // inside
  Fd folder;         // O_PATH
  Kind kind = Kind::own;
  std::uint64_t host_device = 0;  // of overlay and copy: the folder of the host that it was made from
  std::uint64_t host_inode = 0;
};

// One started sandbox. Its destructor kills everything in it and removes what it left. Should this process be killed, a
// watcher does the same (watcher.h).
class RunningSandbox {
 public:
  virtual ~RunningSandbox() = default;

  virtual HostStreams& streams() = 0;

  // Readable (poll) once no process of the sandbox is left.
  virtual int ended_fd() const = 0;

  // Readable once the sandbox has something to report, which may be before its last process is gone; call
  // read_report() then, until it is complete.
  enum class ReportIs { to_come, complete };
  virtual int report_fd() const = 0;
  virtual ReportIs read_report() = 0;

  // Readable once a system call that is refused waits for its answer; call answer_refusal() then. -1: nobody asks.
  virtual int refusal_fd() const = 0;
  virtual void answer_refusal() = 0;

  // When the program was executed, in microseconds of CLOCK_MONOTONIC; 0 while it was not.
  virtual std::uint64_t started_us() const = 0;

  // What the sandbox has taken so far. Looks at memory too, for its peak (Usage); some 100 us.
  struct Glance {
    std::uint64_t cpu_ms = 0;
    std::uint64_t memory_bytes = 0;  // page cache included
  };
  virtual Glance look() = 0;

  // Readable when something outside without which the sandbox must not go on has ended: its way to the network. -1:
  // there is no such thing.
  virtual int broken_fd() const { return -1; }

  // Kills every process of the sandbox; returns at once. May be called at any time.
  virtual void kill() = 0;

  // Reaps, reads the usage and cleans up. Call once, after ended_fd() became readable.
  virtual TierExit finish() = 0;

  // Where SandboxSpec::collect or ::workspace asked for it: the writable places, which outlive the sandbox by these
  // descriptors; no mount of the caller's is visible below them. Call once, after ended_fd() became readable. Empty
  // where the sandbox ended before it had any; an error where what it handed over is no such thing.
  virtual Result<std::vector<WritablePlace>> take_writable_places() = 0;

  virtual const Isolation& isolation() const = 0;

  // Gives the sandbox up to what cleans up after a killed supervisor: its processes can't be ended from here.
  virtual void abandon() = 0;
};

// A wall or limit of a tier as this host offers it.
enum class WallState { enforced, weaker, missing };
struct WallReport {
  std::string name;
  WallState state;
  std::string why;     // for weaker and missing: the reason on this host
  std::string remedy;  // how to get it
};

class Tier {
 public:
  virtual ~Tier() = default;
  virtual std::string_view name() const = 0;
  virtual std::vector<WallReport> probe() const = 0;

  // Whether this tier can do what the spec asks for, as far as that can be told without a start. The error names what
  // it refuses.
  virtual Result<void> check(const SandboxSpec& spec) const = 0;

  // Does what is done once for a program and takes long, such as compiling it; ends with an error once `cancel_fd` (-1:
  // none) is readable. start() needs no such call before it, but may be slow then.
  virtual Result<void> prepare(const SandboxSpec&, int /*cancel_fd*/) const { return {}; }

  virtual Result<std::unique_ptr<RunningSandbox>> start(const SandboxSpec& spec) const = 0;

  // A run that ends with 0 where the tier works. The error says what this installation lacks, and how to get it: a tier
  // may be left out.
  virtual Result<SandboxSpec> trial() const = 0;
};

// tiers/registry.cc: one row for each tier.
std::span<const Tier* const> tiers();
Result<const Tier*> find_tier(std::string_view name);

}  // namespace belljar
