// What the wasm tier takes of a SandboxSpec, and the engine's job for it.
#pragma once

#include "base/result.h"
#include "spec/sandbox_spec.h"
#include "wasm/job.h"

namespace belljar::wasm {

// Refuses by name what this tier can't do. Errors: usage, cannot_enforce.
Result<void> check_spec(const SandboxSpec& spec);

// All but RunJob::path. Errors: bad_mount, for a mount that no module could reach.
Result<RunJob> plan_run(const SandboxSpec& spec);

}  // namespace belljar::wasm
