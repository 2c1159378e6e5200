// Owners of what the engine's C API gives out.
#pragma once

#include <wasmtime.h>

#include <memory>
#include <string>

namespace belljar::wasm {

template <auto Delete>
struct Deleter {
  template <typename T>
  void operator()(T* handle) const {
    Delete(handle);
  }
};

using EngineHandle = std::unique_ptr<wasm_engine_t, Deleter<wasm_engine_delete>>;
using ModuleHandle = std::unique_ptr<wasmtime_module_t, Deleter<wasmtime_module_delete>>;
using StoreHandle = std::unique_ptr<wasmtime_store_t, Deleter<wasmtime_store_delete>>;
using LinkerHandle = std::unique_ptr<wasmtime_linker_t, Deleter<wasmtime_linker_delete>>;
using ErrorHandle = std::unique_ptr<wasmtime_error_t, Deleter<wasmtime_error_delete>>;
using TrapHandle = std::unique_ptr<wasm_trap_t, Deleter<wasm_trap_delete>>;

inline std::string text_of(const wasm_byte_vec_t& bytes) {
  std::string text(bytes.data, bytes.size);
  while (text.ends_with('\0') || text.ends_with('\n')) text.pop_back();
  return text;
}

inline std::string message_of(const wasmtime_error_t* error) {
  wasm_name_t message;
  wasmtime_error_message(error, &message);
  std::string text = text_of(message);
  wasm_byte_vec_delete(&message);
  return text;
}

inline std::string message_of(const wasm_trap_t* trap) {
  wasm_message_t message;
  wasm_trap_message(trap, &message);
  std::string text = text_of(message);
  wasm_byte_vec_delete(&message);
  return text;
}

}  // namespace belljar::wasm
