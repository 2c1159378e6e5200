"""IMG-01: layer entries whose names climb out: .., absolute, NUL, very long, and the same in hard links."""

from harness import callers, main
from loading import ImageTest, Layer, busybox_layer

CLIMBING = ["../attack", "../../attack", "a/../../attack", "./../attack", "..", "a/..", "../", "a/b/../../../attack"]
CONFINED = ["/attack", "//attack", "/./attack"]
LONG = ["n" * 256, "d/" * 130 + "f", "/".join(["n" * 200] * 30)]


class Img01(ImageTest):
    def test_names_that_climb(self):
        for caller in callers():
            self.environment(caller)
            before = self.around()
            for name in CLIMBING:
                for layer in (Layer().folder("a").file(name, b"attack"), Layer().folder("a").folder(name),
                              Layer().file("f").hard(name, "f"), Layer().file("f").hard("h", name), Layer().link(name, "/etc")):
                    with self.subTest(caller=caller, name=name):
                        self.assert_refused(self.load(caller, self.save(layer)), caller)
            self.assertEqual({path: row for path, row in self.around().items() if "/made" not in path},
                             {path: row for path, row in before.items() if "/made" not in path})

    def test_absolute_names_lie_in_the_tree(self):
        for caller in callers():
            for name in CONFINED:
                with self.subTest(caller=caller, name=name):
                    self.assertEqual(self.load(caller, self.save(Layer().file(name, b"x"))).returncode, 0)
                    self.assertEqual((self.root(caller) / "attack").read_bytes(), b"x")
        self.assertFalse(self.exists("/attack"))

    def exists(self, path: str) -> bool:
        import os
        return os.path.lexists(path)

    def test_names_that_are_no_names(self):
        for caller in callers():
            for name in LONG:
                with self.subTest(caller=caller, name=name[:20]):
                    self.assert_refused(self.load(caller, self.save(Layer().file(name))), caller)
            for path in (b"a\0/../../attack", b"a\0b"):
                with self.subTest(caller=caller, path=path):
                    run = self.load(caller, self.save(Layer().file("short", pax={"path": path})))
                    if run.returncode == 0:  # what a name with NUL means, it means up to there
                        self.assertEqual([entry.name for entry in self.root(caller).iterdir()], ["a"])
                        self.images(caller, "rm", "x")

    def test_natively_they_climb(self):
        """The positive control."""
        root = self.unpack_naively(Layer().file("../attack", b"attack").tar())
        self.assertTrue((root.parent / "attack").exists())

    def test_sound_names(self):
        for caller in callers():
            name = "n" * 255 + "/" + "m" * 200
            self.assertEqual(self.load(caller, self.save(Layer().file("./a/.../b..", b"x").file(name, b"y"))).returncode, 0)
            self.assertEqual((self.root(caller) / "a/.../b..").read_bytes(), b"x")
            self.assertEqual((self.root(caller) / name).read_bytes(), b"y")


if __name__ == "__main__":
    main()
