"""IMG-11: a folder's entry in the place of a link, so that owner, mode or times of what the link leads to are changed
(CVE-2026-33056)."""

import os

from collecting import fingerprint
from harness import callers, main
from loading import ImageTest, Layer


class Img11(ImageTest):
    def ways(self) -> dict[str, list[Layer]]:
        target = str(self.outside)
        return {
            "same layer": [Layer().link("d", target).folder("d", 0o777, uid=1234, modified=1)],
            "upper layer": [Layer().link("d", target), Layer().folder("d", 0o777, uid=1234, modified=1)],
            "a file": [Layer().link("d", target + "/file"), Layer().file("d", b"", mode=0o777, uid=1234, modified=1)],
            "twice": [Layer().folder("d").link("d", target).folder("d", 0o777, modified=1)],
            "a hard link to a link": [Layer().link("l", target).hard("d", "l").folder("d", 0o777, modified=1)],
            "later times": [Layer().folder("d", modified=1).link("d", target)],
        }

    def look(self) -> tuple:
        status = os.lstat(self.outside)
        return (status.st_mode, status.st_uid, status.st_mtime_ns, sorted(os.listdir(self.outside)), fingerprint(self.outside / "file"))

    def test_no_metadata_changes(self):
        for caller in callers():
            os.chown(self.outside, caller.uid, caller.uid)
            before = self.look()
            for name, layers in self.ways().items():
                with self.subTest(caller=caller, way=name):
                    run = self.load(caller, self.save(*layers))
                    self.assertEqual(self.look(), before)
                    if run.returncode == 0:
                        self.images(caller, "rm", "x")
                    self.assertEqual(self.look(), before)

    def test_natively_it_changes(self):
        """The positive control: who makes the folder where there is none, and then sets what its entry says by name."""
        before = self.look()
        root = self.unpack_naively(Layer().link("d", str(self.outside)).tar())
        os.chmod(root / "d", 0o777)
        self.assertNotEqual(self.look(), before)

    def test_a_folder_again(self):
        for caller in callers():
            self.load(caller, self.save(Layer().folder("d", 0o700).file("d/f", b"x"), Layer().folder("d", 0o711)))
            tree = self.root(caller)
            self.assertEqual(((tree / "d").stat().st_mode & 0o777, (tree / "d/f").read_bytes()), (0o711, b"x"))


if __name__ == "__main__":
    main()
