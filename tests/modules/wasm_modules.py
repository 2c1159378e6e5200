"""WebAssembly modules for the tests: from C, by clang and wasi-libc, and from the text format, by wat2wasm."""

import functools
import subprocess
import tempfile
from pathlib import Path

CLANG = "clang-19"
_folder = tempfile.TemporaryDirectory(prefix="belljar-modules-")


def _path(name: str) -> Path:
    return Path(_folder.name) / name


@functools.cache
def from_c(source: str, *flags: str) -> bytes:
    """A program for WASI preview 1."""
    code, module = _path("module.c"), _path("module.wasm")
    code.write_text(source)
    subprocess.run([CLANG, "--target=wasm32-wasi", "-O1", *flags, "-o", module, code], check=True, timeout=120)
    return module.read_bytes()


@functools.cache
def from_wat(text: str, *flags: str) -> bytes:
    code, module = _path("module.wat"), _path("module.wasm")
    code.write_text(text)
    subprocess.run(["wat2wasm", *flags, "-o", module, code], check=True, timeout=120)
    return module.read_bytes()


def command(body: str, imports: str = "", memory: str = '(memory (export "memory") 1)', more: str = "") -> bytes:
    """A module whose _start is `body`."""
    return from_wat(f'(module {imports} {memory} {more} (func (export "_start") {body}))')


def leb(number: int) -> bytes:
    """An unsigned number as modules have it."""
    out = bytearray()
    while True:
        byte = number & 0x7F
        number >>= 7
        out.append(byte | (0x80 if number else 0))
        if not number:
            return bytes(out)


def section(kind: int, content: bytes) -> bytes:
    return bytes([kind]) + leb(len(content)) + content


def many_functions(count: int, body: bytes = b"\x00\x0b") -> bytes:
    """`count` functions of one body (locals and code); the first one is _start."""
    one = leb(len(body)) + body
    return (b"\0asm\1\0\0\0" + section(1, b"\x01\x60\x00\x00") + section(3, leb(count) + b"\x00" * count) +
            section(7, b"\x01\x06_start\x00\x00") + section(10, leb(count) + one * count))
