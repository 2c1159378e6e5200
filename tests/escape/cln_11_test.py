"""CLN-11: many runs, ten at a time, a third of them killed. Nothing grows."""

# ctest: timeout 240

import os
import random
import signal
import subprocess
import time
from pathlib import Path

from harness import Caller, callers, main
from outside import GROUPS, OutsideTest, alive_below, reap_adopted

CYCLES = 150
AT_ONCE = 10


def groups_below() -> int:
    """All control groups below this test's, in every hierarchy."""
    return sum(len([folder for folder, _, _ in os.walk(group)]) - 1 for group in GROUPS
               if group.name.startswith("belljar-test-"))


def namespaces() -> set[str]:
    """Those that any process of the host is in, by kind and number."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found |= {os.readlink(link) for link in (process / "ns").iterdir()}
        except OSError:
            pass
    return found


class Cln11(OutsideTest):
    LEFT_WITHIN_S = 3  # of so many at once, the last watcher has its groups to remove

    def counters(self, caller: Caller) -> dict[str, object]:
        run_folder = Path("/run/belljar") if caller.uid == 0 else caller.home / "run/belljar"
        cache = Path("/var/cache/belljar") if caller.uid == 0 else caller.home / "cache/belljar"
        return {
            "descriptors": len(os.listdir("/proc/self/fd")),
            "processes": len(alive_below()),
            "groups": groups_below(),
            "run folder": sorted(path.name for path in run_folder.iterdir()),
            "cache": len(list(cache.iterdir())),
            "locks": self.locks_on(run_folder),
        }

    def locks_on(self, folder: Path) -> int:
        """Leases that somebody below this test still holds: descriptors of the files that are leased from."""
        held = 0
        for pid in [os.getpid(), *alive_below()]:
            for link in Path(f"/proc/{pid}/fd").glob("*"):
                try:
                    held += os.readlink(link).startswith(str(folder))
                except OSError:
                    pass
        return held

    def cycle(self, caller: Caller) -> None:
        chance = random.Random(11)
        probe = self.script("open('/tmp/x', 'w').write('x' * 100000); print('done')\nif os.fork() == 0:\n"
                            "    import time\n    os.setsid(); time.sleep(100)")
        forever = self.script("import time; time.sleep(100)", "forever.py")
        running: list[tuple[subprocess.Popen, bool, float]] = []
        ended = {"well": 0, "killed": 0}
        number = 0
        while number < CYCLES or running:
            while number < CYCLES and len(running) < AT_ONCE:
                is_victim = number % 3 == 0
                process = caller.popen([caller.belljar, "run", "--timeout", "60s", forever if is_victim else probe],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                running.append((process, is_victim, time.monotonic() + chance.uniform(0, 0.3)))
                number += 1
            for entry in list(running):
                process, is_victim, until = entry
                if is_victim and process.poll() is None and time.monotonic() > until:
                    process.send_signal(signal.SIGKILL)
                if process.poll() is not None:
                    self.assertEqual(process.returncode, -signal.SIGKILL if is_victim else 0)
                    ended["killed" if is_victim else "well"] += 1
                    running.remove(entry)
            time.sleep(0.002)
        self.assertEqual(ended, {"well": 100, "killed": 50})

    def test_nothing_grows(self):
        for caller in callers():
            with self.subTest(caller=caller):
                self.assertEqual(caller.run([caller.belljar, "run", "--", "true"]).returncode, 0)  # makes its folders
                caller.run([caller.belljar, "gc"])
                before = self.counters(caller)
                namespaces_before = namespaces()
                self.cycle(caller)
                self.assertEqual(caller.run([caller.belljar, "run", "--", "sleep", "0.5"]).returncode, 0)  # sweeps
                self.assert_nothing_left(5)  # mounts too
                caller.run([caller.belljar, "gc"])  # and the folder that the groups were in
                reap_adopted()
                self.assertEqual(self.counters(caller), before)
                # Other programs of the host come and go too; but none of theirs is new fifty times.
                self.assertLess(len(namespaces() - namespaces_before), 50)

    def test_natively_it_grows(self):
        """The positive control: what is counted does count."""
        before = self.counters(callers()[0]) if Path("/run/belljar").exists() else None
        process = callers()[0].popen(["sleep", "10"])
        self.assertEqual(len(alive_below()), 1)
        process.kill()
        process.wait()
        if before:
            with open("/dev/null"):
                self.assertEqual(self.counters(callers()[0])["descriptors"], before["descriptors"] + 1)


if __name__ == "__main__":
    main()
