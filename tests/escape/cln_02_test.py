"""CLN-02: files that resist removal: immutable, append-only, ACLs, foreign owners, verity. In a caller's folder too."""

import os
import shutil
import subprocess

from harness import callers, main, not_covered, root
from outside import OutsideTest

PROBE = """
import fcntl, struct
place = sys.argv[1]
path = os.path.join(place, "file")
os.makedirs(os.path.join(place, "deep/er"), exist_ok=True)
with open(path, "w") as file: file.write("x")
def flags(bits):
    with open(path) as file: fcntl.ioctl(file, 0x40086602, struct.pack("l", bits))
def verity():
    with open(path) as file: fcntl.ioctl(file, 0x40806685, struct.pack("IIIIQ", 1, 1, 4096, 0, 0) + bytes(104))
os.chmod(os.path.join(place, "deep"), 0)
found = dict(
    immutable=attempt(flags, 0x10), append=attempt(flags, 0x20), verity=attempt(verity),
    owner=attempt(os.chown, path, 0, 0), other_owner=attempt(os.chown, path, 1234, 1234),
    trusted=attempt(os.setxattr, path, "trusted.x", b"1"), security=attempt(os.setxattr, path, "security.x", b"1"),
    capability=attempt(os.setxattr, path, "security.capability", struct.pack("<5I", 0x02000001, 1 << 21, 0, 0, 0)),
    own=attempt(os.chmod, path, 0o600),
)
attempt(os.chmod, path, 0)
report(**found)
"""


class Cln02(OutsideTest):
    def test_inside_and_in_a_mount(self):
        for caller in callers():
            here = self.host_folder(f"out-{caller}", caller)
            for place in ("/tmp/home", "/out"):
                with self.subTest(caller=caller, place=place):
                    findings = self.sandbox(PROBE, ["--mount", f"{here}:/out:rw"], caller, arguments=[place]).findings
                    self.assertEqual([name for name, answer in findings.items() if answer == "ok"], ["own"])
                    self.assert_nothing_left()
            with self.subTest(caller=caller):
                # What was left in the caller's folder is the caller's, and goes away like any file of theirs.
                self.assertEqual({os.lstat(path).st_uid for path in (here / "file", here / "deep")}, {caller.uid})
                removal = caller.run(["sh", "-c", f"chmod 700 {here}/deep && rm -rf {here}/*"])
                self.assertEqual((removal.returncode, removal.stderr), (0, b""))
                self.assertEqual(list(here.iterdir()), [])

    def test_natively_they_resist(self):
        if root() is None:
            return
        here = self.host_folder("native", root())
        findings = self.native(PROBE, root(), arguments=[str(here)]).findings
        subprocess.run(["chattr", "-i", "-a", here / "file"], capture_output=True)
        shutil.rmtree(here)
        if findings["immutable"] != "ok":
            return not_covered("immutable files natively", f"this file system says {findings['immutable']}")
        self.assertEqual(findings["immutable"], "ok")


if __name__ == "__main__":
    main()
