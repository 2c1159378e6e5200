// The two jobs of belljar-wasm, on the WebAssembly engine.
#pragma once

#include "wasm/job.h"
#include "wasm/report.h"

namespace belljar::wasm {

// Reads the module, confines this process, compiles, and writes the result to standard output.
Report compile(const CompileJob& job);

// Takes the standard streams and the folders of `job`, confines this process, and runs the module. A trap is told on
// standard error too, with its backtrace.
Report run(const RunJob& job);

}  // namespace belljar::wasm
