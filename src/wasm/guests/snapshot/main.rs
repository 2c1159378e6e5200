//! belljar-snapshot MODULE MEMORY OUT: MODULE with MEMORY, which an instance of it wrote out itself, as its initial memory. Its
//! globals stay as they are: for clang's modules that is the stack pointer, and the snapshot's _start has a stack of its own.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use wasmparser::{ExternalKind, Operator, Parser, Payload, ValType};
use wasmtime_wizer::{InstanceState, SnapshotVal, Wizer};

type Failure = Box<dyn std::error::Error>;

struct State {
    globals: HashMap<String, i32>,
    memory: Vec<u8>,
}

impl InstanceState for State {
    async fn global_get(&mut self, name: &str, _: ValType) -> SnapshotVal {
        SnapshotVal::I32(self.globals[name])
    }

    async fn memory_contents(&mut self, _: &str, contents: impl FnOnce(&[u8]) + Send) {
        contents(&self.memory)
    }
}

/// The exported globals of a module and what they begin with. Wizer has made the mutable ones exports.
fn initial_globals(module: &[u8]) -> Result<HashMap<String, i32>, Failure> {
    let mut values = Vec::new();
    let mut found = HashMap::new();
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::GlobalSection(globals) => {
                for global in globals {
                    values.push(match global?.init_expr.get_operators_reader().read()? {
                        Operator::I32Const { value } => Some(value),
                        _ => None,
                    });
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export?;
                    if export.kind == ExternalKind::Global {
                        let value = values[export.index as usize].ok_or("a global of the module is no i32.const")?;
                        found.insert(export.name.to_string(), value);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Of a future that waits for nothing.
fn result_of<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("State never waits"),
    }
}

fn main() -> Result<(), Failure> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let [module, memory, out] = names.as_slice() else {
        return Err("usage: belljar-snapshot MODULE MEMORY OUT".into());
    };
    let module = std::fs::read(module)?;
    let wizer = Wizer::new();
    let (context, instrumented) = wizer.instrument(&module)?;
    let mut state = State { globals: initial_globals(&instrumented)?, memory: std::fs::read(memory)? };
    std::fs::write(out, result_of(wizer.snapshot(&context, &mut state))?)?;
    Ok(())
}
