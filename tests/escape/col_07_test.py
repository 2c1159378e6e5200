"""COL-07: sockets, device nodes and kernel interfaces in what is collected."""

import subprocess

from collecting import CollectTest, tree
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


if __name__ == "__main__":
    main()
