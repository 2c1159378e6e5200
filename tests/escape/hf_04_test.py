"""HF-04: overwrite the runtime. A script whose interpreter is /proc/self/exe makes the host's binary run inside; another
process then opens /proc/PID/exe, waits for its end, and writes to the host's file (CVE-2019-5736)."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from harness import EscapeTest, callers, main

# For each pid given: opens its executable while it runs, and writes to that file once it has ended.
OVERWRITE = """
import signal, time
def overwrite(pid):
    file = os.open(f"/proc/{pid}/exe", os.O_RDONLY)
    os.kill(pid, signal.SIGKILL)
    for _ in range(100):
        try:
            os.fchmod(file, 0o777)
            with open(f"/proc/self/fd/{file}", "r+b") as target:
                target.write(b"overwritten")
            return
        except OSError as error:
            if error.errno != errno.ETXTBSY:
                raise
            time.sleep(0.02)
"""

NATIVE = OVERWRITE + """
report(done=attempt(overwrite, int(sys.argv[1])))
"""

# Goes for everything that runs inside, init included.
INSIDE = OVERWRITE + """
report(direct={way: attempt(os.open, f"/proc/1/exe", way) for way in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_PATH)},
       done={pid: attempt(overwrite, pid) for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if pid != os.getpid()},
       self_is=os.readlink("/proc/self/exe"))
"""


def state(path: str) -> tuple:
    status = os.stat(path)
    return hashlib.sha256(Path(path).read_bytes()).hexdigest(), status.st_mode, status.st_uid, status.st_mtime_ns


class Hf04(EscapeTest):
    def own_binary(self, caller):
        """The caller with a binary of their own, which they could write."""
        binary = self.folder / f"belljar-of-{caller}"
        shutil.copyfile(caller.belljar, binary)
        binary.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(binary, caller.uid, caller.uid)
        return str(binary)

    def test_positive_control(self) -> None:
        """Where the executable can be opened, this way of writing to it works."""
        for caller in callers():
            with self.subTest(caller=caller.name):
                victim = self.folder / f"victim-{caller}"
                shutil.copyfile("/usr/bin/sleep", victim)
                victim.chmod(0o755)
                if os.geteuid() == 0:
                    os.chown(victim, caller.uid, caller.uid)
                process = caller.popen([str(victim), "60"], stdout=subprocess.DEVNULL)
                self.addCleanup(process.wait)
                self.wait_for(lambda: os.readlink(f"/proc/{process.pid}/exe") == str(victim), "the victim's start")
                before = state(victim)
                self.assertEqual(self.native(NATIVE, caller, arguments=[str(process.pid)]).findings["done"], "ok")
                self.assertNotEqual(state(victim)[0], before[0])

    def test_everything_that_runs_inside(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                binary = self.own_binary(caller)
                before = state(binary)
                run = caller.run([binary, "run", "--json", self.script(INSIDE)])
                self.assertIn(b'"EACCES"', run.stdout.replace(b"\\", b""))
                self.assertEqual(state(binary), before)

    def test_interpreter_is_the_runtime(self) -> None:
        """The first program of the sandbox is started by init, whose /proc/self/exe is the host's binary."""
        for caller in callers():
            binary = self.own_binary(caller)
            data = self.host_folder(f"data-{caller}", caller)
            (data / "link").symlink_to("/proc/self/exe")
            for interpreter in "/proc/self/exe", "/proc/1/exe", "/proc/thread-self/exe", "/data/link":
                with self.subTest(caller=caller.name, interpreter=interpreter):
                    program = data / "program"
                    program.write_text(f"#!{interpreter}\n")
                    program.chmod(0o755)
                    before = state(binary)
                    run = caller.run([binary, "run", "--mount", f"{data}:/data:rw", "--", "/data/program"])
                    self.assertEqual(run.returncode, 126, run)
                    self.assertIn(b"not executable", run.stderr)
                    self.assertEqual(state(binary), before)
                    again = caller.run([binary, "run", "--", "echo", "fine"])
                    self.assertEqual(again.stdout, b"fine\n")

    def test_ordinary_interpreters(self) -> None:
        for caller in callers():
            data = self.host_folder(f"plain-{caller}", caller)
            program = data / "program"
            program.write_text("#!/bin/sh\necho fine\n")
            program.chmod(0o755)
            self.assertEqual(self.sandbox(["/data/program"], ["--mount", f"{data}:/data"], caller).stdout, "fine\n")


if __name__ == "__main__":
    main()
