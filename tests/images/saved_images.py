"""Images for tests, sound and hostile.

    layer = Layer().folder("etc").file("etc/motd", b"hello").link("bin", "usr/bin")
    image = Image([layer], config={"Cmd": ["/bin/sh"]})
    image.write_oci_archive(path)

Names and links are bytes or str and are written as they are: nothing here checks that they make sense.
"""

import gzip
import hashlib
import io
import json
import lzma
import os
import shutil
import subprocess
from pathlib import Path

BLOCK = 512
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar"
TYPES = {"file": b"0", "hard": b"1", "link": b"2", "char": b"3", "block": b"4", "folder": b"5", "fifo": b"6"}


def as_bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % BLOCK)


def octal(number: int, width: int) -> bytes:
    """A field of a tar header; in base 256 where it does not fit."""
    if 0 <= number < 8 ** (width - 1):
        return b"%0*o\0" % (width - 1, number)
    return bytes([0x80 if number >= 0 else 0xFF]) + number.to_bytes(width - 1, "big", signed=number < 0)


def header(name: bytes, kind: bytes, size: int, mode: int = 0o644, uid: int = 0, gid: int = 0, link: bytes = b"",
           modified: int = 1_000_000_000, device: tuple[int, int] = (0, 0)) -> bytes:
    block = bytearray(BLOCK)
    fields = ((0, name[:100]), (100, octal(mode, 8)), (108, octal(uid, 8)), (116, octal(gid, 8)), (124, octal(size, 12)),
              (136, octal(modified, 12)), (148, b" " * 8), (156, kind), (157, link[:100]), (257, b"ustar\00000"),
              (329, octal(device[0], 8)), (337, octal(device[1], 8)))
    for offset, value in fields:
        block[offset:offset + len(value)] = value
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def pax_records(records: dict[str, str | bytes]) -> bytes:
    out = b""
    for key, value in records.items():
        rest = b" %s=%s\n" % (key.encode(), as_bytes(value))
        length = len(rest)
        while len(b"%d" % length) + len(rest) != length:
            length = len(b"%d" % length) + len(rest)
        out += b"%d%s" % (length, rest)
    return out


class Layer:
    """A layer, entry by entry. Parents are not made of themselves."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def entry(self, name: str | bytes, kind: str = "file", content: bytes = b"", link: str | bytes = b"",
              pax: dict[str, str | bytes] | None = None, size: int | None = None, **fields) -> "Layer":
        """`size`: what the header says, where that is not the content's."""
        name, link, records = as_bytes(name), as_bytes(link), dict(pax or {})
        if len(name) > 100:
            records.setdefault("path", name)
        if len(link) > 100:
            records.setdefault("linkpath", link)
        if records:
            text = pax_records(records)
            self.parts += [header(b"pax", b"x", len(text)), padded(text)]
        size = len(content) if size is None else size
        self.parts += [header(name, TYPES.get(kind, as_bytes(kind)), size, link=link, **fields), padded(content)]
        return self

    def file(self, name: str | bytes, content: bytes = b"", **fields) -> "Layer":
        return self.entry(name, "file", content, **fields)

    def folder(self, name: str | bytes, mode: int = 0o755, **fields) -> "Layer":
        return self.entry(name, "folder", mode=mode, **fields)

    def link(self, name: str | bytes, target: str | bytes, **fields) -> "Layer":
        return self.entry(name, "link", link=target, mode=0o777, **fields)

    def hard(self, name: str | bytes, target: str | bytes, **fields) -> "Layer":
        return self.entry(name, "hard", link=target, **fields)

    def raw(self, content: bytes) -> "Layer":
        self.parts.append(content)
        return self

    def tree(self, folder: Path) -> "Layer":
        """Everything of a folder of the host."""
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            mode = path.lstat().st_mode & 0o7777
            if path.is_symlink():
                self.link(name, os.readlink(path))
            elif path.is_dir():
                self.folder(name, mode)
            else:
                self.file(name, path.read_bytes(), mode=mode)
        return self

    def tar(self) -> bytes:
        return b"".join(self.parts) + bytes(2 * BLOCK)


def pack(content: bytes, how: str) -> bytes:
    match how:
        case "plain":
            return content
        case "gzip":
            return gzip.compress(content, 6, mtime=0)
        case "xz":
            return lzma.compress(content, preset=1)
        case "zstd":
            return subprocess.run(["zstd", "-q", "-c"], input=content, stdout=subprocess.PIPE, check=True).stdout
    raise ValueError(how)


class Image:
    """An image of layers (Layer, or bytes of a tar archive). The documents can be changed before they are written:
    `blobs` maps names ("blobs/sha256/...") to contents, `index` is the text of index.json."""

    def __init__(self, content: list, config: dict | None = None, packing: str = "gzip", platform: dict | None = None,
                 **changes) -> None:
        """`changes`: diff_ids, layers or config, functions that get the list or object and return another."""
        def changed(name, value):
            return changes.get(name, lambda same: same)(value)

        self.tars = [layer.tar() if isinstance(layer, Layer) else layer for layer in content]
        packed = [pack(tar, packing) for tar in self.tars]
        suffix = "" if packing == "plain" else f"+{packing}"
        self.blobs: dict[str, bytes] = {}
        self.config = json.dumps(changed("config", {
            "architecture": "amd64", "os": "linux", "config": config or {},
            "rootfs": {"type": "layers", "diff_ids": changed("diff_ids", [digest(tar) for tar in self.tars])}})).encode()
        manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                    "config": self.add("application/vnd.oci.image.config.v1+json", self.config),
                    "layers": changed("layers", [self.add(OCI_LAYER + suffix, layer) for layer in packed])}
        self.manifest = json.dumps(changed("manifest", manifest)).encode()
        descriptor = self.add("application/vnd.oci.image.manifest.v1+json", self.manifest)
        if platform:
            descriptor["platform"] = platform
        self.index = json.dumps({"schemaVersion": 2, "manifests": changed("manifests", [descriptor])}).encode()

    def add(self, media_type: str, content: bytes) -> dict:
        """Adds a blob and returns its descriptor."""
        name = digest(content)
        self.blobs["blobs/sha256/" + name.removeprefix("sha256:")] = content
        return {"mediaType": media_type, "digest": name, "size": len(content)}

    def members(self) -> dict[str, bytes]:
        return {**self.blobs, "oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": self.index}

    def write_oci_layout(self, folder: Path) -> Path:
        for name, content in self.members().items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        return folder

    def write_oci_archive(self, path: Path, packing: str = "plain") -> Path:
        archive = Layer()
        for name, content in self.members().items():
            archive.file(name, content)
        path.write_bytes(pack(archive.tar(), packing))
        return path

    def write_docker_archive(self, path: Path, packing: str = "plain", config_name: str | None = None) -> Path:
        archive = Layer()
        config_name = config_name or digest(self.config).removeprefix("sha256:") + ".json"
        names = []
        for i, tar in enumerate(self.tars):
            twin = self.tars.index(tar)
            names.append(f"layer{i}/layer.tar")
            if twin < i:  # as docker save does it
                archive.link(names[-1], f"../{names[twin]}")
            else:
                archive.file(names[-1], tar)
        archive.file(config_name, self.config)
        archive.file("manifest.json", json.dumps([{"Config": config_name, "RepoTags": ["test:1"], "Layers": names}]).encode())
        path.write_bytes(pack(archive.tar(), packing))
        return path


def busybox_tree(folder: Path) -> Path:
    """A tree in which a shell and the small tools of Debian's busybox-static run."""
    for name in ("bin", "etc", "root", "usr/bin", "opt"):
        (folder / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", folder / "bin/busybox")
    for name in ("sh", "ls", "cat", "id", "env", "echo", "stat", "touch", "pwd", "test", "readlink", "find", "sleep", "wc",
                 "ps", "chown", "sha256sum", "head", "mkdir"):
        (folder / "bin" / name).symlink_to("busybox")
    (folder / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\napp:x:1234:2345::/opt:/bin/sh\n")
    (folder / "etc/group").write_text("root:x:0:\napps:x:2345:\nextra:x:3456:app\n")
    for path in folder.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)
    (folder / "root").chmod(0o700)
    return folder


def busybox_layer(folder: Path) -> Layer:
    return Layer().tree(busybox_tree(folder))


def zeros_gzip(size: int) -> bytes:
    """A gzip stream of `size` zeros, in little memory."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9, mtime=0) as stream:
        block = bytes(1 << 20)
        for _ in range(size >> 20):
            stream.write(block)
    return out.getvalue()
