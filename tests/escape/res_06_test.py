"""RES-06: more processor time than the quota, by threads, priorities, scheduling classes and other processors."""

from harness import callers, main, not_covered, root, user
from outside import GROUPS, OutsideTest, limits

SPIN = """
import time, threading
try: os.sched_setaffinity(0, range(256))
except OSError: pass
seconds = float(sys.argv[1])
if sys.argv[2] == "threads":
    # No bytecode, so that the interpreter's lock doesn't hold them back.
    import hashlib
    until = time.monotonic() + seconds
    def work():
        while time.monotonic() < until: hashlib.pbkdf2_hmac("sha256", b"", b"", 20000)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
else:
    # Processes that live shortly and that nobody waits for: their time must count all the same.
    import signal
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        r, w = os.pipe()
        for _ in range(4):
            if os.fork() == 0:
                end = time.process_time() + 0.05
                while time.process_time() < end and time.monotonic() < until: pass
                os._exit(0)
        os.close(w); os.read(r, 1); os.close(r)
report(ended=True)
"""

PRIORITY = """
import struct
class attributes(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("policy", ctypes.c_uint32), ("flags", ctypes.c_uint64),
                ("nice", ctypes.c_int32), ("priority", ctypes.c_uint32)] + [(n, ctypes.c_uint64) for n in "abc"]
deadline = attributes(48, 6, 0, 0, 0, 10**6, 10**7, 10**7)
def lock_all():
    if _libc.mlockall(3): raise OSError(ctypes.get_errno(), "mlockall")
report(
    nice=attempt(os.setpriority, os.PRIO_PROCESS, 0, -20),
    fifo=attempt(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(50)),
    round_robin=attempt(os.sched_setscheduler, 0, os.SCHED_RR, os.sched_param(50)),
    deadline=syscall(314, 0, ctypes.byref(deadline), 0),
    realtime_io=syscall(251, 1, 0, 1 << 13 | 0),
    lower=attempt(os.setpriority, os.PRIO_PROCESS, 0, 5),
    batch=attempt(os.sched_setscheduler, 0, os.SCHED_BATCH, os.sched_param(0)),
    idle_io=syscall(251, 1, 0, 3 << 13 | 0),
)
"""


def cpu_seconds_of_groups() -> float:
    """Processor time of this test and all below it; 0 where it has no group of its own."""
    for group in GROUPS:
        usage = group / "cpuacct.usage"
        if usage.exists() and group.name.startswith("belljar-test-"):
            return int(usage.read_text()) / 1e9
    return 0


class Res06(OutsideTest):
    def cpu_ms(self, result) -> int:
        usage = result.record["usage"]
        return usage["cpu_user_ms"] + usage["cpu_system_ms"]

    def test_threads(self):
        caller = root()
        if caller is not None:
            result = self.sandbox(SPIN, limits(caller, cpus="0.5"), caller, arguments=["2", "threads"])
            self.assertEqual(result.status, "ok", result)
            self.assertLess(self.cpu_ms(result), 0.5 * result.record["duration_ms"] * 1.1 + 150)

    def test_short_lives(self):
        for caller in callers():
            with self.subTest(caller=caller):
                flags = limits(caller, cpus="0.5")
                result = self.sandbox(SPIN, flags, caller, arguments=["2", "short"])
                self.assertEqual(result.status, "ok", result)
                cores = 0.5 if flags else 1.0
                self.assertLess(self.cpu_ms(result), cores * result.record["duration_ms"] * 1.15 + 200)

    def test_without_groups(self):
        """By duty cycle. The judge is the kernel's count for the whole test, not the sandbox's own."""
        if cpu_seconds_of_groups() == 0:
            return not_covered("the duty cycle, seen from outside", "the tests have no control group of their own")
        caller = user()
        for kind in ("threads", "short"):
            with self.subTest(kind=kind):
                before = cpu_seconds_of_groups()
                result = self.sandbox(SPIN, [], caller, arguments=["3", kind])
                used = cpu_seconds_of_groups() - before
                self.assertEqual(result.status, "ok", result)
                self.assertLess(used, result.record["duration_ms"] / 1000 * 1.2 + 0.3)

    def test_priorities(self):
        for caller in callers():
            with self.subTest(caller=caller):
                findings = self.sandbox(PRIORITY, caller=caller).findings
                for name in ("fifo", "round_robin", "deadline", "realtime_io"):
                    self.assertEqual(findings[name], "EPERM", name)
                self.assertEqual(findings["nice"], "EACCES")  # setpriority(2)'s answer without RLIMIT_NICE
                for name in ("lower", "batch", "idle_io"):
                    self.assertEqual(findings[name], "ok", name)
        if root() is not None:
            findings = self.native(PRIORITY, root()).findings
            for name in ("nice", "fifo", "realtime_io"):
                self.assertEqual(findings[name], "ok", f"natively, {name}")

    def test_a_legal_share(self):
        """A program that stays below its quota is never stopped for it."""
        probe = """
import time
worst = 0.0
for _ in range(100):
    start = time.monotonic()
    while time.monotonic() < start + 0.002: pass
    time.sleep(0.008)
    worst = max(worst, time.monotonic() - start)
report(worst=worst)
"""
        for caller in callers():
            with self.subTest(caller=caller):
                result = self.sandbox(probe, limits(caller, cpus="0.5"), caller)
                self.assertLess(result.findings["worst"], 0.5)


if __name__ == "__main__":
    main()
