#include "wasm/settings.h"

#include "wasm/engine/belljar_engine.h"

namespace belljar::wasm {

namespace {

// Given a target the engine takes nothing of this processor for granted.
void compile_for_any_processor(wasm_config_t* config) {
  const ErrorHandle error(wasmtime_config_target_set(config, "x86_64-unknown-linux-gnu"));
  for (const char* const ability :
       {"has_cmpxchg16b", "has_sse3", "has_ssse3", "has_sse41", "has_sse42", "has_popcnt"}) {
    wasmtime_config_cranelift_flag_enable(config, ability);
  }
}

}  // namespace

EngineHandle make_engine(FuelIs fuel, CodeFor code_for, std::size_t stack_bytes) {
  wasm_config_t* const config = wasm_config_new();
  if (code_for == CodeFor::any_processor) compile_for_any_processor(config);
  wasmtime_config_consume_fuel_set(config, fuel == FuelIs::counted);
  // No epochs: they would cost up to half of a module's speed, and the supervisor ends this process at the deadline.
  belljar_config_stack(config, stack_bytes);
  wasmtime_config_cranelift_opt_level_set(config, WASMTIME_OPT_LEVEL_SPEED);
  // Nobody but the engine looks at the stack, and it follows frame pointers.
  wasmtime_config_native_unwind_info_set(config, false);
  return EngineHandle(wasm_engine_new_with_config(config));
}

}  // namespace belljar::wasm
