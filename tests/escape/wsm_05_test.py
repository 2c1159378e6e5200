"""WSM-05: crash or exhaust the engine: malformed, huge and mutated modules, compile bombs, odd calls. Each is an error of that
run alone, in bounded time and memory."""
# ctest: timeout 300

import os
import random
import resource
import subprocess
import time
from pathlib import Path

from harness import BELLJAR, callers, main
from modules import WasmTest, wasm_modules

RENUMBER = r"""
#include <stdio.h>
#include <wasi/api.h>
int main() {
  printf("%d %d %d %d\n", __wasi_fd_renumber(1, 1), __wasi_fd_renumber(3, 3), __wasi_fd_renumber(3, 900),
         __wasi_fd_close(4000000000u));
  return 0;
}
"""
# Addresses and sizes at the ends of what they can be.
BOUNDS = r"""
#include <stdio.h>
#include <wasi/api.h>
#define BAD ((void*)0xfffffff0u)
int main() {
  size_t n;
  __wasi_iovec_t far = {BAD, 64}, wide = {(void*)1024, 0xffffffffu};
  printf("%d %d %d %d %d %d %d\n", __wasi_fd_read(0, &far, 1, &n), __wasi_fd_write(1, (void*)&wide, 1, &n),
         __wasi_fd_write(1, BAD, 0x40000000, &n), __wasi_random_get(BAD, 64), __wasi_args_get(BAD, BAD),
         __wasi_fd_readdir(3, BAD, 64, 0, &n), __wasi_poll_oneoff(BAD, BAD, 4, &n));
  return 0;
}
"""
FAULT = "21"


def patient(seconds: int):
    """The clock of one run of the compiler, and its memory."""
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return limit


class Wsm05(WasmTest):
    def test_positive_control(self) -> None:
        """The shapes are sound where they are small."""
        self.assertEqual(self.wasm(wasm_modules.many_functions(1000)).status, "ok")
        self.assertEqual(self.wasm(wasm_modules.command("", memory='(memory (export "memory") 1) (table 10 funcref)')).status, "ok")

    def test_a_million_functions(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                began = time.monotonic()
                result = self.wasm(wasm_modules.many_functions(1_000_000), caller=caller)
                self.assertIn(result.record["error"]["code"] if result.record["error"] else "ok", ("bad_module", "ok"))
                self.assertLess(time.monotonic() - began, 90)

    def test_one_huge_function(self) -> None:
        body = b"\x00" + b"\x41\x01\x41\x02\x6a\x1a" * 2_000_000 + b"\x0b"
        result = self.wasm(wasm_modules.many_functions(1, body))
        self.assertEqual(result.record["error"]["code"], "bad_module", result)

    def test_a_huge_file(self) -> None:
        path = self.folder / "huge.wasm"
        with open(path, "wb") as file:
            file.truncate(1 << 40)
        path.chmod(0o644)
        for caller in callers():
            run = caller.run([caller.belljar, "run", "--isolation", "wasm", str(path)])
            self.assertEqual((run.returncode, run.stdout), (126, b""), run)
            self.assertIn(b"too large", run.stderr)

    def test_huge_memories_and_tables(self) -> None:
        for name, memory in {"memory": '(memory (export "memory") 65536)',
                             "table": '(memory (export "memory") 1) (table 4294967295 funcref)',
                             "many": '(memory (export "memory") 1)' + " (table 1000000 funcref)" * 90}.items():
            with self.subTest(name):
                result = self.wasm(wasm_modules.command("", memory=memory))
                code = result.record["error"]["code"] if result.record["error"] else None
                self.assertTrue(result.status == "memory" or code == "bad_module", result.record)

    def test_renumbering(self) -> None:
        self.assertEqual(self.wasm(wasm_modules.from_c(RENUMBER)).stdout, "0 0 8 8\n")

    def test_bounds(self) -> None:
        answers = self.wasm(wasm_modules.from_c(BOUNDS)).stdout.split()
        self.assertEqual(answers, [FAULT] * 7)

    def test_mutated_modules(self) -> None:
        """The compiler by itself, without the sandbox around it, for 20 seconds: it says yes or no and never dies."""
        engine = Path(BELLJAR).with_name("belljar-wasm")
        seeds = [wasm_modules.from_c("int main() { return 0; }"),
                 wasm_modules.command("(call_indirect (i32.const 0))", memory='(memory (export "memory") 1 2)',
                                      more="(table 2 funcref) (elem (i32.const 0) $f) (func $f) (data (i32.const 0) \"abc\")"),
                 wasm_modules.many_functions(50)]
        choose = random.Random(20261130)
        path = self.folder / "mutant.wasm"
        until = time.monotonic() + 20
        seen = {0: 0, 1: 0}
        while time.monotonic() < until:
            content = bytearray(choose.choice(seeds))
            for _ in range(choose.randint(1, 8)):
                at = choose.randrange(8, len(content))
                kind = choose.randrange(4)
                if kind == 0:
                    content[at] = choose.randrange(256)
                elif kind == 1:
                    del content[at:at + choose.randint(1, 20)]
                elif kind == 2:
                    content[at:at] = content[at:at + choose.randint(1, 50)]
                else:
                    content[at:at + 5] = b"\xff\xff\xff\xff\x0f"
                if len(content) < 20:
                    break
            path.write_bytes(content)
            read, write = os.pipe()
            run = subprocess.run(["/bin/sh", "-c", 'exec "$0" compile "$1" 0 this 100000000 3>&"$2"',
                                  str(engine), str(path), str(write)], pass_fds=[write], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, timeout=60, preexec_fn=patient(30))
            os.close(write)
            os.close(read)
            self.assertIn(run.returncode, seen, (run, bytes(content)))
            seen[run.returncode] += 1
        self.assertGreater(seen[1], 20)
        self.assertGreater(seen[0], 1)


if __name__ == "__main__":
    main()
