"""One step of ./dev: a command with a line of progress, a log under build/logs/, and its time."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
LOGS = TOP / "build" / "logs"
HEARTBEAT_S = 60


@dataclass
class StepResult:
    ok: bool
    seconds: float
    output: str
    log: Path


def jobs() -> int:
    return int(os.environ.get("BELLJAR_JOBS", os.cpu_count() or 1))


def cache_folder(name: str) -> Path:
    """A folder outside the clone for what is slow to make again."""
    root = os.environ.get("BELLJAR_CACHE", str(Path.home() / ".cache" / "belljar-build"))
    folder = Path(root) / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def source_files(*suffixes: str, under=("src", "include", "tests", "examples")) -> list[Path]:
    """The project's files with these suffixes, sorted. Walks the folders, so that it needs no git."""
    found = []
    for folder in under:
        found += [p for p in (TOP / folder).rglob("*") if p.suffix in suffixes and p.is_file()]
    return sorted(found)


def _last_line(log: Path) -> str:
    with open(log, "rb") as file:
        file.seek(max(0, log.stat().st_size - 400))
        lines = file.read().decode("utf-8", "replace").split("\n")
    lines = [re.sub(r"[\x00-\x1f\x7f]", " ", line).strip() for line in lines]
    return next((line for line in reversed(lines) if line), "")


def show_tail(text: str, lines: int) -> None:
    for line in text.rstrip().split("\n")[-lines:] if lines else []:
        print("    | " + line)


def run_step(title: str, argv: list, *, timeout_s: float = 3600, env: dict | None = None, log_name: str | None = None,
             tail: int = 40) -> StepResult:
    """Runs `argv` in the top folder with no stdin. On a terminal the line shows what it is doing; elsewhere a line a
    minute says that it still runs. On failure the last `tail` lines of the log are shown."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / ((log_name or re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")) + ".log")
    terminal = sys.stdout.isatty()
    start = time.monotonic()
    last_beat = start
    timed_out = False
    with open(log, "wb") as output:
        process = subprocess.Popen([str(a) for a in argv], cwd=TOP, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, env={**os.environ, **(env or {})}, start_new_session=True)
        try:
            while True:
                try:
                    process.wait(0.5 if time.monotonic() - start > 1 else 0.05)
                    break
                except subprocess.TimeoutExpired:
                    pass
                now = time.monotonic()
                if now - start > timeout_s:
                    timed_out = True
                    os.killpg(process.pid, signal.SIGKILL)
                elif terminal and now - start > 1:
                    print(f"\r\x1b[K  {title} {now - start:5.0f} s  {_last_line(log)[:60]}", end="", flush=True)
                elif now - last_beat > HEARTBEAT_S:
                    last_beat = now
                    print(f"  {title}: running for {now - start:.0f} s  {_last_line(log)[:80]}", flush=True)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    seconds = time.monotonic() - start
    ok = process.returncode == 0
    text = log.read_text("utf-8", "replace")
    if terminal:
        print("\r\x1b[K", end="")
    print(f"  {title:<44}{seconds:7.1f} s  {'ok' if ok else 'FAILED'}", flush=True)
    if not ok:
        show_tail(text, tail)
        if timed_out:
            print(f"    | killed after {timeout_s:.0f} s")
        print(f"    whole log: {log.relative_to(TOP)}", flush=True)
    return StepResult(ok, seconds, text, log)


def _is_set(cache: Path, name: str, value: str) -> bool:
    return cache.exists() and re.search(rf"^{name}:\w+={re.escape(value)}$", cache.read_text(), re.MULTILINE) is not None


def build(preset: str, targets: list[str] | None = None, settings: dict[str, str] | None = None) -> StepResult:
    """Configures (once, and again for other settings) and builds a preset."""
    folder = TOP / "build" / preset
    settings = settings or {}
    is_configured = (folder / "build.ninja").exists() and all(
        _is_set(folder / "CMakeCache.txt", name, value) for name, value in settings.items())
    if not is_configured:
        given = [f"-D{name}={value}" for name, value in settings.items()]
        result = run_step(f"configure {preset}", ["cmake", "--preset", preset, *given])
        if not result.ok:
            return result
    argv = ["cmake", "--build", folder, "-j", str(jobs())]
    if targets:
        argv += ["--target", *targets]
    return run_step(f"build {preset}", argv, env={"NINJA_STATUS": "[%f/%t] "})
