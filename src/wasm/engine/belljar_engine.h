// The C half of limits.rs and stack.rs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wasmtime.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct belljar_limits {
  uint64_t bytes_max;  // of all memories and tables together
  uint64_t bytes;      // what they have taken
  bool exceeded;       // more was asked for, and the guest ended by it
} belljar_limits;

// Bounds what the guest of `store` can have. `limits` must outlive the store.
void belljar_store_limit(wasmtime_store_t* store, belljar_limits* limits);

// How much of the stack the guests of an engine may use.
void belljar_config_stack(wasm_config_t* config, size_t bytes);

#ifdef __cplusplus
}
#endif
