"""COL-03: the program puts links, pipes and folders where the host will write: at the names of the files that it collects,
and at the name under which Belljar writes them first. It can, where it may write to the destination."""

import os

from collecting import CollectTest, WorkspaceTest, fingerprint, tree
from harness import callers, main

# In the shared folder /shared (natively: the same folder), lays a trap for each file that it then makes in /out.
PROBE = """
out, shared, target = sys.argv[1:4]
os.makedirs(out, exist_ok=True)
names = ["link", "dangling", "hard", "pipe", "folder", "sub"]
os.symlink(target, f"{shared}/link")
os.symlink(target + ".new", f"{shared}/dangling")
os.symlink(os.path.dirname(target), f"{shared}/sub")
os.mkfifo(f"{shared}/pipe")
os.mkdir(f"{shared}/folder")
open(f"{shared}/hard", "w").write("old")
os.link(f"{shared}/hard", f"{shared}/hard-too")
for pid in range(2, 400):  # names that Belljar may write under first
    for number in range(3):
        os.symlink(target, f"{shared}/.belljar-{pid}-{number}.part")
os.mkdir(f"{out}/sub")
for name in names[:-1] + ["sub/host.txt"]:
    open(f"{out}/{name}", "w").write("attack")
report(done=True)
"""

# What a tool does that knows nothing of this: writes by name.
NAIVE = """
import shutil
out, shared = sys.argv[1:3]
done = []
for name in ("link", "dangling", "sub/host.txt"):
    shutil.copyfile(f"{out}/{name}", f"{shared}/{name}"); done.append(name)
report(done=done)
"""


class Col03(CollectTest):
    def test_traps_where_the_host_writes(self):
        for caller in callers():
            for overwrite in ([], ["--collect-overwrite"]):
                with self.subTest(caller=caller, overwrite=overwrite):
                    shared = self.results(caller, f"shared{len(overwrite)}")
                    folder = self.host_folder(f"victim{len(overwrite)}-{caller}", caller)
                    target = folder / "host.txt"
                    target.write_text(self.canary)
                    before = fingerprint(target)
                    result = self.sandbox(PROBE, ["--mount", f"{shared}:/shared:rw", "--collect", f"/out:{shared}", *overwrite],
                                          caller, arguments=["/out", "/shared", str(target)])
                    self.assertTrue(result.findings["done"])
                    self.assertEqual(fingerprint(target), before)
                    self.assertEqual([path.name for path in folder.iterdir()], ["host.txt"])
                    self.assertEqual((shared / "hard-too").read_text(), "old")
                    got = [row["path"] for row in result.record["files"]]
                    self.assertEqual(got, ["/out/hard"] if overwrite else [])
                    self.assertEqual((shared / "hard").read_text(), "attack" if overwrite else "old")
                    reasons = self.reasons(result)
                    for name, kind in (("link", "a symbolic link"), ("dangling", "a symbolic link"), ("pipe", "a named pipe"),
                                       ("folder", "a folder")):
                        self.assertIn(f"{kind} is in its place", reasons[f"/out/{name}"])
                    self.assertIn("something else than a folder is in its place", reasons["/out/sub"])
                    self.assertEqual(result.exit_status, 125)

    def test_natively_the_links_are_followed(self):
        """The positive control: the same traps, and a tool that copies by name."""
        for caller in callers():
            with self.subTest(caller=caller):
                out, shared = self.results(caller, "out"), self.results(caller, "shared")
                folder = self.host_folder(f"victim-{caller}", caller)
                target = folder / "host.txt"
                target.write_text(self.canary)
                if caller.uid:
                    target.chmod(0o666)
                self.native(PROBE, caller, arguments=[str(out), str(shared), str(target)])
                self.native(NAIVE, caller, arguments=[str(out), str(shared)])
                self.assertEqual(target.read_text(), "attack")
                self.assertTrue((folder / "host.txt.new").exists())

    def test_a_legal_use(self):
        for caller in callers():
            with self.subTest(caller=caller):
                shared = self.results(caller, "legal")
                self.fetch(["sh", "-c", "mkdir /out/sub; echo x > /out/sub/f"], shared, caller)
                self.assertEqual(tree(shared), {b"sub": "folder", b"sub/f": b"x\n"})


class Col03Workspace(WorkspaceTest):
    """The same where kept changes are applied: to a folder in which another sandbox, or anyone, laid traps meanwhile."""

    TRAPS = """
import shutil
work, target = sys.argv[1:3]
names = sys.argv[3:]
for name in names: os.symlink(target, f"{work}/{name}")
os.symlink(target + ".new", f"{work}/dangling")
os.mkfifo(f"{work}/pipe")
shutil.rmtree(f"{work}/folder"); os.symlink(os.path.dirname(target), f"{work}/folder")
report(done=True)
"""
    CHANGE = ["sh", "-c", "echo attack > link; echo attack > dangling; echo attack > pipe; echo attack > folder/host.txt; echo good > file"]

    def test_traps_where_changes_go(self):
        for caller in callers():
            with self.subTest(caller=caller):
                work, outside = self.workspace(caller), self.host_folder(f"outside-{caller}", caller)
                target = outside / "host.txt"
                target.write_text(self.canary)
                self.give(outside, caller)
                before = fingerprint(target)
                result = self.change(self.CHANGE, work, caller)
                id = result.record["changes_id"]
                self.native(self.TRAPS, caller, arguments=[str(work), str(target), "link", f".belljar-{id}.part"])
                run = self.changes(caller, "apply", id)
                self.assertEqual(run.returncode, 125)
                self.assertIn(b"nothing was applied", run.stderr)
                for name in ("link", "dangling", "pipe", "folder"):
                    self.assertNotEqual(self.changes(caller, "apply", id, name).returncode, 0, name)
                self.assertEqual(self.changes(caller, "apply", id, "file").returncode, 0)
                self.assertEqual((fingerprint(target), sorted(os.listdir(outside))), (before, ["host.txt"]))
                self.assertEqual((work / "file").read_text(), "good\n")

    def test_natively_a_patch_by_name_goes_through_them(self):
        """The positive control."""
        for caller in callers():
            with self.subTest(caller=caller):
                work, outside = self.workspace(caller, "control"), self.host_folder(f"outside-{caller}", caller)
                target = outside / "host.txt"
                target.write_text(self.canary)
                self.give(outside, caller)
                self.native(self.TRAPS, caller, arguments=[str(work), str(target), "link"])
                caller.run(["timeout", "1", *self.CHANGE], cwd=work)
                self.native("open(sys.argv[1] + '/folder/host.txt', 'w').write('attack')", caller, arguments=[str(work)])
                self.assertEqual(target.read_text(), "attack")
                self.assertTrue((outside / "host.txt.new").exists())


if __name__ == "__main__":
    main()
