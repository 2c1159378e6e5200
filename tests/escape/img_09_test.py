"""IMG-09: wrong digests and sizes at every level, blobs that are cut off, and blobs that change after they were checked."""

import hashlib
import json
import os
import threading

from harness import callers, main
from loading import Image, ImageTest, Layer, digest

OTHER = "sha256:" + hashlib.sha256(b"other").hexdigest()


def renamed(row: dict) -> dict:
    return {**row, "digest": OTHER}


class Img09(ImageTest):
    def layer(self) -> Layer:
        return Layer().file("f", b"content" * 100)

    def wrong(self) -> dict[str, Image]:
        """Images that are wrong in one place each."""
        images = {
            "diff_id": Image([self.layer()], diff_ids=lambda _: [OTHER]),
            "no diff_id": Image([self.layer()], diff_ids=lambda _: []),
            "one diff_id too many": Image([self.layer()], diff_ids=lambda ids: ids * 2),
            "layer digest": Image([self.layer()], layers=lambda rows: [renamed(rows[0])]),
            "layer size": Image([self.layer()], layers=lambda rows: [{**rows[0], "size": rows[0]["size"] + 1}]),
            "layer size below": Image([self.layer()], layers=lambda rows: [{**rows[0], "size": rows[0]["size"] - 1}]),
            "config digest": Image([self.layer()], manifest=lambda m: {**m, "config": renamed(m["config"])}),
            "config size": Image([self.layer()], manifest=lambda m: {**m, "config": {**m["config"], "size": 7}}),
            "manifest digest": Image([self.layer()], manifests=lambda rows: [renamed(rows[0])]),
            "manifest size": Image([self.layer()], manifests=lambda rows: [{**rows[0], "size": 7}]),
            "another algorithm": Image([self.layer()], layers=lambda rows: [{**rows[0], "digest": "md5:" + "0" * 32}]),
        }
        for part in ("layer", "config", "manifest"):  # the blob is another than its name says
            for change in ("changed", "cut", "longer", "missing"):
                image = Image([self.layer()])
                manifest = json.loads(image.manifest)
                name = {"layer": manifest["layers"][0]["digest"], "config": manifest["config"]["digest"], "manifest": digest(image.manifest)}[part]
                path = "blobs/sha256/" + name.removeprefix("sha256:")
                content = image.blobs[path]
                if change == "missing":
                    del image.blobs[path]
                else:
                    image.blobs[path] = {"changed": content[:-1] + bytes([content[-1] ^ 1]), "cut": content[:-1], "longer": content + b" "}[change]
                images[f"{part} {change}"] = image
        # The other digest leads somewhere, so that only its check can refuse it.
        for image in images.values():
            image.blobs.setdefault("blobs/sha256/" + OTHER.removeprefix("sha256:"), b"other")
        return images

    def test_nothing_wrong_is_used(self):
        for caller in callers():
            for name, image in self.wrong().items():
                for form in ("archive", "layout"):
                    with self.subTest(caller=caller, wrong=name, form=form):
                        self.count += 1
                        path = self.work / f"wrong{self.count}"
                        source = image.write_oci_archive(path) if form == "archive" else image.write_oci_layout(path)
                        self.assert_refused(self.load(caller, source), caller)
            store = self.folder / f"home-{caller}" / "images"
            self.assertEqual(list((store / "trees").iterdir()), [])

    def test_the_control(self):
        """Right in all places, the same image loads; its content is that of the wrong ones."""
        for caller in callers():
            self.assertEqual(self.load(caller, self.save(self.layer())).returncode, 0)
            self.assertEqual((self.root(caller) / "f").read_bytes(), b"content" * 100)

    def test_a_cut_off_archive(self):
        source = self.save(self.layer())
        whole = source.read_bytes()
        for caller in callers():
            for size in (0, 100, 512, 1024, len(whole) // 2, len(whole) - 2000):
                with self.subTest(caller=caller, size=size):
                    source.write_bytes(whole[:size])
                    self.assert_refused(self.load(caller, source), caller)

    def test_changed_while_it_is_read(self):
        """What is unpacked is what was hashed: the bytes are read once. Another file is put in the layer's place all the time."""
        for caller in callers():
            with self.subTest(caller=caller):
                self.count += 1
                good, evil = (Image([Layer().file("f", text * 300_000)], packing="plain") for text in (b"good", b"evil"))
                layout = good.write_oci_layout(self.work / f"layout{self.count}")
                name = next(path for path in (layout / "blobs/sha256").iterdir() if path.stat().st_size > 1_000_000)
                swapped = next(content for content in evil.blobs.values() if len(content) > 1_000_000)
                original, ended = name.read_bytes(), threading.Event()

                def swap():
                    while not ended.is_set():
                        for content in (swapped, original):
                            fd = os.open(name, os.O_WRONLY)
                            os.pwrite(fd, content, 0)
                            os.close(fd)

                thread = threading.Thread(target=swap)
                thread.start()
                try:
                    for _ in range(15):
                        run = self.load(caller, layout)
                        if run.returncode == 0:
                            self.assertEqual((self.root(caller) / "f").read_bytes(), b"good" * 300_000)
                            self.images(caller, "rm", "x")
                        else:
                            self.assertIn(b"sha256:", run.stderr)
                finally:
                    ended.set()
                    thread.join()


if __name__ == "__main__":
    main()
