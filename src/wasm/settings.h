// The engine as both jobs have it: what one compiles the other must be able to run.
#pragma once

#include <cstddef>

#include "wasm/handles.h"
#include "wasm/job.h"

namespace belljar::wasm {

// `stack_bytes` is what a module may use of this process's stack.
EngineHandle make_engine(FuelIs fuel, std::size_t stack_bytes);

}  // namespace belljar::wasm
