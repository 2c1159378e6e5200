"""Interpreters compiled to WebAssembly: where they are cached, and how they are built. Their sources come from registries, and
are compiled by Debian's clang against its wasi-libc; the result is kept outside the clone, under the digest of what goes in."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

import steps
import wasm_engine

SOURCES = steps.TOP / "src" / "wasm" / "guests"
CLANG = "/usr/bin/clang-19"
QUICKJS_FILES = ("dtoa.c", "libregexp.c", "libunicode.c", "quickjs.c", "quickjs-libc.c", "qjs.c", "gen/repl.c",
                 "gen/standalone.c")
# Of the module's stack the interpreter may use JS_DEFAULT_STACK_SIZE; the rest is for what does not look at the limit.
QUICKJS_FLAGS = ("-O2", "-D_GNU_SOURCE", "-DQUICKJS_NG_BUILD", "-D_WASI_EMULATED_PROCESS_CLOCKS", "-D_WASI_EMULATED_SIGNAL",
                 "-Wl,-z,stack-size=2097152", "-Wl,--stack-first", "-Wl,--strip-debug", "-lwasi-emulated-process-clocks",
                 "-lwasi-emulated-signal")
# What differs here from the sources: (file, text, text in its place).
QUICKJS_CHANGES = (
    # Recursion without end is an error that a script can catch: elsewhere it is, and the module's stack has an address too.
    ("quickjs.c", "#ifdef __wasi__\n    rt->stack_size = 0;\n#endif\n", ""),
    ("quickjs.c", "#if defined(__wasi__)\n    rt->stack_limit = 0; /* no limit */\n#else\n    if (rt->stack_size == 0)",
     "#if 1\n    if (rt->stack_size == 0)"),
    # The modules have the names that they have in every QuickJS, beside those of this one.
    ("qjs.c", '    js_init_module_bjson(ctx, "qjs:bjson");\n',
     '    js_init_module_bjson(ctx, "qjs:bjson");\n    js_init_module_std(ctx, "std");\n    js_init_module_os(ctx, "os");\n'),
    # As with --std; and timers are where scripts look for them.
    ("qjs.c", "int load_std = 0;", "int load_std = 1;"),
    ("qjs.c", '"globalThis.os = os;\\n"',
     '"globalThis.os = os;\\n"\n "for (const name of [\'setTimeout\', \'clearTimeout\', \'setInterval\', \'clearInterval\'])\\n"\n'
     '"  Object.defineProperty(globalThis, name, {value: os[name], writable: true, configurable: true});\\n"'),
)


PYTHON = "/usr/bin/python3.11"  # builds its own kind for WebAssembly
PYTHON_SOURCES = ("python3.11", "zlib")
# As Debian has it, but for threads.
SQLITE_FLAGS = "-DSQLITE_THREADSAFE=0 -DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_MATH_FUNCTIONS -DSQLITE_ENABLE_COLUMN_METADATA"
ZLIB_FILES = ("adler32", "compress", "crc32", "deflate", "infback", "inffast", "inflate", "inftrees", "trees", "uncompr", "zutil")
PYTHON_CFLAGS = "-O2 -Wno-error=int-conversion"
PYTHON_LDFLAGS = "-Wl,-z,stack-size=4194304 -Wl,--stack-first -Wl,--initial-memory=10485760"
# What no program here can use.
LIBRARY_WITHOUT = ("test", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "distutils", "curses", "ctypes",
                   "multiprocessing", "asyncio", "pydoc_data", "venv", "subprocess.py", "socket.py", "ssl.py", "selectors.py",
                   "socketserver.py", "pty.py", "tty.py", "turtle.py", "bz2.py", "lzma.py")


MADE = ("belljar-quickjs.wasm", "python-start.wasm", "belljar-python311.zip", "belljar-snapshot")


def folder() -> Path:
    """Where MADE is, or will be. CMake makes belljar-python.wasm of python-start.wasm, for which it needs the engine."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    digest.update(subprocess.run([CLANG, "--version"], capture_output=True, check=True).stdout)
    for path in sorted(p for p in SOURCES.rglob("*") if p.is_file()):
        digest.update(f"{path.name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return steps.cache_folder("wasm-guests") / digest.hexdigest()[:20]


def is_built() -> bool:
    return os.path.exists(CLANG) and all((folder() / name).exists() for name in MADE)


def settings() -> dict[str, str]:
    """What CMake is told: where they are, if they have been built."""
    return {"BELLJAR_WASM_GUESTS": str(folder())} if is_built() else {}


def _cargo(title: str, *arguments, env: dict[str, str] | None = None) -> bool:
    return steps.run_step(title, [wasm_engine.CARGO, *arguments],
                          env={"CARGO_HOME": str(steps.cache_folder("cargo")), "RUSTC": wasm_engine.RUSTC} | (env or {})).ok


def _build_snapshot_tool(out: Path) -> bool:
    """belljar-snapshot, a program of this host. Much of what it needs the engine needs too."""
    target = steps.cache_folder("cargo-target")
    if not _cargo("build belljar-snapshot", "build", "--release", "--locked", "--manifest-path",
                  SOURCES / "snapshot" / "Cargo.toml", "--jobs", str(steps.jobs()), env={"CARGO_TARGET_DIR": str(target)}):
        return False
    shutil.copy(target / "release" / "belljar-snapshot", out)
    return True


def _build_quickjs(out: Path, crates: Path) -> bool:
    sources = next(crates.glob("rquickjs-sys-*")) / "quickjs"
    for name, text, other in QUICKJS_CHANGES:
        whole = (sources / name).read_text()
        if whole.count(text) != 1:
            raise RuntimeError(f"QuickJS's {name} is not the one that this change is for: {text}")
        (sources / name).write_text(whole.replace(text, other))
    return steps.run_step("build QuickJS for WebAssembly",
                          [CLANG, "--target=wasm32-wasi", "-o", out / "belljar-quickjs.wasm",
                           *(sources / name for name in QUICKJS_FILES), *QUICKJS_FLAGS]).ok


def _fetch_debian_sources(out: Path) -> bool:
    """The upstream archives as Debian has them. Its hosts of sources are those of the packages; the system's own settings are
    left as they are."""
    parts, lists = out / "parts", out / "lists"
    (lists / "partial").mkdir(parents=True)
    parts.mkdir()
    for given in [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]:
        if given.suffix not in (".sources", ".list") or not given.exists():
            continue
        text = given.read_text()
        if given.name != "sources.list" and "debian-archive-keyring" not in text:
            continue  # somebody else's packages
        text = re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.MULTILINE) if given.suffix == ".sources" else \
            re.sub(r"^deb(-src)?\b", "deb-src", text, flags=re.MULTILINE)
        (parts / given.name).write_text(text)
    options = ["-o", f"Dir::Etc::SourceParts={parts}", "-o", "Dir::Etc::SourceList=/dev/null", "-o", f"Dir::State::Lists={lists}"]
    fetch = f"cd {shlex.quote(str(out))} && apt-get -q {shlex.join(options)} update && " \
            f"apt-get -q {shlex.join(options)} source --download-only --tar-only {' '.join(PYTHON_SOURCES)}"
    return steps.run_step("fetch the sources of Python", ["/bin/sh", "-c", fetch]).ok


def _build_python(out: Path, crates: Path) -> bool:
    work = out / "python-work"
    work.mkdir()
    if not _fetch_debian_sources(work):
        return False
    sqlite = next(crates.glob("libsqlite3-sys-*")) / "sqlite3"
    step = steps.run_step("build Python for WebAssembly", ["/bin/sh", "-euc", f"""
cd {shlex.quote(str(work))}
for archive in *.orig.tar.[gbx]z*; do tar -xf "$archive"; done
# The whole of /usr as a sysroot would let the host's own headers in.
mkdir -p sysroot/include sysroot/lib prefix
ln -s /usr/include/wasm32-wasi sysroot/include/
ln -s /usr/lib/wasm32-wasi sysroot/lib/
cc="{CLANG} --target=wasm32-wasi --sysroot=$PWD/sysroot"
prefix=$PWD/prefix
$cc {PYTHON_CFLAGS} {SQLITE_FLAGS} -c {shlex.quote(str(sqlite))}/sqlite3.c -o sqlite3.o
llvm-ar-19 rcs $prefix/libsqlite3.a sqlite3.o
cp {shlex.quote(str(sqlite))}/sqlite3.h $prefix
cd zlib-*
for file in {' '.join(ZLIB_FILES)}; do $cc {PYTHON_CFLAGS} -c $file.c; done
llvm-ar-19 rcs $prefix/libz.a *.o
cp zlib.h zconf.h $prefix
cd ../Python-*
mkdir build
cd build
PKG_CONFIG_LIBDIR=/nonexistent CONFIG_SITE=../Tools/wasm/config.site-wasm32-wasi ../configure --host=wasm32-unknown-wasi --build=x86_64-pc-linux-gnu \\
  --with-build-python={PYTHON} --prefix=/usr --disable-test-modules --without-pymalloc CC="$cc" CPP="$cc -E" AR=llvm-ar-19 \\
  RANLIB=llvm-ranlib-19 CFLAGS="{PYTHON_CFLAGS} -I$prefix" LDFLAGS="-L$prefix {PYTHON_LDFLAGS}" ZLIB_CFLAGS=-I$prefix \\
  ZLIB_LIBS="-L$prefix -lz" LIBSQLITE3_CFLAGS=-I$prefix LIBSQLITE3_LIBS="-L$prefix -lsqlite3"
# Our main() in place of its own.
for file in main rehash; do
  $cc {PYTHON_CFLAGS} -Wall -I. -I../Include -I {shlex.quote(str(steps.TOP / "src"))} -c {shlex.quote(str(SOURCES / "python"))}/$file.c
done
mkdir -p Programs
wasm-ld-19 -r -o Programs/python.o main.o rehash.o
make -j{steps.jobs()} python.wasm pybuilddir.txt
# No name of this host.
sed -i "s,$prefix,/usr,g; s,${{prefix%/prefix}},/usr/src,g" build/lib.*/_sysconfigdata*.py
llvm-strip-19 -o {shlex.quote(str(out))}/python-start.wasm python.wasm
"""])
    if not step.ok:
        return False
    _zip_library(next(work.glob("Python-*")), out / "belljar-python311.zip")
    shutil.rmtree(work)
    return True


def _zip_library(sources: Path, archive: Path) -> None:
    """The standard library as one file, compiled, and not packed: it is read at every start."""
    library = sources / "Lib"
    files = {path.relative_to(library): path for path in sorted(library.rglob("*.py"))
             if path.relative_to(library).parts[0] not in LIBRARY_WITHOUT and "__pycache__" not in path.parts}
    files |= {Path(path.name): path for path in (sources / "build" / "build").glob("lib.*/_sysconfigdata*.py")}
    files[Path("sitecustomize.py")] = SOURCES / "python" / "sitecustomize.py"
    files[Path("_belljar_wake.py")] = SOURCES / "python" / "wake.py"
    compiler = "import json, py_compile, sys\nfor source, out, shown in json.load(sys.stdin):" \
               " py_compile.compile(source, out, dfile=shown, doraise=True, optimize=0," \
               " invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)"
    with tempfile.TemporaryDirectory() as name, zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as out:
        compiled = {inside: Path(name) / f"{number}.pyc" for number, inside in enumerate(files)}
        jobs = [(str(path), str(compiled[inside]), f"/usr/lib/python3.11/{inside}") for inside, path in files.items()]
        subprocess.run([PYTHON, "-c", compiler], input=json.dumps(jobs), text=True, check=True)
        for inside, path in compiled.items():
            out.writestr(zipfile.ZipInfo(f"{inside}c"), path.read_bytes())


def build() -> bool:
    if is_built():
        return True
    made = folder()
    partial = made.with_name(f"{made.name}.{os.getpid()}")
    partial.mkdir()
    crates = partial / "crates"
    if not (_cargo("fetch the sources of QuickJS and SQLite", "vendor", "--locked", "--versioned-dirs", "--manifest-path",
                   SOURCES / "sources" / "Cargo.toml", crates) and _build_quickjs(partial, crates) and
            _build_python(partial, crates) and _build_snapshot_tool(partial)):
        return False
    shutil.rmtree(crates)
    shutil.rmtree(made, ignore_errors=True)
    partial.rename(made)
    return True
