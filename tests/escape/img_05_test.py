"""IMG-05: whiteouts through links, and whiteouts with odd names."""

import shutil

from harness import callers, main
from loading import ImageTest, Layer

BASE = lambda: Layer().folder("d/e").file("d/e/f", b"lower").file("keep", b"lower")  # noqa: E731


class Img05(ImageTest):
    def setUp(self) -> None:
        super().setUp()
        self.outside.chmod(0o777)

    def test_through_links(self):
        for caller in callers():
            for target in (str(self.outside), "../" * 40 + str(self.outside).lstrip("/"), "..", "/"):
                link = Layer().link("l", target).folder("d").link("d/l", target)
                for name in ("l/.wh.file", "l/.wh..wh..opq", "d/l/.wh.file", "d/l/.wh..wh..opq"):
                    with self.subTest(caller=caller, target=target, name=name):
                        self.assert_refused(self.load(caller, self.save(link, Layer().file(name))), caller)
                        self.assertEqual((self.outside / "file").read_text(), self.canary)
                with self.subTest(caller=caller, target=target):  # the link itself goes, not what it leads to
                    self.assertEqual(self.load(caller, self.save(link, Layer().file(".wh.l").file("d/.wh.l"))).returncode, 0)
                    self.assertFalse((self.root(caller) / "l").is_symlink())
                    self.assertEqual((self.outside / "file").read_text(), self.canary)
                    self.images(caller, "rm", "x")

    def test_odd_names(self):
        for caller in callers():
            for name in (".wh.", ".wh..", ".wh...", "d/.wh.", "d/.wh..", "d/.wh...", ".wh./x", ".wh.../x"):
                with self.subTest(caller=caller, name=name):
                    run = self.load(caller, self.save(BASE(), Layer().file(name)))
                    if run.returncode == 0:
                        root = self.root(caller)
                        self.assertEqual(((root / "keep").exists(), (root / "d/e/f").exists()), (True, True))
                        self.assertFalse(any(path.name.startswith(".wh.") for path in root.rglob("*")))
                        self.images(caller, "rm", "x")
                    else:
                        self.assert_refused(run, caller)
                    self.assertEqual((self.outside / "file").read_text(), self.canary)

    def test_what_they_are_for(self):
        cases = {
            "a file": (Layer().file(".wh.keep"), {"d", "d/e", "d/e/f"}),
            "a folder": (Layer().file(".wh.d"), {"keep"}),
            "as a hard link": (Layer().file("a").hard(".wh.keep", "a"), {"a", "d", "d/e", "d/e/f"}),
            "opaque": (Layer().folder("d").file("d/.wh..wh..opq").file("d/new"), {"d", "d/new", "keep"}),
            "opaque after": (Layer().folder("d").file("d/new").file("d/.wh..wh..opq"), {"d", "d/new", "keep"}),
            "an opaque root": (Layer().file(".wh..wh..opq").file("new"), {"new"}),
            "of nothing there": (Layer().file(".wh.nothing").file("d/.wh.nothing"), {"d", "d/e", "d/e/f", "keep"}),
        }
        for caller in callers():
            for name, (layer, wanted) in cases.items():
                with self.subTest(caller=caller, case=name):
                    self.assertEqual(self.load(caller, self.save(BASE(), layer)).returncode, 0)
                    root = self.root(caller)
                    self.assertEqual({str(path.relative_to(root)) for path in root.rglob("*")}, wanted)

    def test_natively_a_whiteout_goes_through(self):
        """The positive control: who removes by name."""
        root = self.folder / "root"
        root.mkdir()
        (root / "l").symlink_to(self.outside)
        for name in ("l/.wh..wh..opq",):
            folder = root / name.rsplit("/", 1)[0]
            for path in folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.assertFalse((self.outside / "file").exists())


if __name__ == "__main__":
    main()
