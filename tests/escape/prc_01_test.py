"""PRC-01: signal everything: every pid, -1, init; stop init. Only this sandbox may feel it, and its run still ends."""

import os
import signal
import subprocess
import time

from harness import EscapeTest, callers, descendants, main

# argv: the pids to try; none means all of them. With "all", kill(-1) too.
PROBE = """
import signal
own = {os.getpid()}
pids = [int(word) for word in sys.argv[1:] if word != "all"] or range(2, 65536)
reached = [pid for pid in pids if pid not in own and attempt(os.kill, pid, 9) == "ok"]
everything = attempt(os.kill, -1, 9) if "all" in sys.argv else None
stopped = [attempt(os.kill, 1, number) for number in (19, 9, 15, 6, 11)] if "all" in sys.argv else None
report(reached=reached, everything=everything, init=stopped, init_state=content("/proc/1/stat").split()[2:3])
"""

HEARTBEAT = """
import time
while True:
    print("beat", flush=True)
    time.sleep(0.02)
"""


class Prc01(EscapeTest):
    def victim(self, caller) -> subprocess.Popen:
        process = caller.popen(["sleep", "60"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_positive_control(self) -> None:
        """Outside, a process of the same user is reached by its pid, and by -1."""
        for caller in callers():
            victim = self.victim(caller)
            self.assertEqual(self.native(PROBE, caller, arguments=[str(victim.pid)]).findings["reached"], [victim.pid])
            self.assertEqual(victim.wait(timeout=10), -signal.SIGKILL)
            if caller.uid != os.geteuid():  # a user of the test's own: no one else is hit
                victim = self.victim(caller)
                self.native(PROBE, caller, arguments=["all", "999999"])
                self.assertEqual(victim.wait(timeout=10), -signal.SIGKILL)

    def test_nobody_else_is_reached(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                victim = self.victim(caller)
                peer = self.start(HEARTBEAT, caller=caller, stdout=subprocess.PIPE)
                self.assertEqual(peer.stdout.readline(), b"beat\n")
                peers = descendants(peer.pid)
                result = self.sandbox(PROBE, ["--timeout", "20s"], caller, arguments=["all"])
                self.assertEqual(result.findings["reached"], [])
                self.assertEqual(result.findings["everything"], "ESRCH")  # nobody but the sender and init
                self.assertEqual(result.findings["init_state"], ["S"])
                self.assertEqual((result.status, result.exit_status), ("ok", 0))
                self.assertIsNone(victim.poll())
                self.assertIsNone(peer.poll())
                self.assertEqual(descendants(peer.pid), peers)
                os.set_blocking(peer.stdout.fileno(), False)
                peer.stdout.read()
                time.sleep(0.2)
                self.assertIn(b"beat", peer.stdout.read() or b"")

    def test_killing_oneself_is_a_definite_end(self) -> None:
        """Every process of the sandbox kills every other and stops what it can."""
        probe = """
import signal, time
for _ in range(4):
    if os.fork() == 0:
        while True:
            attempt(os.kill, -1, signal.SIGSTOP)
            attempt(os.kill, 1, signal.SIGSTOP)
            attempt(os.kill, -1, signal.SIGKILL)
time.sleep(60)
"""
        for caller in callers():
            with self.subTest(caller=caller.name):
                began = time.monotonic()
                result = self.sandbox(probe, ["--timeout", "3s"], caller)
                self.assertIn((result.status, result.record["signal"]), [("signal", 9), ("timeout", None), ("timeout", 9)])
                self.assertLess(time.monotonic() - began, 10)

    def test_own_children_can_be_signalled(self) -> None:
        probe = """
import signal, subprocess
child = subprocess.Popen(["sleep", "60"])
os.kill(child.pid, signal.SIGSTOP); os.kill(child.pid, signal.SIGCONT); os.kill(child.pid, signal.SIGTERM)
report(ended=child.wait())
"""
        for caller in callers():
            self.assertEqual(self.sandbox(probe, caller=caller).findings, {"ended": -15})


if __name__ == "__main__":
    main()
