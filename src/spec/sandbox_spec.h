// SandboxSpec: everything that one execution is asked to be. Made by the command line, a policy file or a library
// caller; checked by validate(); carried out by a tier. It names things and opens nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/egress_rule.h"
#include "spec/limits.h"
#include "spec/secret_rule.h"

namespace belljar {

// Whether a run's use is read from the control groups (some 0.1 ms). Of a program that exited with 0, who reads only
// the exit status has no use for it.
enum class Account { always, of_failures };

enum class MountAccess { read_only, read_write };

struct MountSpec {
  std::string source;  // on the host; relative paths are relative to the caller's working folder
  std::string target;  // absolute, inside
  MountAccess access = MountAccess::read_only;

  bool operator==(const MountSpec&) const = default;
};

// Files that the caller gets back once every process of the sandbox is gone (docs/collect.md).
struct CollectSpec {
  std::string source;       // absolute, inside, in the writable space; its parts may hold wildcards (glob(7))
  std::string destination;  // a folder on the host, made when missing; relative to the caller's working folder

  bool operator==(const CollectSpec&) const = default;
};

// Where SandboxSpec::workspace is seen inside.
inline constexpr const char* kWorkspaceTarget = "/workspace";

// Folders of a workspace may be this deep inside each other: each one costs two descriptors while it is read.
inline constexpr unsigned kWorkspaceDepthMax = 100;

enum class ExistingFiles {
  keep,     // what is in the destination already stays; the collected file is left behind, and the record says so
  replace,  // regular files are replaced; links, folders and the rest are never
};

struct EnvironmentVariable {
  std::string name;
  std::string value;

  bool operator==(const EnvironmentVariable&) const = default;
};

enum class OutputPolicy {
  truncate,  // past the output limit, output is read and dropped; the program goes on
  kill,      // past the output limit the sandbox is killed: status "output"
};

enum class StdinSource { inherit, none };

// A terminal of the program's own in place of pipes; its first size.
struct TerminalSpec {
  unsigned short rows = 24;
  unsigned short columns = 80;

  bool operator==(const TerminalSpec&) const = default;
};

// In place of a tier's name: whoever runs the spec chooses one first (tiers/choose.h).
inline constexpr const char* kAutoTier = "auto";

// In SandboxSpec::required: every wall, and every limit that is not off.
inline constexpr const char* kRequireAll = "all";

struct SandboxSpec {
  std::string tier = "container";

  // The image that is the program's system: a name, or a path (is_image_path() in spec/checks.h); empty: the host
  // image.
  std::string image;

  // At most one of these is set; neither only with an image, which then names the program. A script is opened as the
  // caller and copied in; its interpreter comes from its extension or its #! line. `arguments` follow the script, or
  // follow command[0].
  std::string script;
  std::vector<std::string> command;
  std::vector<std::string> script_arguments;

  Limits limits;
  std::vector<EnvironmentVariable> environment;  // beyond PATH, HOME, LANG and TZ; later entries win
  std::vector<MountSpec> mounts;
  std::string workspace;  // a folder of the host, shown at kWorkspaceTarget as a copy that the program may change:
                          // what it changes is kept apart (docs/workspace.md); empty: none
  std::vector<CollectSpec> collect;
  ExistingFiles collect_existing = ExistingFiles::keep;
  std::vector<std::string> hidden_paths;  // absolute, inside the image: shown empty
  std::string venv;                       // a virtual environment or interpreter prefix on the host; empty: none
  std::string workdir;                    // absolute, inside; empty: the workspace, or else HOME
  std::vector<EgressRule> allow;          // what the program can reach on a network; empty: nothing
  std::vector<SecretRule> secrets;        // what is put into its requests outside
  StdinSource stdin_source = StdinSource::inherit;
  OutputPolicy output_policy = OutputPolicy::truncate;
  Account account = Account::always;
  std::optional<TerminalSpec> terminal;  // stdin, stdout and stderr are this; there is no separate stderr then
  bool traces_calls = false;             // the kernel tier prints the program's system calls to its stderr

  // Walls and limits (names as in docs/generated/walls.md) that must be enforced in full, or the run is refused.
  std::vector<std::string> required;

  // Limits that may be held more weakly than in full although they are named. Not those that are required too.
  std::vector<std::string> weaker_accepted;

  bool operator==(const SandboxSpec&) const = default;
};

// Checks everything that can be checked without looking at the host: the tier and the required names are known, limits
// are in range, paths have the form they must have, no two mounts have one target, nothing holds a NUL byte.
Result<void> validate(const SandboxSpec& spec);

}  // namespace belljar
