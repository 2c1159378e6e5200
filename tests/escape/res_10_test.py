"""RES-10: endless output, on stdout, stderr, both, and to a terminal. It is cut, told, and holds up nothing."""

import json
import os
import pty
import subprocess
import time

from harness import callers, main
from outside import MIB, OutsideTest, memory_of, with_arguments

FLOOD = """
import itertools
fds = [int(digit) for digit in sys.argv[1]]
block = b"yes\\n" * 16384
for fd in itertools.cycle(fds):
    done = 0
    while done < len(block): done += os.write(fd, block[done:])
"""
MEMORY_MAX = 24 * MIB  # of the supervisor, with two streams of 1 MiB kept, and their record


class Res10(OutsideTest):
    def watch(self, process: subprocess.Popen) -> int:
        """Reads nothing; the peak of the supervisor's memory until it has ended."""
        peak = 0
        while process.poll() is None:
            peak = max(peak, memory_of(process.pid))
            time.sleep(0.02)
        return peak

    def test_in_the_record(self):
        for caller in callers():
            for fds in ("1", "2", "12"):
                with self.subTest(caller=caller, fds=fds):
                    out = self.folder / f"out-{caller}"
                    with open(out, "wb") as file:
                        argv = self.command_line(FLOOD, ["--timeout", "1s"], caller, [fds])
                        process = caller.popen(argv, stdout=file, stderr=subprocess.DEVNULL)
                        peak = self.watch(process)
                    record = json.loads(out.read_bytes())
                    self.assertEqual((process.returncode, record["status"]), (124, "timeout"))
                    self.assertLess(peak, MEMORY_MAX)
                    self.assertGreater(peak, 0)
                    for name, fd in (("stdout", "1"), ("stderr", "2")):
                        is_flooded = fd in fds
                        self.assertEqual(record[f"{name}_truncated"], is_flooded)
                        self.assertEqual(len(record[name]), MIB if is_flooded else 0)
                        if is_flooded:
                            self.assertGreater(record[f"{name}_bytes_total"], 4 * MIB)  # it was drained, not held up

    def test_passed_on(self):
        for caller in callers():
            with self.subTest(caller=caller):
                process = self.start(with_arguments(FLOOD, "12"), ["--timeout", "1s", "--output-limit", "100K"], caller,
                                     stdout=-1, stderr=-1)
                out, err = process.communicate(timeout=30)
                self.assertEqual(process.returncode, 124)
                self.assertEqual(len(out), 100 << 10)
                self.assertEqual(err[:100 << 10], b"yes\n" * (25 << 10))
                own = err[100 << 10:].decode()
                for name in ("stdout", "stderr"):
                    self.assertIn(f"{name} was cut at the output limit of 100K", own)
                self.assertLess(len(own), 600)

    def test_to_a_terminal(self):
        for caller in callers():
            with self.subTest(caller=caller):
                ours, theirs = pty.openpty()
                process = self.start(with_arguments(FLOOD, "1"), ["--timeout", "1s", "--output-limit", "100K"], caller,
                                     stdout=theirs, stderr=theirs)
                os.close(theirs)
                seen = bytearray()
                try:
                    while chunk := os.read(ours, 65536):
                        seen += chunk
                except OSError:
                    pass  # EIO: nobody has the other side any more
                os.close(ours)
                process.wait(timeout=30)
                self.assertEqual(process.returncode, 124)
                self.assertIn(b"stdout was cut at the output limit of 100K", seen)
                self.assertLess(len(seen), 200 << 10)

    def test_killed_if_wanted(self):
        for caller in callers():
            with self.subTest(caller=caller):
                flags = ["--timeout", "20s", "--output-limit", "64K"]
                result = self.sandbox(FLOOD, [*flags, "--on-output-limit", "kill"], caller, arguments=["1"])
                self.assertEqual((result.status, result.exit_status), ("output", 124), result)
                self.assertEqual(len(result.stdout), 64 << 10)

    def test_up_to_the_limit(self):
        exact = "sys.stdout.write('x' * int(sys.argv[1])); sys.stdout.flush()"
        for caller in callers():
            with self.subTest(caller=caller):
                for size, is_cut in ((MIB, False), (MIB + 1, True)):
                    result = self.sandbox(exact, caller=caller, arguments=[str(size)])
                    self.assertEqual(result.status, "ok")
                    self.assertEqual(result.record["stdout_truncated"], is_cut)
                    self.assertEqual(result.record["stdout_bytes_total"], size)
                    self.assertEqual(result.stdout, "x" * MIB)
        native = self.native(exact, arguments=[str(MIB + 1)])
        self.assertEqual(len(native.stdout), MIB + 1)


if __name__ == "__main__":
    main()
