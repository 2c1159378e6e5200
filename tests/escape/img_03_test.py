"""IMG-03: the root itself as a link, a file or a device (CVE-2021-29136)."""

from harness import callers, main
from loading import ImageTest, Layer


class Img03(ImageTest):
    def test_the_root_stays_a_folder(self):
        for caller in callers():
            for name in (".", "/", "./", "./.", "//", "/."):
                for kind in ("link", "file", "char", "fifo", "hard"):
                    with self.subTest(caller=caller, name=name, kind=kind):
                        layer = Layer().file("f").entry(name, kind, link=str(self.outside) if kind != "hard" else "f").file("attack", b"x")
                        run = self.load(caller, self.save(layer))
                        if run.returncode == 0:  # "./" as a file is a folder's name of old
                            self.assertTrue(name.endswith("/"))
                            tree = self.root(caller)
                            self.assertEqual((tree.is_dir(), tree.is_symlink(), (tree / "attack").read_bytes()), (True, False, b"x"))
                            self.images(caller, "rm", "x")
                        else:
                            self.assert_refused(run, caller)
                        self.assertEqual([path.name for path in self.outside.iterdir()], ["file"])

    def test_a_root_that_is_a_folder(self):
        for caller in callers():
            for name in (".", "/", "./"):
                self.assertEqual(self.load(caller, self.save(Layer().folder(name, 0o700).file("f", b"x"))).returncode, 0)
                self.assertEqual((self.root(caller) / "f").read_bytes(), b"x")

    def test_natively_the_root_is_replaced(self):
        """The positive control: who removes what is in the way, and then makes the link."""
        root = self.folder / "root"
        root.mkdir()
        for name in (".",):
            path = root / name
            path.rmdir() if not any(root.iterdir()) else None
            root.symlink_to(self.outside)
        (root / "attack").write_text("x")
        self.assertTrue((self.outside / "attack").exists())


if __name__ == "__main__":
    main()
