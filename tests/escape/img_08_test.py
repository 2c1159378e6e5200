"""IMG-08: decompression bombs: zeros packed by gzip, zstd and xz, packed streams in packed streams, entries without number, giant
documents, holes."""

# ctest: timeout 300
import gzip
import os
import time
from pathlib import Path

from harness import callers, main
from loading import Image, ImageTest, Layer, pack, zeros_gzip
from outside import MIB, crowding, memory_of

GIB = 1 << 30


def bomb(packing: str, size: int) -> bytes:
    """A layer with one file of `size` zeros."""
    head = Layer().entry("zeros", size=size).parts[0]
    if packing == "gzip":
        return gzip.compress(head, mtime=0) + zeros_gzip(size)
    return pack(head + bytes(size), packing)


class Img08(ImageTest):
    def load_watched(self, caller, source: Path, *flags: str):
        """The exit status, what was said, the peak memory of all processes, and the space that was taken."""
        process = caller.popen([caller.belljar, "image", "load", *flags, "x", str(source)], env=self.environment(caller),
                               stdout=-3, stderr=-1)
        peak = 0
        while process.poll() is None:
            peak = max(peak, memory_of(process.pid))
            time.sleep(0.01)
        said = process.stderr.read()
        process.stderr.close()
        store = Path(self.environment(caller)["BELLJAR_IMAGES"])
        used = sum(path.lstat().st_blocks * 512 for path in store.rglob("*"))
        return process.returncode, said.decode(), peak, used

    def stopped(self, caller, source: Path, *flags: str, words: str = "") -> None:
        start = time.monotonic()
        status, said, peak, used = self.load_watched(caller, source, *flags)
        self.assertEqual(status, 125, said)
        self.assertIn(words, said)
        self.assertLess(peak, 256 * MIB)
        self.assertLess(used, 1 * MIB)
        self.assertLess(time.monotonic() - start, 60 * crowding())
        self.assertEqual(self.names(caller), [])

    def test_zeros(self):
        for caller in callers():
            for packing, size in (("gzip", 2 * GIB), ("zstd", GIB // 4), ("xz", GIB // 4)):
                with self.subTest(caller=caller, packing=packing):
                    layer = bomb(packing, size)
                    self.assertLess(len(layer), 3 * MIB)
                    image = Image([Layer()])
                    descriptor = image.add(f"application/vnd.oci.image.layer.v1.tar+{packing}", layer)
                    source = self.replaced_layer(descriptor, layer)
                    self.stopped(caller, source, "--max-size", "64M", words="--max-size")

    def replaced_layer(self, descriptor: dict, content: bytes) -> Path:
        self.count += 1
        image = Image([Layer()], layers=lambda _: [descriptor])
        image.blobs["blobs/sha256/" + descriptor["digest"].removeprefix("sha256:")] = content
        return image.write_oci_archive(self.work / f"bomb{self.count}.tar")

    def test_packed_in_packed(self):
        inner = gzip.compress(gzip.compress(Layer().file("f", b"x" * 1000).tar()))
        for caller in callers():
            self.stopped(caller, self.save(inner))
            archive = self.work / "twice.tar.gz.gz"
            archive.write_bytes(gzip.compress(gzip.compress(Layer().file("f").tar())))
            self.stopped(caller, archive)

    def test_entries_without_number(self):
        layer = Layer()
        for number in range(20_000):
            layer.file(f"f{number}")
        for caller in callers():
            self.stopped(caller, self.save(layer), "--max-entries", "5000", words="--max-entries")

    def test_time(self):
        for caller in callers():
            with self.subTest(caller=caller):
                layer = bomb("gzip", 4 * GIB)
                descriptor = Image([Layer()]).add("application/vnd.oci.image.layer.v1.tar+gzip", layer)
                self.stopped(caller, self.replaced_layer(descriptor, layer), "--timeout", "300ms", words="--timeout")

    def test_giant_documents(self):
        for caller in callers():
            for part in ("index", "manifest", "config"):
                with self.subTest(caller=caller, part=part):
                    grow = {"index": {"manifests": lambda rows: rows + [{"annotations": {"x": "y" * (5 * MIB)}}]},
                            "manifest": {"manifest": lambda manifest: {**manifest, "annotations": {"x": "y" * (5 * MIB)}}},
                            "config": {"config": {"Labels": {"x": "y" * (5 * MIB)}}}}[part]
                    self.stopped(caller, self.save(Layer().file("f"), **grow), words="MiB")

    def test_holes_count(self):
        """A sparse entry of a TiB takes no room, and is refused all the same."""
        sparse = Layer().entry("hole", content=b"1\n0\n0\n".ljust(512, b"\0"),
                               pax={"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "hole", "GNU.sparse.realsize": str(1 << 40)})
        for caller in callers():
            self.stopped(caller, self.save(sparse))

    def test_natively_it_takes_the_room(self):
        """The positive control: reading what the small layer unpacks to."""
        layer = bomb("gzip", GIB // 4)
        self.assertEqual(len(gzip.decompress(layer)), GIB // 4 + 512)

    def test_what_fits(self):
        for caller in callers():
            run = self.load(caller, self.save(Layer().file("f", bytes(20 * MIB))), "--max-size", "32M")
            self.assertEqual(run.returncode, 0, run)
            self.assertEqual(os.path.getsize(self.root(caller) / "f"), 20 * MIB)


if __name__ == "__main__":
    main()
