// The wasm tier: a module in a WebAssembly engine, whose process is in a sandbox of the container tier.
// docs/wasm-tier.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tiers/tier.h"

namespace belljar {

const Tier& wasm_tier();

// Whether the file at `path` is a WebAssembly module, which no other tier runs.
bool is_wasm_module(const std::string& path);

// Removes what runs that were killed have left where compiled modules are kept; returns how many files that were.
std::uint64_t sweep_modules();

// What of this tier is installed beside the command: "wasm-engine", and "wasm-NAME" of each interpreter.
std::vector<std::string> wasm_parts();

}  // namespace belljar
