"""Builds the package as pip asks for it (PEP 517), with the standard library alone: so that `pip install ./sdk/python`
fetches nothing, and works where there is no network."""

from __future__ import annotations

import base64
import hashlib
import re
import tarfile
import zipfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
NAME = "belljar"
VERSION = re.search(r'^__version__ = "(.+)"$', (TOP / NAME / "__init__.py").read_text(), re.MULTILINE)[1]

METADATA = f"""\
Metadata-Version: 2.1
Name: {NAME}
Version: {VERSION}
Summary: Runs programs that nobody has read, in a sandbox of their own
License: Apache-2.0
Requires-Python: >=3.9
Description-Content-Type: text/markdown

{(TOP / "README.md").read_text()}"""

WHEEL = """\
Wheel-Version: 1.0
Generator: belljar_build
Root-Is-Purelib: true
Tag: py3-none-any
"""


def package_files() -> dict[str, bytes]:
    """Every file of the package, by its path in the wheel."""
    files = sorted(p for p in (TOP / NAME).iterdir() if p.suffix == ".py" or p.name == "py.typed")
    return {f"{NAME}/{path.name}": path.read_bytes() for path in files}


def record_line(path: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    info = f"{NAME}-{VERSION}.dist-info"
    files = {**package_files(), f"{info}/METADATA": METADATA.encode(), f"{info}/WHEEL": WHEEL.encode()}
    record = "".join(record_line(path, content) for path, content in files.items()) + f"{info}/RECORD,,\n"
    name = f"{NAME}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in {**files, f"{info}/RECORD": record.encode()}.items():
            wheel.writestr(path, content)
    return name


def build_sdist(sdist_directory, config_settings=None) -> str:
    base = f"{NAME}-{VERSION}"
    with tarfile.open(Path(sdist_directory, f"{base}.tar.gz"), "w:gz") as archive:
        for path in ("pyproject.toml", "README.md", NAME, "build_backend"):
            archive.add(TOP / path, f"{base}/{path}", filter=lambda f: None if "__pycache__" in f.name else f)
    return f"{base}.tar.gz"
