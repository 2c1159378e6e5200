"""COL-07: sockets, device nodes and kernel interfaces in what is collected."""

import subprocess

from collecting import CollectTest, WorkspaceTest, tree
from harness import callers, main

PROBE = """
import socket
socket.socket(socket.AF_UNIX).bind("/out/socket")
nodes = {}
for name, number in (("null", (1, 3)), ("mem", (1, 1)), ("tty", (5, 0))):
    nodes[name] = attempt(os.mknod, f"/out/{name}", 0o666 | 0o020000, os.makedev(*number))
    os.symlink(f"/dev/{name}", f"/out/link-{name}")
for number, target in enumerate(("/dev/zero", "/proc/self/environ", "/proc/1/root", "/proc/self/fd/0", "/sys")):
    os.symlink(target, f"/out/link{number}")
open("/out/file", "w").write("x")
report(nodes=nodes)
"""


class Col07(CollectTest):
    def test_in_the_tree(self):
        for caller in callers():
            with self.subTest(caller=caller):
                to = self.results(caller)
                result = self.fetch(PROBE, to, caller)
                self.assertEqual(set(result.findings["nodes"].values()), {"EPERM"})
                self.assertEqual(tree(to), {b"file": b"x"})
                reasons = self.reasons(result)
                self.assertEqual(reasons.pop("/out/socket"), "a socket")
                self.assertEqual(set(reasons.values()), {"a symbolic link"})
                self.assertEqual(len(reasons), 8)

    def test_by_name(self):
        for caller in callers():
            to = self.results(caller, "named")
            for source in ("/dev/zero", "/dev", "/proc/self/environ", "/proc", "/sys/kernel"):
                with self.subTest(caller=caller, source=source):
                    result = self.fetch(["true"], to, caller, source=source)
                    self.assertEqual((result.status, result.exit_status), ("denied", 125))
            for source in ("/out/link0", "/out/link2/etc/passwd", "/out/link1", "/out/link?", "/out/link4/kernel"):
                with self.subTest(caller=caller, source=source):
                    self.fetch(PROBE, to, caller, source=source)
            self.assertEqual(tree(to), {})

    def test_natively_a_link_to_a_device_is_read(self):
        here = self.host_folder("native", callers()[0])
        (here / "link").symlink_to("/dev/zero")
        with self.assertRaises(subprocess.TimeoutExpired):
            subprocess.run(["wc", "-c", here / "link"], stdout=subprocess.DEVNULL, timeout=0.5)


class Col07Workspace(WorkspaceTest):
    def test_in_the_tree(self):
        for caller in callers():
            with self.subTest(caller=caller):
                work = self.workspace(caller)
                result = self.change(PROBE.replace("/out/", "/workspace/"), work, caller)
                self.assertEqual(set(result.findings["nodes"].values()), {"EPERM"})
                self.assertEqual(self.reasons(result), {"/workspace/socket": "a socket"})
                left = self.apply(result, caller)
                self.assertEqual(len(left), 8)
                self.assertNotIn("link", tree(work).values())
                self.assertNotIn("special", tree(work).values())

    def test_marks_of_the_overlay(self):
        """The program can neither make the overlay's marks nor have them taken for its own."""
        marks = """
answers = {}
def set_mark(name, value): os.setxattr("/workspace/folder", name, value)
for name in ("user.overlay.opaque", "user.overlay.redirect", "user.overlay.metacopy", "user.overlay.whiteout", "trusted.overlay.opaque"):
    answers[name] = attempt(set_mark, name, b"y")
answers["whiteout"] = attempt(os.mknod, "/workspace/folder/inner2", 0o020000, 0)
open("/workspace/.wh.file", "w").close(); open("/workspace/folder/.wh..wh..opq", "w").close()
report(answers=answers, seen=sorted(os.listdir("/workspace/folder")), workdir=attempt(os.listdir, "/tmp/workspace.work"))
"""
        for caller in callers():
            with self.subTest(caller=caller):
                work = self.workspace(caller, "marks")
                result = self.change(marks, work, caller)
                self.assertNotEqual(result.findings["answers"]["whiteout"], "ok")
                self.assertEqual(result.findings["workdir"], "ENOENT")
                self.assertEqual(result.findings["seen"], [".wh..wh..opq", "inner"])
                self.assertEqual(self.apply(result, caller), {})
                self.assertEqual(tree(work), {b"file": b"host's\n", b"folder": "folder", b"folder/inner": b"host's\n", b".wh.file": b"",
                                              b"folder/.wh..wh..opq": b""})


if __name__ == "__main__":
    main()
