"""COL-12: what produces the files lies: names that climb out, links and then files through them, exchanges while it is
read, duplicates, wrong sizes. Belljar reads the files itself, so there is no list and no archive to lie in; what is left to
try are names, and processes that go on changing things until they are killed."""

import os
import subprocess

from collecting import CollectTest, WorkspaceTest, fingerprint, tree
from harness import PYTHON, callers, main

CLIMB = r"""
got = {}
for name in ("../up", "..", "a/../../up", "/etc/up", "..\\up", "..%2fup", "\u2025/up", "..\u2215up"):
    def make(path=os.path.join("/out", name)):
        with open(path, "w") as file: file.write("x")
    got[name] = attempt(make)
os.makedirs("/tmp/outside")
os.symlink("/tmp/outside", "/out/through")
open("/out/through/file", "w").write("x")
report(**got)
"""

# A process that outlives the program: exchanges a folder, a link to the target and a pipe, and resizes a file.
RESTLESS = """
folder, target = sys.argv[1:3]
os.makedirs(f"{folder}/real", exist_ok=True)
open(f"{folder}/real/file", "w").write("harmless")
os.symlink(target, f"{folder}/fake")
if os.fork() == 0:
    os.setsid()
    print("moving", flush=True)
    size = 0
    while True:
        _libc.renameat2(-100, f"{folder}/real".encode(), -100, f"{folder}/fake".encode(), 2)
        size = (size + 4097) % 100_000
        fd = os.open(f"{folder}/size", os.O_CREAT | os.O_WRONLY); os.ftruncate(fd, size); os.close(fd)
import time; time.sleep(0.2)
"""


EXCHANGE = """
import ctypes, sys
libc = ctypes.CDLL(None)
a, b = (name.encode() for name in sys.argv[1:])
print("moving", flush=True)
while True: libc.renameat2(-100, a, -100, b, 2)
"""


class Col12(CollectTest):
    def test_names_that_climb(self):
        for caller in callers():
            with self.subTest(caller=caller):
                above = self.host_folder(f"above-{caller}", caller)
                to = above / "results"
                result = self.fetch(CLIMB, to, caller)
                self.assertEqual([path.name for path in above.iterdir()], ["results"])
                self.assertEqual(set(tree(to)), {b"..\\up", b"..%2fup", "..\u2215up".encode()})
                self.assertEqual(self.reasons(result), {"/out/through": "a symbolic link"})

    def test_exchanges_that_go_on(self):
        for caller in callers():
            with self.subTest(caller=caller):
                victim = self.host_folder(f"victim-{caller}", caller)
                (victim / "file").write_text(self.canary)
                before = fingerprint(victim / "file")
                for attempt in range(5):
                    to = self.results(caller, f"restless{attempt}")
                    result = self.sandbox(RESTLESS, ["--collect", f"/out:{to}"], caller, arguments=["/out", str(victim)])
                    found = tree(to)
                    self.assertNotIn("link", found.values())
                    for name in (b"real/file", b"fake/file"):
                        self.assertIn(found.get(name, b"harmless"), (b"harmless",))
                    for row in result.record["files"]:
                        self.assertEqual(row["size"], len(found[row["path"].removeprefix("/out/").encode()]))
                self.assertEqual(fingerprint(victim / "file"), before)

    def test_natively_an_exchange_is_followed(self):
        """The positive control: the same exchange under a walk by name."""
        caller = callers()[0]
        victim, folder = self.host_folder("victim", caller), self.host_folder("moving", caller)
        (victim / "file").write_text(self.canary)
        mover = subprocess.Popen([PYTHON, self.script(RESTLESS.replace("if os.fork() == 0:", "if True:")), folder, victim],
                                 stdout=subprocess.PIPE)
        self.addCleanup(mover.stdout.close)
        self.addCleanup(mover.wait)
        self.addCleanup(mover.kill)
        mover.stdout.readline()
        seen = set()
        for _ in range(3000):
            try:
                seen.add((folder / "real" / "file").read_text())
            except OSError:
                pass
        self.assertEqual(seen, {"harmless", self.canary})


class Col12Workspace(WorkspaceTest):
    def test_names_that_climb(self):
        for caller in callers():
            with self.subTest(caller=caller):
                above = self.host_folder(f"above-{caller}", caller)
                work = above / "work"
                work.mkdir()
                self.give(above, caller)
                result = self.change(CLIMB.replace("/out", "/workspace"), work, caller)
                self.assertEqual(self.apply(result, caller).keys(), {"through"})
                self.assertEqual([path.name for path in above.iterdir()], ["work"])
                self.assertEqual(set(tree(work)), {b"..\\up", b"..%2fup", "..\u2215up".encode()})

    def test_a_folder_that_is_exchanged_while_changes_are_applied(self):
        """Somebody exchanges a folder of the workspace for a link and back, as fast as can be."""
        for caller in callers():
            with self.subTest(caller=caller):
                work, victim = self.workspace(caller, "moving"), self.host_folder(f"victim-{caller}", caller)
                before = sorted(os.listdir(victim))
                (work / "fake").symlink_to(victim)
                mover = subprocess.Popen([PYTHON, "-c", EXCHANGE, work / "folder", work / "fake"], stdout=subprocess.PIPE)
                self.addCleanup(mover.stdout.close)
                self.addCleanup(mover.wait)
                self.addCleanup(mover.kill)
                mover.stdout.readline()
                for _ in range(20):
                    result = self.change(["sh", "-c", "for n in $(seq 40); do echo x > folder/$n; done 2>/dev/null; echo x > $$"], work, caller)
                    if result.record["changes_id"]:
                        self.changes(caller, "apply", result.record["changes_id"])
                        self.changes(caller, "discard", result.record["changes_id"])
                self.assertEqual(sorted(os.listdir(victim)), before)
                # The control: who writes by name comes to both places.
                for number in range(3000):
                    try:
                        (work / "folder" / f"plain{number}").write_text("x")
                    except OSError:
                        pass
                self.assertNotEqual(sorted(os.listdir(victim)), before)


if __name__ == "__main__":
    main()
