// What of the caller's own interpreters a sandbox does not have, and how to take it along: --venv PATH.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace belljar {

// The caller's environment variables: getenv(3), or a test's own. Returns null where a name is not set.
using EnvironmentLookup = std::function<const char*(const char* name)>;

// An interpreter that the caller would get, and that lies outside what the image shows of the host.
struct OutsideInterpreter {
  std::string program;   // "python3"
  std::string path;      // the executable
  std::string prefix;    // what --venv wants: the virtual environment, or the folder that holds bin/ and lib/
  std::string found_by;  // "VIRTUAL_ENV", "CONDA_PREFIX" or "PATH"
};

// Asks which `program` ("python3", "node", "perl" ...) the caller has active. Nothing if it is one of the image's own,
// or if there is no prefix that could be mounted (resolve_venv() would refuse it). Looks through the shims of pyenv,
// nodenv and plenv to the version that they would start. Costs a few stat(2) for each folder of PATH.
std::optional<OutsideInterpreter> find_outside_interpreter(std::string_view program, const EnvironmentLookup& lookup);

// One line for the caller, without a prefix: "your python3 is /x/bin/python3, which ...: add --venv /x".
std::string outside_interpreter_hint(const OutsideInterpreter& interpreter);

// A link outside of the mounted folders, through which they are reached, and which must exist inside with the same
// text.
struct VenvLink {
  std::string path;
  std::string text;
};

// What --venv PATH means. All paths are absolute.
struct VenvPlan {
  std::vector<std::string> folders;  // to be mounted read-only at the same path; none lies within another
  std::vector<VenvLink> links;       // to be made in the sandbox, outside of these folders and of /usr; often none
  std::string path_folder;           // goes first on PATH
  std::string virtual_env;           // value of VIRTUAL_ENV; empty where PATH is an interpreter's prefix and no venv
};

// Works out what a virtual environment or an interpreter's prefix needs: itself, and, where its base interpreter lies
// outside /usr, that one's prefix, through any chain of links. A relative path is relative to the working folder.
// Errors: bad_mount, with the reason (no such folder, no bin/, too much of the host: /, /home, your home folder ...).
Result<VenvPlan> resolve_venv(std::string_view path, const EnvironmentLookup& lookup);

}  // namespace belljar
