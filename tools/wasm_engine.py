"""The WebAssembly engine's archive: where it is cached, and how it is built. It comes from the crate registry, is compiled
by Debian's own Rust, and takes some minutes; so it is kept outside the clone, under the digest of what goes in."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import steps

SOURCES = steps.TOP / "src" / "wasm" / "engine"
# Debian's, whatever else is first on the PATH.
CARGO = "/usr/bin/cargo"
RUSTC = "/usr/bin/rustc"


def folder() -> Path:
    """Where the archive is, or will be."""
    digest = hashlib.sha256()
    digest.update(subprocess.run([RUSTC, "--version", "--verbose"], capture_output=True, check=True).stdout)
    for path in sorted(p for p in SOURCES.iterdir() if p.is_file()):
        digest.update(f"{path.name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return steps.cache_folder("wasm-engine") / digest.hexdigest()[:20]


def is_built() -> bool:
    return os.path.exists(RUSTC) and (folder() / "libbelljar_engine.a").exists()


def settings() -> dict[str, str]:
    """What CMake is told: where the engine is, if it has been built."""
    return {"BELLJAR_WASM_ENGINE": str(folder())} if is_built() else {}


def _headers(messages: str) -> Path:
    """What the build script of the C API said that it made."""
    for line in messages.splitlines():
        if not line.startswith("{"):
            continue
        message = json.loads(line)
        if message.get("reason") == "build-script-executed" and "wasmtime-c-api-impl" in message["package_id"]:
            return Path(message["out_dir"]) / "include"
    raise RuntimeError("cargo did not say where the headers of the engine's C API are")


def build() -> bool:
    if is_built():
        return True
    target = steps.cache_folder("cargo-target")
    env = {"CARGO_HOME": str(steps.cache_folder("cargo")), "CARGO_TARGET_DIR": str(target), "RUSTC": RUSTC}
    argv = [CARGO, "build", "--release", "--locked", "--manifest-path", SOURCES / "Cargo.toml", "--jobs", str(steps.jobs()),
            "--message-format", "json-render-diagnostics"]
    step = steps.run_step("build the WebAssembly engine", argv, env=env)
    if not step.ok:
        return False
    made = folder()
    partial = made.with_name(f"{made.name}.{os.getpid()}")
    shutil.copytree(_headers(step.output), partial / "include")
    shutil.copy(target / "release" / "libbelljar_engine.a", partial)
    shutil.rmtree(made, ignore_errors=True)
    partial.rename(made)
    return True
