"""What the escape tests share: who calls belljar, how a probe runs inside and natively, and looks from outside.

A probe is a Python program (or a command). It runs in a sandbox by the real binary, and once more where the wall is not
in the way: that is its positive control, which shows that the probe can fail. Every Python probe starts with
PROBE_TOOLS, and hands back what it found with report(name=value, ...).

    class Hf99(EscapeTest):
        def test_host_file(self):
            secret = self.host_file(self.canary)
            probe = f"report(seen=attempt(open, {secret!r}))"
            for caller in callers():
                with self.subTest(caller=caller):
                    self.assertEqual(self.native(probe, caller=caller).findings["seen"], "ok")
                    self.assertEqual(self.sandbox(probe, caller=caller).findings["seen"], "ENOENT")

The binary is named by the environment variable BELLJAR.
"""

import atexit
import functools
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from dataclasses import dataclass, field
from pathlib import Path

PYTHON = "/usr/bin/python3"
REPOSITORY = Path(__file__).resolve().parents[2]
BELLJAR = os.environ.get("BELLJAR") or str(REPOSITORY / "build/release/src/cli/belljar")
PATIENCE_S = 100  # for one run; sandboxes have their own, shorter, time limit

PROBE_TOOLS = '''\
import ctypes, errno, json, os, sys
_libc = ctypes.CDLL(None, use_errno=True)

def name_of(number):
    return errno.errorcode.get(number, str(number))

def attempt(action, *arguments, **options):
    """ "ok", or the name of the errno that the action failed with."""
    try:
        action(*arguments, **options)
        return "ok"
    except OSError as error:
        return name_of(error.errno)

def syscall(number, *arguments):
    """ "ok", or the name of the errno; arguments are numbers, bytes or ctypes objects."""
    ctypes.set_errno(0)
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = _libc.syscall(ctypes.c_long(number), *words)
    return "ok" if result >= 0 else name_of(ctypes.get_errno())

def content(path, limit=1 << 16):
    """What the file holds, or the name of the errno."""
    try:
        with open(path, "rb") as file:
            return file.read(limit).decode("utf-8", "backslashreplace")
    except OSError as error:
        return name_of(error.errno)

def report(**findings):
    print("findings:" + json.dumps(findings), flush=True)

'''


_COPY_LOCK = threading.Lock()


@functools.cache
def not_covered(what: str, why: str) -> None:
    """Says once what this host can't show."""
    print(f"NOT COVERED: {what}: {why}", flush=True)


@functools.cache
def work_folder() -> Path:
    """A folder of this test program's own, which every user can enter."""
    folder = Path(tempfile.mkdtemp(prefix="belljar-escape-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    return folder


@dataclass(frozen=True)
class Caller:
    """A user of the host who runs belljar. Their environment is a clean one."""

    name: str
    uid: int
    home: Path

    def __str__(self) -> str:
        return self.name

    @property
    def belljar(self) -> str:
        """The binary, where this caller can read it."""
        if self.uid == os.geteuid():
            return BELLJAR
        copy = work_folder() / "belljar"
        with _COPY_LOCK:
            if not copy.exists():
                for program in [*Path(BELLJAR).parent.glob("belljar-*"), Path(BELLJAR)]:
                    shutil.copyfile(program, copy.with_name(program.name))
                    copy.with_name(program.name).chmod(0o755)
        return str(copy)

    def argv(self, argv: list[str]) -> list[str]:
        if self.uid == os.geteuid():
            return argv
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", "--", *argv]

    def environment(self, more: dict[str, str] | None = None) -> dict[str, str]:
        return {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(self.home), "LANG": "C.UTF-8",
                "XDG_CACHE_HOME": str(self.home / "cache"), "XDG_RUNTIME_DIR": str(self.home / "run"), **(more or {})}

    def popen(self, argv: list[str], env: dict[str, str] | None = None, **options) -> subprocess.Popen:
        options.setdefault("cwd", self.home)
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(self.argv(argv), env=self.environment(env), **options)

    def run(self, argv: list[str], env: dict[str, str] | None = None, input: bytes | None = None,
            **options) -> subprocess.CompletedProcess:
        """Runs to the end; stdout and stderr are kept as bytes."""
        process = self.popen(argv, env, stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        try:
            out, err = process.communicate(input, timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"{argv} did not end within {PATIENCE_S} s: {out!r} {err!r}") from None
        return subprocess.CompletedProcess(argv, process.returncode, out, err)


@functools.cache
def _make_caller(name: str, uid: int) -> Caller:
    home = work_folder() / f"home-{name}"
    for folder in (home, home / "run"):
        folder.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(folder, uid, uid)
    return Caller(name, uid, home)


def root() -> Caller | None:
    """The caller root, or None (and a NOT COVERED line) where the tests don't run as root."""
    if os.geteuid() == 0:
        return _make_caller("root", 0)
    not_covered("belljar as root", "the tests run as an ordinary user")
    return None


def user() -> Caller:
    """An ordinary user, without any privilege or supplementary group."""
    return _make_caller("user", 64000 + os.getpid() % 1000 if os.geteuid() == 0 else os.geteuid())


def callers() -> list[Caller]:
    """Everyone that a case should be tried as: the rootless mode has walls of its own."""
    return [caller for caller in (root(), user()) if caller is not None]


@dataclass
class Result:
    """How a probe ended. Natively there is no record."""

    exit_status: int
    stdout: str
    stderr: str
    record: dict = field(default_factory=dict)

    @property
    def status(self) -> str:
        return self.record["status"]

    @property
    def findings(self) -> dict:
        """What the probe reported last."""
        lines = [line for line in self.stdout.splitlines() if line.startswith("findings:")]
        if not lines:
            raise AssertionError(f"the probe reported nothing: {self}")
        return json.loads(lines[-1].removeprefix("findings:"))


class EscapeTest(unittest.TestCase):
    def setUp(self) -> None:
        self.canary = "canary-" + secrets.token_hex(12)
        self.folder = Path(tempfile.mkdtemp(dir=work_folder()))
        self.folder.chmod(0o755)

    # --- Running probes ---------------------------------------------------------------------------------------------

    def script(self, probe: str, name: str = "probe.py", tools: str = PROBE_TOOLS) -> str:
        """The probe as a file that every caller can read."""
        path = self.folder / name
        path.write_text(tools + probe)
        path.chmod(0o644)
        return str(path)

    def command_line(self, probe: str | list[str], flags: list[str] = (), caller: Caller | None = None,
                     arguments: list[str] = ()) -> list[str]:
        """belljar run --json with a Python probe, or with a command where `probe` is a list."""
        caller = caller or callers()[0]
        program = ["--", *probe] if isinstance(probe, list) else [self.script(probe)]
        return [caller.belljar, "run", "--json", *flags, *program, *arguments]

    def sandbox(self, probe: str | list[str], flags: list[str] = (), caller: Caller | None = None,
                env: dict[str, str] | None = None, input: bytes | None = None, arguments: list[str] = (),
                **options) -> Result:
        """Runs the probe in a sandbox. `env` is added to the environment of belljar, not of the probe."""
        caller = caller or callers()[0]
        run = caller.run(self.command_line(probe, flags, caller, arguments), env, input, **options)
        try:
            record = json.loads(run.stdout)
        except ValueError:
            raise AssertionError(f"no result record: {run}") from None
        return Result(run.returncode, record["stdout"], record["stderr"], record)

    def native(self, probe: str | list[str], caller: Caller | None = None, env: dict[str, str] | None = None,
               input: bytes | None = None, arguments: list[str] = (), **options) -> Result:
        """Runs the probe on the host, with no wall around it."""
        caller = caller or callers()[0]
        argv = probe if isinstance(probe, list) else [PYTHON, self.script(probe)]
        run = caller.run([*argv, *arguments], env, input, **options)
        return Result(run.returncode, run.stdout.decode("utf-8", "replace"), run.stderr.decode("utf-8", "replace"))

    def start(self, probe: str | list[str], flags: list[str] = (), caller: Caller | None = None,
              env: dict[str, str] | None = None, **options) -> subprocess.Popen:
        """Starts belljar run without --json and returns at once; it is ended with the test."""
        caller = caller or callers()[0]
        argv = [argument for argument in self.command_line(probe, flags, caller) if argument != "--json"]
        process = caller.popen(argv, env, **options)
        self.addCleanup(end, process)
        return process

    # --- The host's side ---------------------------------------------------------------------------------------------

    def host_file(self, text: str, name: str = "host.txt", caller: Caller | None = None, mode: int = 0o644) -> str:
        """A file of the host, outside of everything that a sandbox gets; it belongs to `caller`."""
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        if caller is not None and os.geteuid() == 0:
            os.chown(path, caller.uid, caller.uid)
        return str(path)

    def host_folder(self, name: str, caller: Caller, mode: int = 0o755) -> Path:
        """A folder of the caller's, for instance as the source of a mount."""
        path = self.folder / name
        path.mkdir()
        path.chmod(mode)
        if os.geteuid() == 0:
            os.chown(path, caller.uid, caller.uid)
        return path

    def compile_c(self, source: str, name: str = "probe", flags: list[str] = ("-static",)) -> str:
        """A C program, compiled natively; mount it to run it inside. `report` lines are the program's to print."""
        code = self.folder / f"{name}.c"
        program = self.folder / name
        code.write_text(source)
        subprocess.run(["cc", "-O1", *flags, "-o", program, code], check=True, timeout=60)
        return str(program)

    def wait_for(self, condition, what: str, seconds: float = 20):
        """The first true value of condition(), which is asked again and again."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            value = condition()
            if value:
                return value
            time.sleep(0.01)
        self.fail(f"{what}: not within {seconds} s")


def end(process: subprocess.Popen) -> None:
    """Ends a process that the test started, in the way that lets belljar clean up."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def descendants(pid: int) -> list[int]:
    """Every process below pid on the host: belljar's init and watcher, and all that runs in the sandbox."""
    found = []
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return found
    for child in children:
        found += [int(child), *descendants(int(child))]
    return found


def main() -> None:
    if not os.access(BELLJAR, os.X_OK):
        sys.exit(f"no binary at {BELLJAR}: build it, or name it with BELLJAR=")
    unittest.main(module="__main__", verbosity=2)
