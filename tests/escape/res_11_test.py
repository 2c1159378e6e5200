"""RES-11: a line of 1 GiB, 1 GiB of NUL bytes, bytes written one by one."""

import time
import json

from harness import callers, main, root
from outside import MIB, OutsideTest, memory_of, with_arguments

GIANT = """
byte, size = sys.argv[1].encode("latin-1"), int(sys.argv[2])
block = byte * (1 << 20)
left = size
while left > 0: left -= os.write(1, block[:left])
"""

SINGLE = """
pieces = "aä€\\U0001f600".encode()
for number in range(int(sys.argv[1])): os.write(1, pieces[number % 10:number % 10 + 1])
"""


class Res11(OutsideTest):
    def bounded(self, probe: str, caller, flags=()) -> dict:
        """The record; the supervisor's memory was watched meanwhile."""
        out = self.folder / "out.json"
        peak = 0
        with open(out, "wb") as file:
            process = caller.popen(self.command_line(probe, ["--timeout", "60s", *flags], caller), stdout=file)
            while process.poll() is None:
                peak = max(peak, memory_of(process.pid))
                time.sleep(0.02)
        self.assertGreater(peak, 0)
        self.assertLess(peak, 24 * MIB)
        return json.loads(out.read_bytes())

    def test_one_line(self):
        caller = root() or callers()[0]
        for byte in ("x", "\0"):
            with self.subTest(byte=byte):
                record = self.bounded(with_arguments(GIANT, byte, str(1 << 30)), caller)
                self.assertEqual(record["status"], "ok")
                self.assertEqual(record["stdout_bytes_total"], 1 << 30)
                self.assertTrue(record["stdout_truncated"])
                self.assertEqual(record["stdout"], byte * MIB)

    def test_one_line_as_a_user(self):
        caller = callers()[-1]
        record = self.bounded(with_arguments(GIANT, "x", str(100 * MIB)), caller)
        self.assertEqual((record["status"], record["stdout_bytes_total"]), ("ok", 100 * MIB))

    def test_single_bytes(self):
        for caller in callers():
            with self.subTest(caller=caller):
                record = self.bounded(with_arguments(SINGLE, "300000"), caller, ["--output-limit", "100001"])
                self.assertEqual(record["status"], "ok")
                self.assertEqual(record["stdout_bytes_total"], 300000)
                # 1, 2, 3 and 4 bytes in turn: the cut is before the character that doesn't fit.
                self.assertEqual(record["stdout"], "aä€\U0001f600" * 10000 + "a")
        native = self.native(SINGLE, arguments=["30"])
        self.assertEqual(native.stdout, "aä€\U0001f600" * 3)


if __name__ == "__main__":
    main()
