# ctest: serial
"""ENV-06: have the host write a core file: crash with secrets in memory and RLIMIT_CORE changed. A limit of 0 stops files, but
not a core_pattern that is a pipe: the kernel starts its program all the same (core(5)). Only a limit of 1 stops both, so it must
neither be raised nor lowered."""

import os
import time
from pathlib import Path

from harness import PYTHON, EscapeTest, callers, main, not_covered

PATTERN = Path("/proc/sys/kernel/core_pattern")

# Crashes with the canary in memory, after trying to change the limit.
CRASH = """
import resource, signal
secret = (sys.argv[1] + "-in-memory ").encode() * 100000
limits = set()
for soft, hard in ((-1, -1), (1 << 30, 1 << 30), (4096, 4096), (0, 1), (0, 0)):
    attempt(resource.prlimit, 0, resource.RLIMIT_CORE, (soft, hard))
    attempt(resource.setrlimit, resource.RLIMIT_CORE, (soft, hard))
    syscall(160, resource.RLIMIT_CORE, (ctypes.c_ulong * 2)(soft, hard))
    limits.add(resource.getrlimit(resource.RLIMIT_CORE))
_libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE
report(limits=sorted(limits))
os.kill(os.getpid(), int(sys.argv[2])) if sys.argv[2] != "11" else ctypes.string_at(0)
"""

# What the kernel would start as root on the host, with the core on its standard input.
COLLECTOR = """#!/bin/sh
cat > {folder}/core-of-"$1"
chmod 644 {folder}/core-of-"$1"
"""


class Env06(EscapeTest):
    def test_no_file(self) -> None:
        for caller in callers():
            work = self.host_folder(f"work-{caller}", caller)
            for number in 11, 6, 3:
                with self.subTest(caller=caller.name, signal=number):
                    flags = ["--mount", f"{work}:/work:rw", "--workdir", "/work"]
                    result = self.sandbox(CRASH, flags, caller, arguments=[self.canary, str(number)], cwd=work)
                    self.assertEqual(result.findings["limits"], [[1, 1]])
                    self.assertEqual((result.status, result.record["signal"], result.exit_status), ("signal", number, 128 + number))
                    self.assertEqual(os.listdir(work), [])

    def test_file_control(self) -> None:
        """The same crash outside writes one, where the host's pattern is a plain file name."""
        if PATTERN.read_text().strip() != "core" or Path("/proc/sys/kernel/core_uses_pid").read_text().strip() != "0":
            return not_covered("ENV-06's control with a file", "this host's core_pattern is not `core`")
        caller = callers()[0]
        work = self.host_folder("work", caller)
        self.native(CRASH, caller, arguments=[self.canary, "11"], cwd=work)
        if not os.listdir(work):
            return not_covered("ENV-06's control with a file", "this host writes no core file natively either; the pipe has its control")
        self.assertEqual(os.listdir(work), ["core"])
        self.assertIn((self.canary + "-in-memory").encode(), (work / "core").read_bytes())

    def test_no_pipe(self) -> None:
        if not os.access(PATTERN, os.W_OK) or os.geteuid() != 0:
            return not_covered("ENV-06 with a core_pattern that is a pipe", "it can't be set here")
        collector = self.folder / "collector"
        collector.write_text(COLLECTOR.format(folder=self.folder))
        collector.chmod(0o755)
        before = PATTERN.read_text()
        self.addCleanup(PATTERN.write_text, before)
        PATTERN.write_text(f"|{collector} %p")
        for caller in callers():
            with self.subTest(caller=caller.name):
                # The control: a limit of 0 does not stop the pipe.
                victim = self.script("import ctypes, sys; secret = [sys.argv[1] + str(i) for i in range(100)]; ctypes.string_at(0)",
                                     tools="")
                caller.run(["sh", "-c", 'ulimit -c 0; exec "$@"', "sh", PYTHON, victim, self.canary])
                self.wait_for(self.cores, "the control's core")[0].unlink()
                for number in 11, 6:
                    result = self.sandbox(CRASH, caller=caller, arguments=[self.canary, str(number)])
                    self.assertEqual((result.status, result.record["signal"]), ("signal", number))
                for command in ["sh", "-c", "kill -SEGV $$"], ["sh", "-c", "ulimit -c 0; sh -c 'kill -SEGV $$'"]:
                    self.sandbox(command, ["-e", f"SECRET={self.canary}"], caller)
                time.sleep(0.3)
                self.assertEqual(self.cores(), [])

    def test_programs_that_switch_cores_off(self) -> None:
        """Agents that hold keys end with an error where they can't."""
        probe = """
import resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
report(files=resource.getrlimit(resource.RLIMIT_NOFILE), shell=os.system("ulimit -c 0"))
"""
        for caller in callers():
            self.assertEqual(self.sandbox(probe, caller=caller).findings, {"files": [64, 64], "shell": 0})

    def cores(self) -> list[Path]:
        """Those of this test; other programs of the host may crash too."""
        return [path for path in self.folder.glob("core-of-*") if self.canary.encode() in path.read_bytes()]


if __name__ == "__main__":
    main()
