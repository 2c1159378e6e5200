"""COL-15: files and folders that resist being read: mode 000, search without reading, ACLs, foreign owners, immutable."""

from collecting import CollectTest, WorkspaceTest, tree
from harness import callers, main

PROBE = """
import fcntl
got = {}
os.makedirs("/out/closed"); open("/out/closed/in", "w").write("in")
os.makedirs("/out/search"); open("/out/search/in", "w").write("in")
open("/out/none", "w").write("none"); open("/out/write-only", "w").write("w"); open("/out/fine", "w").write("fine")
got["chown"] = attempt(os.chown, "/out/fine", 12345, 12345)
got["acl"] = attempt(os.setxattr, "/out/fine", "system.posix_acl_access", bytes.fromhex(
    "02000000" "01000000ffffffff" "0200000000000000" "04000000ffffffff" "10000000ffffffff" "20000000ffffffff"))
def immutable():
    fd = os.open("/out/fine", os.O_RDONLY)
    fcntl.ioctl(fd, 0x40086602, (0x10).to_bytes(8, "little"))
got["immutable"] = attempt(immutable)
os.chmod("/out/none", 0); os.chmod("/out/write-only", 0o222); os.chmod("/out/search", 0o111); os.chmod("/out/closed", 0)
report(**got)
"""


class Col15(CollectTest):
    def test_they_come_or_are_named(self):
        for caller in callers():
            with self.subTest(caller=caller):
                to = self.results(caller)
                result = self.fetch(PROBE, to, caller)
                self.assertNotEqual(result.findings["chown"], "ok")
                self.assertNotEqual(result.findings["immutable"], "ok")
                found = tree(to)
                if result.findings["acl"] != "ok" or caller.uid == 0:
                    self.assertEqual(found[b"fine"], b"fine")
                if caller.uid == 0:
                    self.assertEqual(found, {b"closed": "folder", b"closed/in": b"in", b"search": "folder", b"search/in": b"in",
                                             b"none": b"none", b"write-only": b"w", b"fine": b"fine"})
                    self.assertEqual((self.reasons(result), result.exit_status), ({}, 0))
                    continue
                self.assertEqual(set(self.reasons(result)) - {"/out/fine"},
                                 {"/out/closed", "/out/search", "/out/none", "/out/write-only"})
                self.assertTrue(result.record["files_truncated"])
                self.assertEqual(result.exit_status, 125)

    def test_what_comes_can_be_read_and_removed(self):
        for caller in callers():
            with self.subTest(caller=caller):
                to = self.results(caller, "modes")
                self.fetch(["sh", "-c", "mkdir /out/d; echo x > /out/d/f; chmod 400 /out/d/f; chmod 500 /out/d"], to, caller)
                self.assertEqual(caller.run(["cat", str(to / "d/f")]).stdout, b"x\n")
                self.assertEqual(caller.run(["rm", "-r", str(to / "d")]).returncode, 0)

    def test_natively_a_user_is_stopped_too(self):
        """The positive control: the same modes, and the same user."""
        caller = callers()[-1]
        here = self.host_folder("native", caller)
        caller.run(["sh", "-c", f"echo x > {here}/none; chmod 000 {here}/none"])
        self.assertNotEqual(caller.run(["cat", f"{here}/none"]).returncode, 0)


class Col15Workspace(WorkspaceTest):
    def test_they_are_kept_or_named(self):
        for caller in callers():
            with self.subTest(caller=caller):
                work = self.workspace(caller)
                result = self.change(PROBE.replace("/out/", "/workspace/"), work, caller)
                self.assertNotEqual(result.findings["chown"], "ok")
                named = {path.removeprefix("/workspace/") for path in self.reasons(result)} - {"fine"}
                self.assertEqual(named, set() if caller.uid == 0 else {"closed", "search", "none", "write-only"})
                self.assertEqual(self.apply(result, caller), {})
                for path in work.rglob("*"):  # plain permissions of the caller's
                    self.assertEqual(path.stat().st_mode & 0o7000, 0, path)
                    self.assertEqual(caller.run(["test", "-r", str(path), "-a", "-w", str(path)]).returncode, 0, path)

    def test_what_can_t_be_read_is_not_taken_for_deleted(self):
        for caller in callers():
            with self.subTest(caller=caller):
                work = self.workspace(caller, "closed")
                result = self.change(["sh", "-c", "echo x > new; chmod 0 file folder"], work, caller)
                self.assertEqual(self.apply(result, caller), {})
                self.assertEqual(tree(work), {b"new": b"x\n", b"file": b"host's\n", b"folder": "folder", b"folder/inner": b"host's\n"})


if __name__ == "__main__":
    main()
