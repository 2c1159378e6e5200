"""WSM-08: floods of output, huge writes, bytes that are no text, closed streams, the end of stdin: the record says the same of a
module as of the same program in the container tier."""

from harness import callers, main
from modules import WasmTest, wasm_modules

PROBES = {
    "flood": "static char b[4096]; for (int i = 0; i < 5000; ++i) if (write(1, b, sizeof b) < 0) return 1; return 0;",
    "huge write": "static char b[20000000]; for (size_t at = 0; at < sizeof b;) { ssize_t n = write(1, b + at, sizeof b - at);"
                  " if (n < 0) return 1; at += n; } return 0;",
    "stderr flood": "static char b[3000000]; return write(2, b, sizeof b) < 0;",
    "not utf-8": r'write(1, "ok \xff\xfe \xc3", 7); write(2, "\x80\x00\x1b[31m", 7); return 0;',
    "cut in a character": r'for (int i = 0; i < 600000; ++i) write(1, "\xe2\x82\xac", 3); return 0;',
    "write after close": 'close(1); if (write(1, "x", 1) >= 0) return 1; write(2, "gone", 4); return 0;',
    "close twice": "return close(2) == 0 && close(2) != 0 ? 7 : 1;",
    "stdin to its end": "char c; int n = 0; while (read(0, &c, 1) == 1) ++n; return read(0, &c, 1) == 0 && read(0, &c, 1) == 0 ? n : 99;",
    "no output": "return 0;",
    "bad descriptor": 'return write(99, "x", 1) < 0 && read(99, 0, 1) < 0 ? 0 : 1;',
    "empty writes": 'for (int i = 0; i < 1000; ++i) if (write(1, "", 0)) return 1; return 0;',
}
SAME = ("status", "exit_code", "signal", "reason", "stdout", "stderr", "stdout_base64", "stderr_base64", "stdout_truncated",
        "stderr_truncated", "stdout_bytes_total", "stderr_bytes_total")


class Wsm08(WasmTest):
    def pair(self, body: str, flags: list[str], caller) -> tuple[dict, dict]:
        source = f"#include <unistd.h>\nint main() {{ {body} }}\n"
        program = self.compile_c(source)
        native = self.sandbox(["/data/probe"], [*flags, "--mount", f"{program}:/data/probe"], caller, input=b"seven b")
        module = self.wasm(wasm_modules.from_c(source), flags, caller, input=b"seven b")
        return tuple({key: result.record.get(key) for key in SAME} for result in (native, module))

    def test_positive_control(self) -> None:
        """Records of programs that differ are told apart."""
        native, _ = self.pair('write(1, "a", 1); return 0;', [], callers()[0])
        other, _ = self.pair('write(1, "b", 1); return 0;', [], callers()[0])
        self.assertNotEqual(native, other)

    def test_records_are_the_same(self) -> None:
        for caller in callers():
            for name, body in PROBES.items():
                with self.subTest(caller=caller.name, probe=name):
                    native, module = self.pair(body, [], caller)
                    self.assertEqual(native, module)

    def test_killed_at_the_output_limit(self) -> None:
        native, module = self.pair(PROBES["flood"], ["--on-output-limit", "kill", "--output-limit", "10000"], callers()[0])
        self.assertEqual(module["status"], "output")
        for record in (native, module):  # how much came before the kill differs from run to run
            for key in ("stdout_bytes_total",):
                record.pop(key)
        self.assertEqual(native, module)


if __name__ == "__main__":
    main()
