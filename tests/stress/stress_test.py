#!/usr/bin/python3
"""Random work of 4 processes with 4 threads each (stress.c) on the user-space kernel: what it checks holds, it comes to an end,
and the kernel has nothing in use that it had not before.

stress_test.py PROGRAM [SECONDS [SEED]]
"""

import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "integration"))

from harness import Case, main  # noqa: E402

PROGRAM = Path(sys.argv[1]).resolve()
SECONDS = int(sys.argv[2]) if len(sys.argv) > 2 else 10
SEED = sys.argv[3] if len(sys.argv) > 3 else str(int.from_bytes(os.urandom(4), "big"))
del sys.argv[1:]


class Stress(Case):
    def stress(self, tier: str, seconds: int, *first: str):
        self.write("stress", PROGRAM.read_bytes()).chmod(0o755)
        print(f"stress: {tier} tier, {seconds} s, seed {SEED}", flush=True)
        return self.run_in("--isolation", tier, "--mount", f"{self.folder}:/stress", "--timeout", f"{seconds * 2 + 60}s",
                           "--memory", "1G", "--cpus", "2", "--tasks", "256", "--", "/stress/stress", str(seconds), SEED, *first,
                           patience=seconds * 2 + 120)

    def test_the_program_itself(self):
        """On the host's kernel all of its checks hold."""
        ended = self.stress("container", 2)
        self.assertEqual((ended.status, ended.text.splitlines()[-1]), (0, "0 kinds of objects, none left"), str(ended))

    def test_kernel(self):
        self.assert_none_left(self.stress("kernel", SECONDS))

    def test_kernel_without_a_first_round(self):
        """What is made once is made by then on the busiest machine too, where no thread runs before the first round's time is up."""
        self.assert_none_left(self.stress("kernel", 1, "0"))

    def assert_none_left(self, ended):
        self.assertEqual(ended.status, 0, str(ended))
        self.assertRegex(ended.text.splitlines()[-1], r"^[1-9][0-9]* kinds of objects, none left$")


if __name__ == "__main__":
    main()
