// The last step before a module is touched: the smallest system call filter, over the container tier's.
#pragma once

#include "seccomp/filter.h"

namespace belljar::wasm {

// Ends the process where the filter can't be installed.
void confine_self(const CompiledProfile& profile);

}  // namespace belljar::wasm
