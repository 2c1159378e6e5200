"""CLN-07: processes that resist removal: traced, frozen, chains of vfork, stuck on a pipe, holding deleted files."""

import ctypes
import os
import signal
import subprocess
from pathlib import Path

from harness import callers, main, not_covered
from outside import GROUPS, OutsideTest, alive_below

CHAIN = r"""
#include <signal.h>
#include <unistd.h>
int main(void) {  // every parent waits in the kernel, without a signal that could end its wait but SIGKILL
  for (int depth = 0; depth < 100; ++depth) {
    pid_t pid = vfork();
    if (pid < 0) break;
    if (pid > 0) _exit(0);
  }
  write(1, "up\n", 3);
  for (;;) pause();
}
"""

HOLDERS = """
import mmap, signal, time
held = []
for number in range(20):
    path = f"/tmp/{number}"
    with open(path, "w+b") as file:
        file.truncate(1 << 20)
        area = mmap.mmap(file.fileno(), 1 << 20); area[:] = bytes(1 << 20)
        held.append((area, os.dup(file.fileno())))
    os.unlink(path)
os.mkdir("/tmp/gone"); os.chdir("/tmp/gone"); os.rmdir("/tmp/gone")
os.mkfifo("/tmp/fifo")
for _ in range(5):
    if os.fork() == 0: os.open("/tmp/fifo", os.O_WRONLY)  # waits for a reader for ever
print("up", flush=True)
time.sleep(1000)
"""

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_O_EXITKILL, PTRACE_O_TRACEEXIT = 0x4206, 0x4207, 1 << 20, 0x40


class Cln07(OutsideTest):
    def started(self, probe, caller, *flags: str):
        process = self.start(probe, ["--timeout", "3s", *flags], caller, stdout=-1, stderr=-1)
        self.assertEqual(process.stdout.readline(), b"up\n")
        init, _ = self.wait_until_running(process)
        return process, init

    def assert_ends(self, process) -> None:
        self.assertEqual(process.wait(timeout=15), 124)
        self.assertEqual(self.observer.leftovers(), {})

    def test_a_chain_of_vforks(self):
        program = self.compile_c(CHAIN)
        for caller in callers():
            with self.subTest(caller=caller):
                process, _ = self.started(["/chain"], caller, "--mount", f"{program}:/chain")
                self.assert_ends(process)

    def test_holders(self):
        for caller in callers():
            with self.subTest(caller=caller):
                process, _ = self.started(HOLDERS, caller)
                self.assert_ends(process)

    def test_traced_from_outside(self):
        """A debugger of the host's stops them all; the end comes all the same."""
        libc = ctypes.CDLL(None, use_errno=True)
        for caller in callers():
            with self.subTest(caller=caller):
                process, init = self.started(HOLDERS, caller)
                traced = [pid for pid in alive_below(init) if libc.ptrace(PTRACE_SEIZE, pid, None, None) == 0]
                if not traced:
                    not_covered("traced processes", "this test may not trace")
                for pid in traced:
                    libc.ptrace(PTRACE_INTERRUPT, pid, None, None)
                # To the kernel an end is complete when the tracer has been told of it.
                def told():
                    for pid in list(traced):
                        try:
                            ended, status = os.waitpid(pid, os.WNOHANG | 0x40000000)  # __WALL
                            if ended and not os.WIFSTOPPED(status):
                                traced.remove(pid)
                        except ChildProcessError:
                            traced.remove(pid)
                    return process.poll() is not None

                self.wait_for(told, "the end", 15)
                self.assertEqual(process.returncode, 124)
                self.assert_nothing_left()

    def test_frozen(self):
        """In a frozen group nothing runs, nor dies. What thaws it later finds it killed."""
        group = freezer()
        if group is None:
            return not_covered("frozen groups", "this host has no freezer that this test may use")
        for caller in callers():
            with self.subTest(caller=caller):
                process, init = self.started(HOLDERS, caller)
                frozen = group / f"belljar-test-frozen-{process.pid}"
                frozen.mkdir()
                try:
                    for pid in alive_below(init):
                        (frozen / "cgroup.procs").write_text(str(pid))
                    (frozen / "freezer.state").write_text("FROZEN")
                    # v1's freezer holds even SIGKILL back: belljar waits, past its deadline.
                    with self.assertRaises(subprocess.TimeoutExpired):
                        process.wait(timeout=4)
                finally:
                    (frozen / "freezer.state").write_text("THAWED")
                self.assert_ends(process)
                self.wait_for(lambda: not (frozen / "cgroup.procs").read_text(), "the frozen group to empty", 5)
                frozen.rmdir()

    def test_natively_the_chain_waits(self):
        process = callers()[0].popen([self.compile_c(CHAIN)], stdout=-1)
        self.assertEqual(process.stdout.readline(), b"up\n")
        self.assertEqual(len(alive_below(process.pid)), 100)
        for pid in [process.pid, *alive_below(process.pid)]:
            os.kill(pid, signal.SIGKILL)
        process.communicate()
        for pid in [pid for pid in alive_below() if "probe" in Path(f"/proc/{pid}/comm").read_text()]:
            os.kill(pid, signal.SIGKILL)


def freezer() -> Path | None:
    return next((group for group in GROUPS if (group / "freezer.state").exists()), None)


if __name__ == "__main__":
    main()
