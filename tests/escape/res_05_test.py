"""RES-05: creep past the memory limit, slowly, where there is swap. Memory and swap together are limited."""

import os
import subprocess
from pathlib import Path

from harness import callers, main, not_covered, root
from outside import MIB, OutsideTest, group_value, limits, sandbox_groups

CREEP = """
import time
held = []
for step in range(int(sys.argv[1])):
    held.append(os.urandom(1 << 20))  # nothing that compresses away
    print("held", step + 1, flush=True)
    time.sleep(0.001)
report(held=len(held))
"""


class Res05(OutsideTest):
    def swap_on(self) -> bool:
        """Makes 200 MiB of swap for this test, where that is allowed."""
        area = self.folder / "swap"
        with open(area, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 200 * MIB)
        area.chmod(0o600)
        if subprocess.run(["mkswap", area], capture_output=True).returncode != 0:
            return False
        if subprocess.run(["swapon", area], capture_output=True).returncode != 0:
            return False
        self.addCleanup(subprocess.run, ["swapoff", area], check=True)
        return True

    def test_slowly(self):
        for caller in callers():
            with self.subTest(caller=caller):
                self.assertEqual(self.native(CREEP, caller, arguments=["400"]).findings, {"held": 400})
                result = self.sandbox(CREEP, limits(caller, memory="256M"), caller, arguments=["400"])
                self.assertEqual(result.status, "memory", result)
                self.assertEqual(result.exit_status, 124)
                held = int(result.stdout.split("held ")[-1])
                self.assertLessEqual(held, 256 if caller.uid == 0 else 300)
                self.assertGreater(held, 200)
                self.assertIn("memory limit of 256M", result.record["reason"])
                self.assertEqual(self.sandbox(CREEP, limits(caller, memory="256M"), caller, arguments=["200"]).findings,
                                 {"held": 200})

    def test_with_swap(self):
        caller = root()
        if caller is None:
            return
        if Path("/proc/swaps").read_text().count("\n") < 2 and not self.swap_on():
            not_covered("a limit that holds where there is swap", "this host has no swap, and won't take any")
        swapped_before = swap_used()
        result = self.sandbox(CREEP, limits(caller, memory="64M"), caller, arguments=["200"])
        self.assertEqual(result.status, "memory", result)
        self.assertLessEqual(int(result.stdout.split("held ")[-1]), 64)
        self.assertLess(swap_used() - swapped_before, 64 * MIB)

    def test_the_limit_counts_swap(self):
        caller = root()
        if caller is None:
            return
        process = self.start(["sleep", "30"], limits(caller, memory="64M"), caller)
        self.wait_until_running(process)
        self.wait_for(sandbox_groups, "the control groups")
        if any((group / "memory.swap.max").exists() for group in sandbox_groups()):
            self.assertEqual(group_value("memory.swap.max"), 0)
        else:
            self.assertEqual(self.wait_for(lambda: group_value("memory.memsw.limit_in_bytes"), "the limit"), 64 * MIB)


def swap_used() -> int:
    values = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return (int(values["SwapTotal"].split()[0]) - int(values["SwapFree"].split()[0])) * 1024


if __name__ == "__main__":
    main()
