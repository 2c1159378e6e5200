"""WSM-03: dodge the time limit from a module. Every way ends at the deadline, and others keep their time."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

from harness import callers, main
from modules import LOOP, WasmTest, wasm_modules

SLEEP = r"""
#include <stdlib.h>
#include <wasi/api.h>
int main(int argc, char** argv) {
  __wasi_subscription_t wait = {.u = {.tag = __WASI_EVENTTYPE_CLOCK, .u.clock = {
      .id = __WASI_CLOCKID_MONOTONIC, .timeout = atoi(argv[1]) * 1000000ull}}};
  __wasi_event_t event;
  size_t count;
  return __wasi_poll_oneoff(&wait, &event, 1, &count);
}
"""
READ = "#include <unistd.h>\nint main() { char c; while (read(0, &c, 1) > 0); return 0; }"
YIELD = '(import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))'
MEMORY = '(memory (export "memory") 1000)'


class Wsm03(WasmTest):
    def ways(self) -> dict[str, tuple[bytes, list[str]]]:
        command = wasm_modules.command
        return {
            "loop": (command(LOOP), []),
            "start function": (wasm_modules.from_wat(
                f'(module (func $s {LOOP}) (start $s) (func (export "_start")))'), []),
            "bulk memory": (command("(loop $a (memory.fill (i32.const 0) (i32.const 1) (i32.const 60000000)) (br $a))",
                                    memory=MEMORY), []),
            "sleep": (wasm_modules.from_c(SLEEP), ["3600000"]),
            "blocking read": (wasm_modules.from_c(READ), []),
            "host calls": (command("(loop $a (drop (call $yield)) (br $a))", YIELD), []),
            "recursion": (command("(call $f (i32.const 40))", more="(func $f (param i32) (if (local.get 0) (then"
                                  " (call $f (i32.sub (local.get 0) (i32.const 1)))"
                                  " (call $f (i32.sub (local.get 0) (i32.const 1))))))"), []),
        }

    def test_positive_control(self) -> None:
        """The same calls end by themselves where they are short."""
        self.assertEqual(self.wasm(wasm_modules.from_c(SLEEP), arguments=["10"]).status, "ok")
        self.assertEqual(self.wasm(wasm_modules.from_c(READ), input=b"abc").status, "ok")
        self.assertEqual(self.wasm(wasm_modules.command("(drop (call $yield))", YIELD)).status, "ok")

    def test_every_way_ends_at_the_deadline(self) -> None:
        for caller in callers():
            for way, (module, arguments) in self.ways().items():
                with self.subTest(caller=caller.name, way=way):
                    read, write = os.pipe()
                    began = time.monotonic()
                    process = caller.popen(self.wasm_line(module, ["--timeout", "700ms"], caller, arguments), stdin=read,
                                           stdout=-1)
                    out = process.communicate(timeout=30)[0]
                    took = time.monotonic() - began
                    for fd in (read, write):
                        os.close(fd)
                    self.assertIn(b'"status":"timeout"', out)
                    self.assertLess(took, 5)

    def test_a_neighbour_keeps_its_time(self) -> None:
        loop = wasm_modules.command(LOOP)
        self.wasm(loop, ["--timeout", "100ms"])
        with ThreadPoolExecutor() as pool:
            busy = pool.submit(self.wasm, loop, ["--timeout", "2s"])
            sleep = self.wasm(wasm_modules.from_c(SLEEP), ["--timeout", "10s"], arguments=["300"])
            self.assertEqual(sleep.status, "ok")
            self.assertLess(sleep.record["duration_ms"], 1500)
            self.assertEqual(busy.result().status, "timeout")


if __name__ == "__main__":
    main()
