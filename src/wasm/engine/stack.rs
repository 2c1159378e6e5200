//! The stack of a guest: the C API has no way to raise the bound that the engine has on it.

use wasmtime::Config;
use wasmtime_c_api::wasm_config_t;

const _: () = assert!(std::mem::size_of::<wasm_config_t>() == std::mem::size_of::<Config>());

/// # Safety
/// `config` must be one of wasm_config_new()'s that no engine has taken yet.
#[no_mangle]
pub unsafe extern "C" fn belljar_config_stack(config: *mut wasm_config_t, bytes: usize) {
    // wasm_config_t is repr(C) and has one field, the configuration.
    let config = &mut *config.cast::<Config>();
    // The second is for guests on stacks of their own, of which there is none here; it bounds the first.
    config.max_wasm_stack(bytes).async_stack_size(bytes);
}
