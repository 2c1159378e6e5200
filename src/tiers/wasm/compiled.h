// The compiled form of a module, from the cache or made anew.
#pragma once

#include "base/result.h"
#include "spec/sandbox_spec.h"
#include "tiers/container/container.h"
#include "wasm/job.h"

namespace belljar::wasm {

// belljar-wasm, and where it is seen in a sandbox. Errors: host_unsupported, where this installation lacks it.
Result<SandboxFile> open_engine();

// Compiles the module at `path` in a sandbox of its own where the cache lacks it. What comes back is to be seen at
// `target`. Errors: bad_module and its kin, with a line that begins with the path.
// Without prepare_module() before it, it may take that long.
Result<SandboxFile> compiled_module(const std::string& path, FuelIs fuel, std::string target);

// Has the module compiled where the cache lacks it: at most a minute, or until `cancel_fd` is readable, which is an
// error too.
Result<void> prepare_module(const std::string& path, FuelIs fuel, int cancel_fd);

}  // namespace belljar::wasm
