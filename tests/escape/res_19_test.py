"""RES-19: zombies without number. A parent's own count against its task limit; orphans are reaped by init."""

from harness import callers, main
from outside import OutsideTest, limits

ZOMBIES = """
made, refused = 0, "ok"
try:
    while made < 1000:
        if os.fork() == 0: os._exit(0)
        made += 1
except OSError as error:
    refused = name_of(error.errno)
report(made=made, refused=refused)
"""

ORPHANS = """
for _ in range(int(sys.argv[1])):
    pid = os.fork()
    if pid == 0:
        try:
            if os.fork() == 0: os._exit(0)
        except OSError: os._exit(3)
        os._exit(0)
    if os.waitpid(pid, 0)[1] != 0:
        report(ended="refused"); sys.exit()
import time
time.sleep(0.5)
def state(pid):
    try: return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
    except OSError: return ""
report(ended="all", zombies=[pid for pid in os.listdir("/proc") if pid.isdigit() and state(pid) == "Z"])
"""


class Res19(OutsideTest):
    def test_own_zombies_count(self):
        for caller in callers():
            with self.subTest(caller=caller):
                self.assertEqual(self.native(ZOMBIES, caller).findings, {"made": 1000, "refused": "ok"})
                findings = self.sandbox(ZOMBIES, limits(caller, tasks=256), caller).findings
                self.assertEqual(findings["refused"], "EAGAIN")
                self.assertLess(findings["made"], 256)
                self.assertGreater(findings["made"], 240)

    def test_orphans_are_reaped(self):
        for caller in callers():
            with self.subTest(caller=caller):
                result = self.sandbox(ORPHANS, limits(caller, tasks=100), caller, arguments=["400"])
                self.assertEqual(result.findings, {"ended": "all", "zombies": []})

    def test_orphans_keep_no_watch_from_its_work(self):
        """Where memory is sampled, it is so also while orphans end all the time."""
        probe = """
import time
for _ in range(2):
    if os.fork() == 0:
        while True:
            pid = os.fork()
            if pid == 0:
                for _ in range(3):
                    if os.fork() == 0: os._exit(0)
                os._exit(0)
            os.waitpid(pid, 0)
held = []
for step in range(60):
    held.append(os.urandom(1 << 20) * 10); time.sleep(0.01)
    print("held", step * 10 + 10, flush=True)
report(held=len(held))
"""
        for caller in callers():
            with self.subTest(caller=caller):
                result = self.sandbox(probe, caller=caller)
                self.assertEqual(result.status, "memory", result)
                self.assertLess(int(result.stdout.split("held ")[-1]), 400)


if __name__ == "__main__":
    main()
