"""IMG-14: loads that are killed, that run at once, and that fill the disk; the image is then used."""

# ctest: timeout 300
import random
import signal
import subprocess
import time
from pathlib import Path

from collecting import tree
from harness import callers, main, not_covered
from loading import ImageTest, Layer, busybox_layer


class Img14(ImageTest):
    def source(self, caller) -> Path:
        blob = random.Random(3).randbytes(8 << 20)
        return self.save(busybox_layer(self.work / f"tree-{caller}"), Layer().file("opt/blob", blob), config={"Cmd": ["echo", "whole"]})

    def assert_whole(self, caller, reference: dict) -> None:
        self.assertEqual(tree(self.root(caller)), reference)
        run = caller.run([caller.belljar, "run", "--image", "x"], env=self.environment(caller))
        self.assertEqual(run.stdout, b"whole\n", run)

    def reference(self, caller, source: Path) -> tuple[dict, float]:
        start = time.monotonic()
        self.assertEqual(self.load(caller, source).returncode, 0)
        seconds = time.monotonic() - start
        found = tree(self.root(caller))
        self.images(caller, "rm", "x")
        return found, seconds

    def trees(self, caller) -> int:
        return len(list((Path(self.environment(caller)["BELLJAR_IMAGES"]) / "trees").iterdir()))

    def test_killed(self):
        for caller in callers():
            with self.subTest(caller=caller):
                source = self.source(caller)
                reference, seconds = self.reference(caller, source)
                kept = 0
                for number in range(25):
                    process = caller.popen([caller.belljar, "image", "load", "x", str(source)], env=self.environment(caller),
                                           stdout=subprocess.DEVNULL)
                    time.sleep(seconds * number / 20)
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    if self.names(caller):
                        kept += 1
                        self.assert_whole(caller, reference)
                        self.images(caller, "rm", "x")
                    else:
                        run = caller.run([caller.belljar, "run", "--image", "x"], env=self.environment(caller))
                        self.assertEqual(run.returncode, 125)
                self.assertLess(kept, 25, "no kill came in the midst of it")
                self.assertEqual(self.load(caller, source).returncode, 0)
                self.assert_whole(caller, reference)
                self.assertEqual(self.trees(caller), 1)

    def test_at_once(self):
        for caller in callers():
            with self.subTest(caller=caller):
                source = self.source(caller)
                reference, _ = self.reference(caller, source)
                loads = [caller.popen([caller.belljar, "image", "load", name, str(source)], env=self.environment(caller),
                                      stdout=subprocess.DEVNULL) for name in ("x", "y", "x", "z")]
                self.assertEqual([load.wait(timeout=100) for load in loads], [0] * 4)
                self.assertEqual((sorted(self.names(caller)), self.trees(caller)), (["x", "y", "z"], 1))
                self.assert_whole(caller, reference)

    def test_disk_full(self):
        for caller in callers():
            if callers()[0].uid != 0:
                not_covered("a full disk under the store", "needs root to mount a small tmpfs")
                return
            with self.subTest(caller=caller):
                source = self.source(caller)
                reference, _ = self.reference(caller, source)
                store = Path(self.environment(caller)["BELLJAR_IMAGES"])
                subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=6M,mode=700,uid={caller.uid},gid={caller.uid}", "small", store], check=True)
                try:
                    for _ in range(3):
                        run = self.load(caller, source)
                        self.assert_refused(run, caller, "no room on the disk")
                    subprocess.run(["mount", "-o", "remount,size=40M", store], check=True)
                    self.assertEqual(self.load(caller, source).returncode, 0)
                    self.assert_whole(caller, reference)
                finally:
                    subprocess.run(["umount", store], check=True)

    def test_natively_a_killed_unpacking_leaves_a_half(self):
        """The positive control."""
        root = self.folder / "half"
        root.mkdir()
        source = self.work / "plain.tar"
        source.write_bytes(Layer().file("blob", bytes(400 << 20)).file("last", b"x").tar())
        process = subprocess.Popen(["tar", "-C", root, "-xf", source])
        self.wait_for(lambda: (root / "blob").exists(), "the first file")
        process.kill()
        process.wait()
        self.assertFalse((root / "last").exists())


if __name__ == "__main__":
    main()
