// The imports that a module finds here.
#pragma once

#include <wasmtime.h>

#include "wasm/wasi.h"

namespace belljar::wasm {

// Defines every call of WASI preview 1 in `linker`. `wasi` must outlive it.
void define_imports(wasmtime_linker_t* linker, Wasi& wasi);

// Whether define_imports() has a function of this name with this type.
bool has_import(std::string_view module, std::string_view name, const wasm_externtype_t* type);

}  // namespace belljar::wasm
