pub use wasmtime_c_api::*;

mod limits;
mod stack;
