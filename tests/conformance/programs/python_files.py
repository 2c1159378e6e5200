"""Files as Python's own modules use them: tempfile, shutil, os, pathlib, zipfile, tarfile, sqlite3, mmap."""
import errno
import filecmp
import glob
import gzip
import hashlib
import mmap
import os
import pathlib
import shutil
import sqlite3
import stat
import tarfile
import tempfile
import zipfile


def fact(name, value):
    print(f"{name}: {value}")


def error_of(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return 0


with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    (root / "a/b/c").mkdir(parents=True)
    (root / "a/text").write_text("line\n" * 1000)
    (root / "a/b/bytes").write_bytes(bytes(range(256)) * 100)
    (root / "a/link").symlink_to("text")
    os.chmod(root / "a/b/bytes", 0o640)
    fact("walk", sorted(os.path.relpath(path, root) for path, _, _ in os.walk(root)))
    fact("glob", sorted(os.path.basename(path) for path in glob.glob(f"{root}/a/*")))
    fact("rglob", sorted(path.name for path in root.rglob("*")))
    fact("scandir", sorted((entry.name, entry.is_dir(), entry.is_symlink()) for entry in os.scandir(root / "a")))
    shutil.copytree(root / "a", root / "copy", symlinks=True)
    fact("copied", filecmp.cmp(root / "a/text", root / "copy/text", shallow=False))
    fact("mode copied", oct(stat.S_IMODE(os.stat(root / "copy/b/bytes").st_mode)))
    fact("link copied", os.readlink(root / "copy/link"))
    shutil.move(root / "copy", root / "moved")
    fact("moved", sorted(os.listdir(root / "moved")))
    with tarfile.open(root / "all.tar.gz", "w:gz") as archive:
        archive.add(root / "moved", arcname="in")
    with tarfile.open(root / "all.tar.gz") as archive:
        fact("archive", sorted(archive.getnames()))
        archive.extractall(root / "out")
    fact("unpacked", hashlib.sha256((root / "out/in/b/bytes").read_bytes()).hexdigest()[:16])
    with zipfile.ZipFile(root / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(root / "a/text", "text")
    with zipfile.ZipFile(root / "all.zip") as archive:
        fact("zip", (archive.testzip(), len(archive.read("text"))))
    with gzip.open(root / "text.gz", "wt") as file:
        file.write("packed " * 100)
    with gzip.open(root / "text.gz", "rt") as file:
        fact("gzip", len(file.read()))
    with open(root / "a/text", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[:4] = b"LINE"
        fact("mmap", (view.find(b"LINE"), view.size(), view.rfind(b"line")))
    fact("written through it", (root / "a/text").read_text()[:9])
    shutil.rmtree(root / "moved")
    fact("removed", (root / "moved").exists())
    fact("errors", [error_of(os.rmdir, root / "a"), error_of(os.unlink, root / "a"), error_of(os.listdir, root / "none"),
                    error_of(os.mkdir, root / "a"), error_of(os.readlink, root / "a/text"), error_of(os.chdir, root / "a/text")])

    database = sqlite3.connect(root / "data.db")
    fact("journal", database.execute("pragma journal_mode=wal").fetchone())
    database.execute("create table numbers (n integer primary key, square integer)")
    with database:
        database.executemany("insert into numbers values (?, ?)", ((n, n * n) for n in range(1000)))
    other = sqlite3.connect(root / "data.db", timeout=0.1)
    fact("sum", other.execute("select sum(square) from numbers").fetchone())
    database.execute("begin immediate")
    try:
        other.execute("begin immediate")
        fact("two writers", "yes")
    except sqlite3.OperationalError as error:
        fact("two writers", error)
    database.rollback()
    fact("files", sorted(path.name for path in root.glob("data.db*")))
    database.close()
    other.close()
    fact("after closing", sorted(path.name for path in root.glob("data.db*")))

with tempfile.NamedTemporaryFile() as file:
    file.write(b"x" * 10)
    file.flush()
    fact("named", os.path.getsize(file.name))
fact("gone", os.path.exists(file.name))
with tempfile.TemporaryFile() as file:
    file.write(b"abc")
    file.seek(0)
    fact("nameless", file.read())
    fact("links", os.fstat(file.fileno()).st_nlink)
with tempfile.SpooledTemporaryFile(max_size=10) as file:
    file.write(b"y" * 100)
    file.seek(0)
    fact("spooled", len(file.read()))
fact("disk", shutil.disk_usage(".").total > 0)
fact("statvfs", os.statvfs(".").f_namemax)
