"""What the cases of image handling share: a store for each caller, hostile layers, and a look at everything around the tree."""

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

from collecting import fingerprint
from harness import REPOSITORY, Caller
from outside import OutsideTest

sys.path.insert(0, str(REPOSITORY / "tests" / "images"))
from saved_images import Image, Layer, busybox_layer, digest, pack, zeros_gzip  # noqa: E402, F401


class ImageTest(OutsideTest):
    def setUp(self) -> None:
        super().setUp()
        self.work = self.folder / "made"
        self.work.mkdir()
        self.count = 0
        self.outside = self.folder / "outside"
        self.outside.mkdir()
        (self.outside / "file").write_text(self.canary)
        (self.outside / "file").chmod(0o600)

    def save(self, *layers: Layer | bytes, **more) -> Path:
        """An OCI archive of these layers."""
        self.count += 1
        return Image(list(layers), **more).write_oci_archive(self.work / f"image{self.count}.tar")

    def environment(self, caller: Caller) -> dict[str, str]:
        folder = self.folder / f"home-{caller}"
        if not folder.exists():
            self.host_folder(folder.name, caller)
        return {"BELLJAR_IMAGES": str(folder / "images")}

    def images(self, caller: Caller, *arguments: str | Path, **options) -> subprocess.CompletedProcess:
        return caller.run([caller.belljar, "image", *map(str, arguments)], env=self.environment(caller), **options)

    def load(self, caller: Caller, source: Path, *flags: str, name: str = "x") -> subprocess.CompletedProcess:
        return self.images(caller, "load", *flags, name, source)

    def root(self, caller: Caller, name: str = "x") -> Path:
        """The tree of a loaded image."""
        record = json.loads(self.images(caller, "inspect", "--json", name).stdout)
        return Path(self.environment(caller)["BELLJAR_IMAGES"]) / "trees" / record["tree"] / "root"

    def names(self, caller: Caller) -> list[str]:
        return [row["name"] for row in json.loads(self.images(caller, "ls", "--json").stdout)["images"]]

    def assert_refused(self, run: subprocess.CompletedProcess, caller: Caller, *words: str) -> None:
        """One line, and nothing of it is kept."""
        self.assertEqual(run.returncode, 125, run)
        lines = run.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, run)
        for word in words:
            self.assertIn(word, lines[0])
        self.assertEqual([c for c in lines[0] if ord(c) < 32 or 0x7F <= ord(c) < 0xA0], [])
        store = Path(self.environment(caller)["BELLJAR_IMAGES"])
        self.assertEqual(list((store / "building").iterdir()) + list((store / "names").iterdir()), [])

    def around(self) -> dict[str, tuple]:
        """Everything in this test's folder that is no unpacked tree."""
        seen = {}
        for here, folders, files in os.walk(self.folder):
            folders[:] = [name for name in folders if name != "images"]
            for name in files:
                seen[os.path.join(here, name)] = fingerprint(os.path.join(here, name))
            status = os.lstat(here)
            seen[here] = (status.st_mode, status.st_uid, sorted(files))
        return seen

    def unpack_naively(self, tar: bytes) -> Path:
        """What a tool makes of it that trusts names: the control."""
        self.count += 1
        root = self.folder / f"naive{self.count}" / "deep" / "root"
        root.mkdir(parents=True)
        with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
            for member in archive:
                try:
                    archive.extract(member, root, numeric_owner=True)
                except (OSError, KeyError, ValueError, tarfile.TarError):
                    pass
        return root
