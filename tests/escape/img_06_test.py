"""IMG-06: devices, FIFOs, setuid files, file capabilities, attributes and odd owners in layers."""

import json
import os
import stat

from harness import callers, main, not_covered, root
from loading import ImageTest, Layer, busybox_layer

CAPABILITY = b"\x01\x00\x00\x02\xff\xff\xff\xff\x00\x00\x00\x00\xff\x01\x00\x00\x00\x00\x00\x00"  # every one, effective


def hostile() -> Layer:
    attributes = {"SCHILY.xattr.security.capability": CAPABILITY, "SCHILY.xattr.trusted.overlay.opaque": b"y",
                  "SCHILY.xattr.user.overlay.opaque": b"y", "SCHILY.xattr.security.selinux": b"x"}
    return (Layer().entry("null", "char", device=(1, 3), mode=0o666).entry("disk", "block", device=(8, 0), mode=0o666)
            .entry("fifo", "fifo", mode=0o666).file("setuid", b"#!/bin/sh\n", mode=0o6755).folder("setgid", 0o2777).folder("sticky", 0o1777)
            .file("capable", b"x", mode=0o755, pax=attributes).folder("opaque", pax=attributes).file("opaque/in", b"x")
            .file("foreign", b"x", uid=2**32 - 1, gid=2**32 - 1).file("negative", b"x", uid=-1, gid=-1).file("owned", b"x", uid=1234, gid=1235))


class Img06(ImageTest):
    def test_nothing_of_it_acts(self):
        for caller in callers():
            with self.subTest(caller=caller):
                run = self.images(caller, "load", "--json", "x", self.save(hostile()))
                self.assertEqual(run.returncode, 0, run)
                left_out = json.loads(run.stdout)["left_out"]
                self.assertEqual(left_out["special_files"], 3)
                self.assertGreaterEqual(left_out["set_id_bits"], 2)
                tree = self.root(caller)
                for path in [tree, *tree.rglob("*")]:
                    status = path.lstat()
                    self.assertTrue(stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode), path)
                    self.assertEqual(status.st_mode & 0o6000, 0, path)
                    self.assertEqual([name for name in os.listxattr(path) if not name.startswith("system.")], [], path)
                    self.assertLessEqual(status.st_uid, 65535)
                if caller.uid == 0:
                    self.assertEqual((tree / "owned").stat().st_uid, 1234)
                self.assertEqual({path.name for path in (tree / "opaque").iterdir()}, {"in"})

    def test_in_the_sandbox(self):
        """Unpacking goes on, and what came of it gives the program nothing."""
        code = "for f in null disk fifo; do test -e /$f && echo $f; done; stat -c %a /setuid; cat /proc/self/status | head -n 99"
        for caller in callers():
            with self.subTest(caller=caller):
                self.load(caller, self.save(busybox_layer(self.work / f"tree-{caller}"), hostile()))
                run = caller.run([caller.belljar, "run", "--image", "x", "--", "sh", "-c", code], env=self.environment(caller))
                lines = run.stdout.decode().splitlines()
                self.assertEqual(lines[0], "755", run)
                for line in lines:
                    if line.startswith("Cap"):
                        self.assertEqual(line.split()[1], "0" * 16)

    def test_natively_they_are_made(self):
        """The positive control."""
        if root() is None:
            return
        tree = self.unpack_naively(hostile().tar())
        try:
            self.assertTrue(stat.S_ISCHR((tree / "null").lstat().st_mode))
        except FileNotFoundError:
            not_covered("devices made natively", "this host lets even root make none here")
        self.assertEqual((tree / "setuid").stat().st_mode & 0o6000, 0o6000)
        os.setxattr(tree / "capable", "security.capability", CAPABILITY)


if __name__ == "__main__":
    main()
