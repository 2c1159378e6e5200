"""COL-04: the host is to change owner, mode or times of a file, and a link leads to another file of the host's."""

from collecting import CollectTest, WorkspaceTest, fingerprint
from harness import callers, main

# Files with odd modes and times, and links to host files beside them and in the folder where they will go.
PROBE = """
out, shared, target = sys.argv[1:4]
os.makedirs(out, exist_ok=True)
for place in (out, shared):
    os.symlink(target, f"{place}/link")
    os.symlink(target, f"{place}/program")
os.mkdir(f"{out}/folder")
os.symlink(target, f"{out}/folder/link")
open(f"{out}/odd", "w").write("x")
os.utime(f"{out}/odd", (1, 1))
os.chmod(f"{out}/odd", 0o777)
report(done=True, setid=attempt(os.chmod, f"{out}/odd", 0o6777))
"""

# What a collector does that copies metadata by name.
NAIVE = """
import shutil
out, shared = sys.argv[1:3]
shutil.copystat(f"{out}/odd", f"{shared}/link")
report(done=True)
"""


class Col04(CollectTest):
    def test_links_beside_and_in_place(self):
        for caller in callers():
            with self.subTest(caller=caller):
                shared = self.results(caller, "shared")
                target = self.host_file(self.canary, f"target-{caller}", caller)
                before = fingerprint(target)
                result = self.sandbox(PROBE, ["--mount", f"{shared}:/shared:rw", "--collect", f"/out:{shared}", "--collect-overwrite"],
                                      caller, arguments=["/out", "/shared", target])
                self.assertTrue(result.findings["done"])
                self.assertEqual(fingerprint(target), before)
                self.assertEqual([row["path"] for row in result.record["files"]], ["/out/odd"])
                status = (shared / "odd").stat()
                self.assertEqual((status.st_uid, status.st_mode & 0o6022), (caller.uid, 0), "neither set-id bits nor others' leave to write")
                self.assertGreater(status.st_mtime, 1e9)

    def test_natively_metadata_goes_through_links(self):
        for caller in callers():
            with self.subTest(caller=caller):
                out, shared = self.results(caller, "out"), self.results(caller, "native")
                target = self.host_file(self.canary, f"native-target-{caller}", caller)
                before = fingerprint(target)
                self.native(PROBE, caller, arguments=[str(out), str(shared), target])
                self.native(NAIVE, caller, arguments=[str(out), str(shared)])
                self.assertNotEqual(fingerprint(target), before)


class Col04Workspace(WorkspaceTest):
    def test_links_in_the_workspace(self):
        for caller in callers():
            with self.subTest(caller=caller):
                work = self.workspace(caller)
                target = self.host_file(self.canary, f"changed-{caller}", caller)
                (work / "link").symlink_to(target)
                (work / "program").symlink_to(target)
                before = fingerprint(target)
                probe = PROBE.replace("for place in (out, shared)", "for place in (out,)").replace('f"{place}/', 'f"{place}/new-')\
                    .replace('os.mkdir(f"{out}/folder")', "")
                result = self.change(probe + 'os.chmod(f"{out}/file", 0o755); os.utime(f"{out}/file", (1, 1))\n'
                                     'report(times=attempt(os.utime, f"{out}/link", (1, 1)))', work, caller,
                                     arguments=["/workspace", "", target])
                self.assertEqual(result.findings["times"], "ENOENT")
                self.assertEqual(self.apply(result, caller).keys(), {"new-link", "new-program", "folder/link"})
                self.assertEqual(self.apply(result, caller, "new-link", "new-program", "folder/link"), {})
                self.assertEqual(fingerprint(target), before)
                for name, mode in (("odd", 0o755), ("file", 0o755)):
                    status = (work / name).stat()
                    self.assertEqual((status.st_uid, status.st_mode & 0o7777), (caller.uid, mode), name)
                    self.assertGreater(status.st_mtime, 1e9)


if __name__ == "__main__":
    main()
