"""IMG-02: a link in a layer that leads out, and files, folders and hard links through it in the same or an upper layer."""

from harness import callers, main
from loading import ImageTest, Layer


class Img02(ImageTest):
    def ways(self) -> dict[str, list[Layer]]:
        target = str(self.outside)
        link = Layer().link("etc", target)
        return {
            "same layer": [Layer().link("etc", target).file("etc/file", b"attack")],
            "upper layer": [link, Layer().file("etc/file", b"attack")],
            "a new file": [link, Layer().file("etc/new", b"attack")],
            "a folder": [link, Layer().folder("etc/new")],
            "a chain": [Layer().link("a", "b").link("b", "c").link("c", target), Layer().file("a/file", b"attack")],
            "relative": [Layer().link("etc", "../" * 40 + target.lstrip("/")), Layer().file("etc/file", b"attack")],
            "deep": [Layer().folder("d/e").link("d/e/f", target), Layer().file("d/e/f/file", b"attack")],
            "a hard link to it": [Layer().link("l", target + "/file").hard("h", "l"), Layer().file("x")],
            "a hard link through it": [link, Layer().hard("stolen", "etc/file")],
            "over a link to a file": [Layer().link("f", target + "/file"), Layer().file("f", b"attack")],
            "proc": [Layer().link("p", "/proc/self/root"), Layer().file("p/tmp/attack", b"attack")],
        }

    def test_nothing_goes_through(self):
        for caller in callers():
            self.outside.chmod(0o777)
            (self.outside / "file").chmod(0o666)
            for name, layers in self.ways().items():
                with self.subTest(caller=caller, way=name):
                    run = self.load(caller, self.save(*layers))
                    if name in ("over a link to a file", "a hard link to it"):  # the link gives way, or is linked itself
                        self.assertEqual(run.returncode, 0, run)
                        if name == "over a link to a file":
                            self.assertEqual((self.root(caller) / "f").read_bytes(), b"attack")
                        self.images(caller, "rm", "x")
                    else:
                        self.assert_refused(run, caller)
                    self.assertEqual([path.name for path in self.outside.iterdir()], ["file"])
                    self.assertEqual((self.outside / "file").read_text(), self.canary)
                    self.assertEqual((self.outside / "file").stat().st_nlink, 1)

    def test_natively_it_goes_through(self):
        root = self.unpack_naively(Layer().link("etc", str(self.outside)).file("etc/new", b"attack").tar())
        self.assertTrue((root / "etc").is_symlink())
        self.assertEqual((self.outside / "new").read_bytes(), b"attack")

    def test_links_that_nothing_goes_through(self):
        for caller in callers():
            self.assertEqual(self.load(caller, self.save(Layer().folder("usr/bin").link("bin", "usr/bin").link("l", "/etc"),
                                                         Layer().file("usr/bin/x", b"x"))).returncode, 0)
            self.assertEqual((self.root(caller) / "bin/x").read_bytes(), b"x")


if __name__ == "__main__":
    main()
