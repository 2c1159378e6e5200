// The engine as both jobs have it: what one compiles the other must be able to run.
#pragma once

#include <cstddef>

#include "wasm/handles.h"
#include "wasm/job.h"

namespace belljar::wasm {

// `stack_bytes` is what a module may use of this process's stack. What is compiled for any processor, an engine for
// this one loads too, after it has checked that the processor has what the code needs.
EngineHandle make_engine(FuelIs fuel, CodeFor code_for, std::size_t stack_bytes);

}  // namespace belljar::wasm
