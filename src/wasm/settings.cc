#include "wasm/settings.h"

#include "wasm/engine/belljar_engine.h"

namespace belljar::wasm {

EngineHandle make_engine(FuelIs fuel, std::size_t stack_bytes) {
  wasm_config_t* const config = wasm_config_new();
  wasmtime_config_consume_fuel_set(config, fuel == FuelIs::counted);
  // No epochs: they would cost up to half of a module's speed, and the supervisor ends this process at the deadline.
  belljar_config_stack(config, stack_bytes);
  wasmtime_config_cranelift_opt_level_set(config, WASMTIME_OPT_LEVEL_SPEED);
  // Nobody but the engine looks at the stack, and it follows frame pointers.
  wasmtime_config_native_unwind_info_set(config, false);
  return EngineHandle(wasm_engine_new_with_config(config));
}

}  // namespace belljar::wasm
