"""COL-05: hard links: to files of the image and of mounts, one inode under many names."""

import os

from collecting import CollectTest, WorkspaceTest, tree
from harness import callers, main
from outside import MIB

LINK = """
out, *targets = sys.argv[1:]
report(got={target: attempt(os.link, target, f"{out}/{number}") for number, target in enumerate(targets)})
"""

MANY = """
open("/out/0", "wb").write(os.urandom(1 << 20))
for number in range(1, 3000): os.link("/out/0", f"/out/{number}")
report(links=os.stat("/out/0").st_nlink)
"""


class Col05(CollectTest):
    def test_to_files_that_are_not_the_sandbox_s(self):
        for caller in callers():
            with self.subTest(caller=caller):
                data = self.host_folder(f"data-{caller}", caller)
                (data / "secret").write_text(self.canary)
                os.chown(data / "secret", caller.uid, -1)
                to = self.results(caller)
                result = self.sandbox(LINK, ["--mount", f"{data}:/data:rw", "--collect", f"/out:{to}"], caller,
                                      arguments=["/out", "/data/secret", "/usr/bin/env", "/etc/passwd", "/proc/self/environ"])
                for target, answer in result.findings["got"].items():
                    self.assertIn(answer, ("EXDEV", "EPERM", "EACCES"), target)
                self.assertEqual(tree(to), {})
                self.assertEqual((data / "secret").stat().st_nlink, 1)
                # The control: natively a link to a file of one's own can be made, and a copy has its content.
                control = self.native(LINK, caller, arguments=[str(data), str(data / "secret")])
                self.assertEqual(list(control.findings["got"].values()), ["ok"])
                self.assertEqual((data / "0").read_text(), self.canary)

    def test_one_inode_under_many_names(self):
        for caller in callers():
            with self.subTest(caller=caller):
                to = self.results(caller, "many")
                result = self.fetch(MANY, to, caller, ["--collect-size", "20M"])
                self.assertEqual(result.findings["links"], 3000)
                found = tree(to)
                self.assertEqual(len(found), 20)
                self.assertLessEqual(sum(map(len, found.values())), 20 * MIB)
                self.assertEqual(len(set(found.values())), 1)
                self.assertEqual(len(self.reasons(result)), 2980)
                self.assertTrue(result.record["files_truncated"])

    def test_two_names_both_come(self):
        for caller in callers():
            with self.subTest(caller=caller):
                to = self.results(caller, "two")
                self.fetch(["sh", "-c", "echo x > /out/a; ln /out/a /out/b"], to, caller)
                self.assertEqual(tree(to), {b"a": b"x\n", b"b": b"x\n"})


class Col05Workspace(WorkspaceTest):
    def test_links_to_files_that_are_not_the_workspace_s(self):
        for caller in callers():
            with self.subTest(caller=caller):
                data, work = self.host_folder(f"data-{caller}", caller), self.workspace(caller)
                (data / "secret").write_text(self.canary)
                self.give(data, caller)
                result = self.change(LINK, work, caller, ["--mount", f"{data}:/data:rw"],
                                     arguments=["/workspace", "/data/secret", "/usr/bin/env", "/etc/passwd", "/proc/self/environ"])
                for target, answer in result.findings["got"].items():
                    self.assertIn(answer, ("EXDEV", "EPERM", "EACCES"), target)
                self.assertIsNone(result.record["changes_id"])

    def test_links_within_it(self):
        """A name of the workspace's own file leaves the host's file alone, whichever name is written to."""
        for caller in callers():
            with self.subTest(caller=caller):
                work = self.workspace(caller, "links")
                os.link(work / "file", work / "other")
                result = self.change(["sh", "-c", "ln file third; echo new > third; echo other > other"], work, caller)
                self.assertEqual(((work / "file").read_text(), (work / "file").stat().st_nlink), ("host's\n", 2))
                self.assertEqual(self.apply(result, caller), {})
                self.assertEqual([(work / name).read_text() for name in ("file", "third", "other")], ["new\n", "new\n", "other\n"])
                self.assertEqual((work / "third").stat().st_nlink, 1)


if __name__ == "__main__":
    main()
