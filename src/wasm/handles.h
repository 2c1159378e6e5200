// Owners of what the engine's C API gives out.
#pragma once

#include <wasmtime.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

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

// The engine's errors have their causes below them, numbered where there are several: "what: why: why that".
inline std::string one_line(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    if (const std::size_t digits = part.find_first_not_of("0123456789"); digits != 0 && digits != part.npos) {
      if (part.substr(digits).starts_with(": ")) part.remove_prefix(digits + 2);
    }
    if (part.empty() || part == "Caused by:") continue;
    if (!line.empty()) line += ": ";
    line += part;
  }
  return line;
}

inline std::string message_of(const wasm_trap_t* trap) {
  wasm_message_t message;
  wasm_trap_message(trap, &message);
  std::string text = text_of(message);
  wasm_byte_vec_delete(&message);
  return text;
}

}  // namespace belljar::wasm
