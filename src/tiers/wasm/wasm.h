// The wasm tier: a module in a WebAssembly engine, whose process is in a sandbox of the container tier.
// docs/wasm-tier.md.
#pragma once

#include <string>
#include <vector>

#include "tiers/tier.h"

namespace belljar {

const Tier& wasm_tier();

// Whether the spec is of a script that an interpreter of this tier runs, and has nothing that this tier refuses.
bool wasm_runs_script(const SandboxSpec& spec);

// What of this tier is installed beside the command: "wasm-engine", and "wasm-NAME" of each interpreter.
std::vector<std::string> wasm_parts();

}  // namespace belljar
