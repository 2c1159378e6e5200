//! A bound on the memory and tables of a store that ends the guest where it is reached: the C API has only one by which
//! memory.grow answers -1, and no way to see that it did.

use wasmtime::{bail, ResourceLimiter, Result};
use wasmtime_c_api::{wasmtime_store_t, WasmtimeStore};

/// Belljar's half of belljar_limits in belljar_engine.h.
#[repr(C)]
pub struct Limits {
    bytes_max: u64,
    /// What all memories and tables have taken.
    bytes: u64,
    /// More was asked for.
    exceeded: bool,
}

const TABLE_ELEMENT_BYTES: u64 = 8;

impl Limits {
    /// Whether the guest may have `desired` in place of `current` bytes. What is past the module's own maximum is
    /// refused as the specification has it.
    fn grow(&mut self, current: u64, desired: u64, own_max: Option<u64>) -> Result<bool> {
        if own_max.is_some_and(|max| desired > max) {
            return Ok(false);
        }
        let more = desired.saturating_sub(current);
        if more > self.bytes_max.saturating_sub(self.bytes) {
            self.exceeded = true;
            bail!("the memory limit is reached");
        }
        self.bytes += more;
        Ok(true)
    }
}

impl ResourceLimiter for Limits {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        self.grow(current as u64, desired as u64, maximum.map(|max| max as u64))
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        let bytes = |elements: usize| (elements as u64).saturating_mul(TABLE_ELEMENT_BYTES);
        self.grow(bytes(current), bytes(desired), maximum.map(bytes))
    }
}

const _: () = assert!(std::mem::size_of::<wasmtime_store_t>() == std::mem::size_of::<WasmtimeStore>());

struct Shared(*mut Limits);
unsafe impl Send for Shared {}
unsafe impl Sync for Shared {}

/// # Safety
/// `limits` must live as long as the store, and only the store's own thread may use it.
#[no_mangle]
pub unsafe extern "C" fn belljar_store_limit(store: *mut wasmtime_store_t, limits: *mut Limits) {
    // wasmtime_store_t is repr(C) and has one field, the store.
    let store = &mut *store.cast::<WasmtimeStore>();
    let shared = Shared(limits);
    store.limiter(move |_| {
        let shared = &shared;
        &mut *shared.0
    });
}
