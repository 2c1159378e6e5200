"""CLN-04: processes of belljar are killed or stopped, at any moment of the start and of the run.

After the death of any one of them, and of supervisor and watcher together, no process, mount or namespace of the
sandbox is left 100 ms later, without help. The watcher removes control groups; if it is dead too, the next run does.
"""

# ctest: serial

import os
import random
import signal
import subprocess
import time
from pathlib import Path

from harness import callers, main
from outside import OutsideTest, alive_below, child_named, process_name, sandbox_groups

# Many processes that resist, in sessions of their own.
CROWD = """
import signal, time
for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)
for _ in range(10):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: time.sleep(1000)
        os._exit(0)
print("up", flush=True)
time.sleep(1000)
"""


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class Cln04(OutsideTest):
    def crowd(self, caller, timeout: str = "60s") -> tuple[subprocess.Popen, int, int]:
        process = self.start(CROWD, ["--timeout", timeout], caller, stdout=-1, stderr=-1)
        self.assertEqual(process.stdout.readline(), b"up\n")
        return process, *self.wait_until_running(process)

    def namespaces_of(self, pid: int) -> set[str]:
        return {os.readlink(f"/proc/{pid}/ns/{kind}") for kind in ("user", "mnt", "pid", "net", "ipc", "uts")}

    def assert_no_namespace(self, namespaces: set[str]) -> None:
        """No process of the host is in one of them, or holds it open."""
        for process in Path("/proc").glob("[0-9]*"):
            for folder in ("ns", "fd"):
                try:
                    links = [os.readlink(link) for link in (process / folder).iterdir()]
                except OSError:
                    continue
                self.assertEqual(namespaces & set(links), set(), f"held by {process}")

    def test_the_supervisor_is_killed(self):
        for caller in callers():
            with self.subTest(caller=caller):
                process, init, watcher = self.crowd(caller)
                namespaces = self.namespaces_of(init)
                kill(process.pid)
                self.assert_nothing_left(but=("cgroups",))
                self.assert_no_namespace(namespaces)
                self.assert_nothing_left(2)  # the watcher's work
                self.assertEqual(process.wait(), -signal.SIGKILL)

    def test_init_is_killed(self):
        for caller in callers():
            with self.subTest(caller=caller):
                process, init, watcher = self.crowd(caller)
                kill(init)
                self.assertEqual(process.wait(timeout=10), 128 + signal.SIGKILL)
                self.assertEqual(self.observer.leftovers(), {})

    def test_the_watcher_is_killed(self):
        for caller in callers():
            with self.subTest(caller=caller):
                process, init, watcher = self.crowd(caller, "2s")
                kill(watcher)
                self.assertEqual(process.wait(timeout=10), 124)
                self.assertEqual(self.observer.leftovers(), {})

    def test_supervisor_and_watcher_are_killed(self):
        for caller in callers():
            for first in ("supervisor", "watcher"):
                with self.subTest(caller=caller, first=first):
                    process, init, watcher = self.crowd(caller)
                    for pid in (process.pid, watcher) if first == "supervisor" else (watcher, process.pid):
                        kill(pid)
                    self.assert_nothing_left(but=("cgroups",))
                    if caller.uid == 0 and first == "watcher":
                        self.assertNotEqual(sandbox_groups(), [], "the groups of a sandbox that nobody cleaned up")
                    if first == "supervisor":  # `belljar gc`, or ...
                        swept = caller.run([caller.belljar, "gc"])
                        self.assertEqual(swept.returncode, 0)
                    else:  # ... the next run
                        self.assertEqual(caller.run([caller.belljar, "run", "--", "sleep", "1"]).returncode, 0)
                    self.assert_nothing_left(1)
                    process.wait()

    def test_gc_leaves_the_living_alone(self):
        caller = callers()[0]
        process, init, watcher = self.crowd(caller)
        groups = sandbox_groups()
        self.assertEqual(caller.run([caller.belljar, "gc"]).returncode, 0)
        self.assertEqual(sandbox_groups(), groups)
        self.assertGreater(len(alive_below(init)), 5)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=10), 128 + signal.SIGTERM)

    def test_the_supervisor_is_stopped(self):
        """The deadline ends the sandbox all the same, though two seconds later."""
        for caller in callers():
            with self.subTest(caller=caller):
                process, init, watcher = self.crowd(caller, "2s")
                kill(process.pid, signal.SIGSTOP)
                self.wait_for(lambda: not alive_below(init) and init not in alive_below(), "the end of the sandbox", 10)
                kill(process.pid, signal.SIGCONT)
                self.assertEqual(process.wait(timeout=10), 124)
                self.assertEqual(self.observer.leftovers(), {})

    def test_init_is_stopped(self):
        for caller in callers():
            with self.subTest(caller=caller):
                process, init, watcher = self.crowd(caller, "2s")
                kill(init, signal.SIGSTOP)
                self.assertEqual(process.wait(timeout=10), 124)
                self.assertEqual(self.observer.leftovers(), {})

    def test_all_but_init_are_killed_by_name(self):
        """As by `killall -9 belljar`: every process that bears the name."""
        for caller in callers():
            with self.subTest(caller=caller):
                process, init, watcher = self.crowd(caller)
                for pid, name in alive_below(process.pid).items():
                    if name.startswith("belljar"):
                        kill(pid)
                kill(process.pid)
                self.assert_nothing_left(but=("cgroups",))
                process.wait()
                caller.run([caller.belljar, "gc"])
                self.assert_nothing_left()

    def killed_at_any_moment(self, both: bool, rounds: int) -> None:
        chance = random.Random(4)
        for caller in callers():
            here = self.host_folder(f"here-{both}-{caller}", caller)
            argv = self.command_line(["sleep", "1000"], ["--timeout", "60s", "--mount", f"{here}:/here:rw"], caller)
            # How long a start takes here, so that the moments spread over all of it.
            start = time.monotonic()
            caller.run([*argv[:-2], "true"])
            takes = time.monotonic() - start
            for number in range(rounds):
                with self.subTest(caller=caller, number=number, seed=4):
                    process = caller.popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    time.sleep(chance.uniform(0, takes * 1.2))
                    watcher = child_named(process.pid, "belljar-watch") if both else 0
                    kill(process.pid)
                    if watcher:
                        kill(watcher)
                    process.wait()
                    self.assert_nothing_left(but=("cgroups",))
            caller.run([caller.belljar, "gc"])
            self.assert_nothing_left(1)

    def test_killed_at_any_moment(self):
        self.killed_at_any_moment(both=False, rounds=25)

    def test_both_killed_at_any_moment(self):
        self.killed_at_any_moment(both=True, rounds=15)

    def kill_at_birth(self, argv: list, caller, wanted: int) -> str | None:
        """Kills belljar as soon as its child number `wanted` is there. Returns the child's name after that; None: too late."""
        process = caller.popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        born = None
        try:
            with open(f"/proc/{process.pid}/task/{process.pid}/children", "rb", buffering=0) as children:
                # Ended children leave the list: the number is that of the moment.
                while process.poll() is None:
                    pids = os.pread(children.fileno(), 4096, 0).split()
                    if len(pids) >= wanted:
                        kill(process.pid)
                        born = process_name(int(pids[-1]))
                        break
        except OSError:
            pass
        kill(process.pid)
        process.wait()
        return born

    def test_killed_as_a_child_is_born(self):
        """In the moments between a clone and the child's first step: nobody has told it yet that it must end with its parent."""
        for caller in callers():
            name = Path(caller.belljar).name
            for flags, wanted in ((), 1), ((), 2), (("--allow", "a.example"), 1), (("--allow", "a.example"), 2), (("--allow", "a.example"), 3):
                argv = self.command_line(["sleep", "1000"], ["--timeout", "60s", *flags], caller)
                born = []
                with self.subTest(caller=caller, flags=flags, wanted=wanted):
                    for _ in range(60):
                        born.append(self.kill_at_birth(argv, caller, wanted))
                        self.assert_nothing_left(but=("cgroups",))
                    self.assertIn(name, born, "a child that had not even a name of its own yet")
            caller.run([caller.belljar, "gc"])
            self.assert_nothing_left(1)

    def test_natively_they_live_on(self):
        """The positive control: what a killed starter leaves without a sandbox."""
        before = set(alive_below())
        process = callers()[0].popen(["/usr/bin/python3", self.script(CROWD)], stdout=-1)
        self.assertEqual(process.stdout.readline(), b"up\n")
        kill(process.pid)
        process.wait()
        process.stdout.close()
        time.sleep(0.1)
        left = [pid for pid in alive_below() if pid not in before]
        self.assertEqual(len(left), 10)
        for pid in left:
            kill(pid)
            os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
