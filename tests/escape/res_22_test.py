"""RES-22: set or stop the clock. The deadline is counted outside, on a clock that nobody sets."""

import time

from harness import callers, main, root, user
from outside import OutsideTest

CLOCKS = """
import struct, time
def write(path, text):
    with open(path, "wb", buffering=0) as file: file.write(text)
second = struct.pack("qq", int(time.time()) + 1000, 0)
report(
    clock_settime=attempt(time.clock_settime, time.CLOCK_REALTIME, time.time() + 1000),
    monotonic=syscall(227, 1, second), settimeofday=syscall(164, second, None),
    adjtimex=syscall(159, bytes(208)), clock_adjtime=syscall(305, 0, bytes(208)),
    time_namespace=syscall(272, 0x80), rtc=attempt(open, "/dev/rtc0", "rb"),
    timens_offsets=attempt(write, "/proc/self/timens_offsets", b"monotonic 9 0"),
)
"""

# Each tries to outlive a deadline of one second.
OUTLIVE = {
    "sleeps": "import time; time.sleep(1000)",
    "stops": "import signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "stops all": "import signal\nfor _ in range(5):\n    if os.fork() == 0: break\nos.kill(0, signal.SIGSTOP)",
    "ignores": "import signal\nfor n in (1, 2, 3, 10, 12, 13, 14, 15, 18, 24): signal.signal(n, signal.SIG_IGN)\n"
               "while True: pass",
    "alarms": "import signal\nsignal.signal(signal.SIGALRM, lambda *_: None)\n"
              "signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-3)\nwhile True: signal.pause()",
    "waits": "r, w = os.pipe(); os.read(r, 1)",
    "stops init": "import signal, time\nfor n in (1, 2, 15, 19, 20, 9):\n    attempt(os.kill, 1, n)\ntime.sleep(1000)",
}


class Res22(OutsideTest):
    def test_clocks(self):
        for caller in callers():
            with self.subTest(caller=caller):
                before = time.time() - time.monotonic()
                findings = self.sandbox(CLOCKS, caller=caller).findings
                self.assertEqual([name for name, answer in findings.items() if answer == "ok"], [])
                self.assertLess(abs(time.time() - time.monotonic() - before), 1)
        # Natively only what changes nothing is tried: to read the clock's state by the same call that sets it.
        harmless = "report(clock_adjtime=syscall(305, 0, bytes(208)))"
        self.assertEqual(self.native(harmless, root() or user()).findings, {"clock_adjtime": "ok"})

    def test_deadlines(self):
        for caller in callers():
            for name, probe in OUTLIVE.items():
                with self.subTest(caller=caller, name=name):
                    start = time.monotonic()
                    result = self.sandbox(probe, ["--timeout", "500ms"], caller)
                    took = time.monotonic() - start
                    self.assertEqual((result.status, result.exit_status), ("timeout", 124))
                    self.assertGreaterEqual(took, 0.5)
                    self.assertLess(took, 5)
                    self.assertGreaterEqual(result.record["duration_ms"], 500)
                    self.assertLess(result.record["duration_ms"], 5000)
                    self.assertEqual(self.observer.leftovers(), {})

    def test_before_the_deadline(self):
        for caller in callers():
            with self.subTest(caller=caller):
                result = self.sandbox("import time; time.sleep(0.3)", ["--timeout", "20s"], caller)
                self.assertEqual(result.status, "ok")
                self.assertGreaterEqual(result.record["duration_ms"], 300)


if __name__ == "__main__":
    main()
