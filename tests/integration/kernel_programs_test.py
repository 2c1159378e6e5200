#!/usr/bin/python3
"""Real programs in the kernel tier: output and exit status are what they are in the container tier, which runs them on Linux.

What signals, timers and masks do in detail is in tests/conformance, against a native run.
"""

import functools
import os
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path

from harness import Case, both_callers, main, shared_folder

PROGRAMS = Path(__file__).resolve().parent / "kernel_programs"

# (name, command). /programs holds kernel_programs/ and what is built from it. Debian packages of an image: see `debian`.
ROWS = [
    ("bash", "bash /programs/bash.sh"),
    ("bash_globbing", "bash /programs/glob.sh"),
    ("dash", "dash /programs/dash.sh"),
    ("busybox_static", "busybox sh -c 'for i in 3 1 2; do echo $i; done | busybox sort | busybox tr -d \"\\n\"; cd /tmp; busybox seq 2000 > n; "
                       "busybox tar -czf n.tgz n; busybox tar -xzOf n.tgz n | busybox md5sum; busybox awk \"END { print NR }\" n; busybox find /tmp -type f | "
                       "busybox sort; (exit 4) & wait $!; echo $?; busybox wget -q http://x.invalid; busybox ls /nosuch; busybox vi --nosuch 2>/dev/null; exit 3'"),
    ("coreutils_findutils", "bash /programs/coreutils.sh"),
    ("grep_sed_awk", "bash /programs/text.sh"),
    ("tar_gzip_xz", "bash /programs/archives.sh"),
    ("make_gcc_gxx", "bash /programs/build.sh"),
    ("git", "bash /programs/git.sh"),
    ("perl", "perl /programs/perl.pl"),
    ("python_imports", "python3 -c 'import json,re,asyncio,email,http.client,unittest,decimal,sqlite3'; python3 /programs/imports.py"),
    ("python_threads", "python3 /programs/threads.py"),
    ("python_subprocess", "python3 /programs/subprocesses.py"),
    ("python_multiprocessing_fork", "python3 /programs/multiprocess.py fork"),
    ("python_multiprocessing_spawn", "python3 /programs/multiprocess.py spawn"),
    ("python_asyncio", "python3 /programs/asyncio_pipes.py"),
    ("python_sqlite_wal", "python3 /programs/sqlite_wal.py"),
    ("python_mmap_tempfile_signals", "python3 /programs/files_and_signals.py"),
    ("python_numpy_pandas_matplotlib", "python3 /programs/science.py"),
    ("node", "node /programs/node.js"),
    ("go", "/programs/go word"),
    ("rust", "/programs/rust word"),
    ("musl", "/programs/musl word"),
    ("segmentation_fault", "sh -c 'kill -SEGV $$'; echo $?; python3 -c 'import ctypes; ctypes.string_at(8)'; exit $?"),
    ("streams", "tr a-z A-Z; echo err >&2; head -c 100000 /dev/zero | wc -c; exit 7"),
]

# Rows that also run from a Debian image, and the packages that it is made of, beside the essential ones.
IMAGE_ROWS = ("bash", "dash", "coreutils_findutils", "grep_sed_awk", "tar_gzip_xz", "git", "perl", "python_imports", "python_subprocess",
              "python_multiprocessing_spawn", "python_sqlite_wal", "python_mmap_tempfile_signals", "musl", "streams")
IMAGE_PACKAGES = ("bash", "git", "make", "mawk", "python3", "xz-utils", "libc-bin", "perl")

# What must be there for a row.
NEEDS = {"busybox_static": "busybox", "make_gcc_gxx": "g++", "git": "git", "node": "node", "tar_gzip_xz": "xz"}
NATIVE = ("go", "rust", "musl")


def native_builds() -> dict[str, list[str]]:
    """The commands that build native.* here, with the compilers that this host has."""
    def found(name: str, *more: str) -> str | None:
        return shutil.which(name) or next((path for path in more if Path(path).exists()), None)
    go, rust, musl = found("go", "/usr/local/go/bin/go"), found("rustc", str(Path.home() / ".cargo/bin/rustc")), found("musl-gcc")
    builds = {"go": [go, "build", "-o", "go", "native.go"], "rust": [rust, "-O", "-o", "rust", "native.rs"],
              "musl": [musl, "-O1", "-w", "-static", "-o", "musl", "native.c"]}
    return {name: argv for name, argv in builds.items() if argv[0]}


@functools.cache
def programs() -> Path:
    """The folder that is /programs inside."""
    folder = shared_folder() / "programs"
    shutil.copytree(PROGRAMS, folder)
    environment = {"CGO_ENABLED": "0", "GO111MODULE": "off", **os.environ}
    for argv in native_builds().values():
        subprocess.run(argv, cwd=folder, env=environment, check=True)
    for path in folder.iterdir():
        path.chmod(0o755)
    return folder


def installed() -> dict[str, set[str]]:
    """The packages of this host, with what each depends on; essential ones depend on themselves."""
    lines = subprocess.run(["dpkg-query", "-W", "-f=${binary:Package}\t${Essential}\t${Pre-Depends}, ${Depends}\n"], capture_output=True,
                           text=True, check=True).stdout.splitlines()
    packages = {}
    for line in lines:
        name, essential, depends = line.split("\t")
        name = name.split(":")[0]
        words = {part.split()[0].split(":")[0] for group in depends.split(",") for part in group.split("|") if part.split()}
        packages[name] = words | ({name} if essential == "yes" else set())
    return packages


@functools.cache
def debian() -> Path:
    """A Debian of this host's own packages, as a root file system in an archive."""
    packages = installed()
    wanted, left = set(), [name for name, depends in packages.items() if name in depends] + list(IMAGE_PACKAGES)
    while left:
        name = left.pop()
        if name in packages and name not in wanted:
            wanted.add(name)
            left += packages[name]
    paths = set(subprocess.run(["dpkg-query", "-L", *sorted(wanted)], capture_output=True, text=True, check=True).stdout.splitlines())
    paths = {os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)) for path in paths if path.startswith("/")}
    paths = {path for path in paths if not path.startswith(("/usr/share/doc", "/usr/share/man", "/usr/share/locale", "/var"))}
    paths |= {"/bin", "/sbin", "/lib", "/lib64", "/etc/alternatives", "/etc/passwd", "/etc/group", "/etc/ld.so.cache", "/usr/bin/awk", "/var"}
    archive = shared_folder() / "debian.tar"
    names = "\0".join(sorted(path.lstrip("/") for path in paths if os.path.lexists(path) and path != "/"))
    subprocess.run(["tar", "-C", "/", "--no-recursion", "--null", "-T", "-", "-cf", archive], input=names.encode(), check=True)
    subprocess.run(["tar", "-C", "/", "-rf", archive, "etc/alternatives"], check=True)
    archive.chmod(0o644)
    return archive


class ProgramCase(Case):
    options: tuple = ()

    def compare(self, name: str, command: str):
        if name in NEEDS:
            self.need(NEEDS[name])
        if name in NATIVE and name not in native_builds():
            self.not_covered(f"a {name} program", "no compiler for it is installed")
        runs = [self.start("run", "--isolation", tier, "--timeout", "60s", *self.options, "--mount", f"{programs()}:/programs", "--",
                           "sh", "-c", command, stdin=subprocess.PIPE) for tier in ("container", "kernel")]
        container, kernel = [(*run.communicate(b"given\n", timeout=200), run.returncode) for run in runs]
        self.assertNotIn(b"belljar: ", container[1])
        self.assertGreater(len(container[0]), 3, container)
        for what, wanted, got in zip(("stdout", "stderr"), container, kernel):
            self.assertEqual(wanted.decode(errors="replace"), got.decode(errors="replace"), f"{what} in the container tier, in the kernel tier")
        self.assertEqual(container[2], kernel[2], "exit status")


def add_rows(case: type, names: Collection[str]) -> type:
    for name, command in ROWS:
        if name in names:
            setattr(case, f"test_{name}", lambda self, row=(name, command): self.compare(*row))
    return case


@both_callers
@functools.partial(add_rows, names=dict(ROWS))
class Programs(ProgramCase):
    """From the host's image."""


@both_callers
@functools.partial(add_rows, names=IMAGE_ROWS)
class ProgramsOfAnImage(ProgramCase):
    """From a Debian image."""

    options = ("--image", "debian")

    @property
    def store(self) -> Path:
        return shared_folder() / f"images-{self.caller_id}"

    def environment(self, extra=None):
        return {**super().environment(extra), "BELLJAR_IMAGES": str(self.store)}

    def setUp(self):
        super().setUp()
        if not self.store.exists():
            self.store.mkdir(mode=0o700)
            self.own(self.store)
            loaded = self.belljar("image", "load", "debian", debian())
            self.assertEqual(loaded.status, 0, str(loaded))


if __name__ == "__main__":
    main()
