"""What the cases of the wasm tier share: running a module there, as every caller."""

import json
import sys
import unittest
from pathlib import Path

from harness import BELLJAR, REPOSITORY, Caller, EscapeTest, Result, callers, not_covered

sys.path.insert(0, str(REPOSITORY / "tests" / "modules"))
import wasm_modules  # noqa: E402, F401

IMPORT_EXIT = '(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))'
LOOP = "(loop $again (br $again))"


class WasmTest(EscapeTest):
    def setUp(self) -> None:
        super().setUp()
        if not Path(BELLJAR).with_name("belljar-wasm").exists():
            not_covered("the wasm tier", "belljar-wasm is not built (./dev wasm)")
            raise unittest.SkipTest("belljar-wasm is not built")

    def module(self, content: bytes, name: str = "module.wasm") -> str:
        path = self.folder / name
        path.write_bytes(content)
        path.chmod(0o644)
        return str(path)

    def wasm_line(self, content: bytes, flags: list[str] = (), caller: Caller | None = None,
                  arguments: list[str] = ()) -> list[str]:
        caller = caller or callers()[0]
        return [caller.belljar, "run", "--json", "--isolation", "wasm", *flags, self.module(content), *arguments]

    def wasm(self, content: bytes, flags: list[str] = (), caller: Caller | None = None, arguments: list[str] = (),
             input: bytes | None = None) -> Result:
        """Runs a module in the wasm tier."""
        caller = caller or callers()[0]
        run = caller.run(self.wasm_line(content, flags, caller, arguments), input=input)
        try:
            record = json.loads(run.stdout)
        except ValueError:
            raise AssertionError(f"no result record: {run}") from None
        return Result(run.returncode, record["stdout"], record["stderr"], record)
