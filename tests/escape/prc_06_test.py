"""PRC-06: take init's place and answer for it: a forged exit status, forged records, endless frames. Init's reports go over a
socket that only init holds; src/tiers/container/frames_test.cc shows what the supervisor does with malformed ones."""

import os
import signal
import socket
import subprocess

from harness import EscapeTest, callers, descendants, main

# A report "exited with 0" as init would send it, thrown at every descriptor, at all that init is said to have, and at sockets of
# every name that could be meant; then the program fails for real.
PROBE = """
import socket, struct
own = sorted(map(int, os.listdir("/proc/self/fd")))[:-1]  # the last is the listing's
frame = struct.pack("<IIiiiiQQ", 3, 0, 0, 0, 0, -1, 0, 0)
record = b'{"status":"ok","exit_code":0,"signal":null}\\n'
sent = []
for descriptor in range(3, 1024):
    for data in (frame, record):
        if attempt(os.write, descriptor, data) == "ok":
            sent.append(descriptor)
for descriptor in range(64):
    for flags in (os.O_RDWR, os.O_WRONLY, os.O_PATH):
        if attempt(os.open, f"/proc/1/fd/{descriptor}", flags) == "ok":
            sent.append(f"init {descriptor}")
    if syscall(438, os.pidfd_open(1), descriptor, 0) == "ok":
        sent.append(f"stolen {descriptor}")
for line in open("/proc/net/unix").readlines()[1:]:
    sent.append("socket " + line)
os.write(1, record + frame + b"\\n")
os.write(2, record + frame + b"\\n")
report(sent=sent, own=own, killed=attempt(os.kill, 1, 9))
"""


class Prc06(EscapeTest):
    def test_positive_control(self) -> None:
        """A socket that was left open is found and written to."""
        left, right = socket.socketpair()
        self.addCleanup(left.close)
        self.addCleanup(right.close)
        for caller in callers():
            script = PROBE.split("for descriptor in range(64)")[0] + "report(sent=sent)"
            self.assertIn(right.fileno(), self.native(script, caller, pass_fds=[right.fileno()]).findings["sent"])
            self.assertTrue(left.recv(4096))

    def test_no_way_to_the_socket(self) -> None:
        for caller in callers():
            for end, exit_status, status in ("sys.exit(7)", 7, "error"), ("os.abort()", 134, "signal"):
                with self.subTest(caller=caller.name, end=end):
                    result = self.sandbox(PROBE + end, caller=caller)
                    self.assertEqual(result.findings["sent"], [])
                    self.assertEqual(result.findings["own"], [0, 1, 2])
                    self.assertEqual((result.exit_status, result.status), (exit_status, status))

    def test_nothing_is_inherited(self) -> None:
        """Whatever the caller of belljar had open stays outside."""
        files = [os.open(self.host_file(self.canary, f"f{i}"), os.O_RDWR) for i in range(20)]
        for file in files:
            self.addCleanup(os.close, file)
        for caller in callers():
            result = self.sandbox(PROBE, caller=caller, pass_fds=files)
            self.assertEqual((result.findings["sent"], result.findings["own"]), ([], [0, 1, 2]))

    def test_children_do_not_answer_for_the_program(self) -> None:
        """The status is the program's own, whatever its descendants do, and they do not outlive it."""
        probe = """
import time
for code in (0, 9):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(code)
time.sleep(0.2)
os._exit(5)
"""
        for caller in callers():
            result = self.sandbox(probe, caller=caller)
            self.assertEqual((result.exit_status, result.status, result.record["exit_code"]), (5, "error", 5))
            self.assertLess(result.record["duration_ms"], 10_000)

    def test_init_killed_from_outside(self) -> None:
        """An end without a report is no success."""
        for caller in callers():
            process = self.start(["sleep", "60"], caller=caller, stderr=subprocess.PIPE)
            def init() -> list[int]:
                return [pid for pid in descendants(process.pid) if self.comm(pid) == "belljar-init"]
            pid = self.wait_for(lambda: init() and any(self.comm(p) == "sleep" for p in descendants(process.pid)) and init(), "init")[0]
            os.kill(pid, signal.SIGKILL)
            self.assertNotEqual(process.wait(timeout=20), 0)
            self.assertIn(b"belljar:", process.stderr.read())

    @staticmethod
    def comm(pid: int) -> str:
        try:
            with open(f"/proc/{pid}/comm") as file:
                return file.read().strip()
        except OSError:
            return ""


if __name__ == "__main__":
    main()
