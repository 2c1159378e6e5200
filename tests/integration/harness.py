"""What the integration tests share: running the built command as root and as an ordinary user, and its result record."""

import base64
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("BELLJAR", str(TOP / "build/release/src/cli/belljar"))
IS_ROOT = os.geteuid() == 0

# An ordinary user without an entry in /etc/passwd and without groups, whom nobody else is.
USER_ID = 54321

RECORD_KEYS = {
    "status": str, "exit_code": (int, type(None)), "signal": (int, type(None)), "reason": str,
    "error": (dict, type(None)), "stdout": str, "stderr": str, "stdout_truncated": bool, "stderr_truncated": bool,
    "stdout_bytes_total": int, "stderr_bytes_total": int, "duration_ms": int, "usage": dict, "limits": (dict, type(None)),
    "denials": list, "warnings": list, "network": list, "files": list, "files_skipped": list, "files_truncated": bool,
    "changes_id": (str, type(None)), "isolation": dict,
}
USAGE_KEYS = {"cpu_user_ms", "cpu_system_ms", "cpu_throttled_ms", "fuel_used", "memory_peak_bytes", "memory_peak_is_sampled",
              "oom_kills", "processes_peak", "read_bytes", "written_bytes", "disk_written_bytes", "disk_written_inodes",
              "disk_peak_bytes", "disk_peak_inodes",
              "net_sent_bytes", "net_received_bytes", "start_us"}
LIMIT_KEYS = {"memory_bytes", "swap_bytes", "cpus", "cpu_time_ms", "fuel", "tasks", "timeout_ms", "tmp_size_bytes",
              "tmp_inodes", "file_size_bytes", "read_rate_bytes", "write_rate_bytes", "open_files", "output_bytes",
              "workspace_entries", "collect_file_bytes", "collect_size_bytes", "collect_entries",
              "net_connections", "net_rate", "net_size_bytes", "net_idle_ms", "net_time_ms"}
STATUSES = {"ok", "error", "timeout", "cpu", "memory", "pids", "disk", "output", "signal", "cancelled", "denied", "tampered", "internal"}


class Record(dict):
    """The result record; `out` and `err` are the exact bytes."""

    def _bytes(self, stream: str) -> bytes:
        if f"{stream}_base64" in self:
            return base64.b64decode(self[f"{stream}_base64"], validate=True)
        return self[stream].encode()

    @property
    def out(self) -> bytes:
        return self._bytes("stdout")

    @property
    def err(self) -> bytes:
        return self._bytes("stderr")

    def walls(self, state: str) -> set[str]:
        rows = self["isolation"][state]
        return set(rows) if state == "enforced" else {row["name"] for row in rows}


def record_faults(record: dict, content: bool = True) -> list[str]:
    """What is wrong with the form of a result record (docs/result-record.md); `content`: with the output in it."""
    wanted = {key: kind for key, kind in RECORD_KEYS.items() if content or key not in ("stdout", "stderr")}
    faults = [f"no key {key}" for key in wanted.keys() - record.keys()]
    optional = {"stdout_base64", "stderr_base64"} if content else set()
    faults += [f"unknown key {key}" for key in record.keys() - wanted.keys() - optional]
    faults += [f"{key} is {record[key]!r}" for key, kind in wanted.items()
               if key in record and (not isinstance(record[key], kind) or (kind is int and record[key] is True))]
    if faults:
        return faults
    if record["status"] not in STATUSES:
        faults.append(f"status {record['status']}")
    if record["usage"].keys() != USAGE_KEYS:
        faults.append(f"usage has {sorted(record['usage'])}")
    if record["limits"] is None:
        if record["status"] != "denied":
            faults.append("no limits, though it was not refused")
    elif record["limits"].keys() != LIMIT_KEYS:
        faults.append(f"limits has {sorted(record['limits'])}")
    if record["isolation"].get("tier", "?") not in ("container", "kernel", "wasm", None) or \
            (record["isolation"].get("tier") is None and record["status"] != "denied"):
        faults.append(f"tier {record['isolation'].get('tier')!r}")
    if record["isolation"].keys() != {"tier", "enforced", "weaker", "missing"}:
        faults.append(f"isolation has {sorted(record['isolation'])}")
    for row in record["isolation"].get("weaker", []) + record["isolation"].get("missing", []):
        if row.keys() != {"name", "why"} or not row["why"]:
            faults.append(f"isolation row {row}")
    for row in record["denials"]:
        if row.keys() != {"kind", "target", "rule", "hint", "count"}:
            faults.append(f"denial {row}")
    for row in record["files"]:
        if row.keys() - {"path_base64", "saved_as_base64"} != {"path", "saved_as", "size", "sha256", "change"}:
            faults.append(f"file {row}")
    for row in record["files_skipped"]:
        if row.keys() - {"path_base64"} != {"path", "reason"} or not row["reason"]:
            faults.append(f"skipped file {row}")
    if record["error"] is not None and record["error"].keys() != {"code", "message"}:
        faults.append(f"error {record['error']}")
    if (record["reason"] == "") != (record["status"] in ("ok", "error")):
        faults.append(f"status {record['status']} with reason {record['reason']!r}")
    if record["status"] in ("timeout", "cpu", "cancelled") and record["exit_code"] is not None:
        faults.append(f"status {record['status']}, though it exited with {record['exit_code']}")
    if "\n" in record["reason"]:
        faults.append("a reason of several lines")
    return faults


@dataclass
class Ended:
    """A finished belljar command."""

    status: int
    out: bytes
    err: bytes
    pid: int

    @property
    def text(self) -> str:
        return self.out.decode()

    def own_lines(self) -> list[str]:
        """What Belljar itself said."""
        return [line for line in self.err.decode(errors="replace").splitlines() if line.startswith("belljar: ")]

    def __str__(self) -> str:
        return f"exit status {self.status}\nstdout: {self.out[-2000:]!r}\nstderr: {self.err[-2000:]!r}"


@functools.cache
def shared_folder() -> Path:
    """A folder that everybody may enter, with a copy of the command for the ordinary user. Removed at exit."""
    folder = tempfile.TemporaryDirectory(prefix="belljar-integration-")
    shared_folder.keep = folder  # its finalizer removes it
    path = Path(folder.name)
    path.chmod(0o755)
    for program in [Path(COMMAND), *Path(COMMAND).parent.glob("belljar-*")]:
        shutil.copy(program, path / program.name)
    (path / "belljar").chmod(0o755)
    home = path / "home"
    home.mkdir(mode=0o700)
    if IS_ROOT:
        os.chown(home, USER_ID, USER_ID)
    return path


def cgroups_of(pid: int) -> list[str]:
    """The control groups that the Belljar process `pid` made and that are still there."""
    return [f"{parent}/{name}" for mount in cgroup_mounts() for parent, names, _ in os.walk(mount)  # groups of others come and go
            if "/belljar" in parent for name in names if name.startswith(f"{pid}-")]


def cgroup_mounts() -> list[Path]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [Path(line.split()[4]) for line in lines if re.search(r" - cgroup2? ", line)]


class Case(unittest.TestCase):
    """A test that runs Belljar as the caller named by `as_user`."""

    as_user = not IS_ROOT
    maxDiff = 4000

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="case-", dir=shared_folder())
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.folder.chmod(0o755)
        self.own(self.folder)

    def own(self, path: Path):
        """Gives `path` to the caller of this case."""
        if IS_ROOT and self.as_user:
            os.chown(path, USER_ID, USER_ID)

    @property
    def caller_id(self) -> int:
        return USER_ID if IS_ROOT and self.as_user else os.geteuid()

    def not_covered(self, what: str, why: str):
        print(f"\nNOT COVERED: {what}: {why}", flush=True)
        self.skipTest(f"{what}: {why}")

    def need(self, program: str, what: str = ""):
        if not Path("/usr/bin", program).exists():
            self.not_covered(what or program, f"/usr/bin/{program} is not installed")

    def write(self, name: str, content: str | bytes, mode: int = 0o644) -> Path:
        """A file of the caller's in this case's folder."""
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(mode)
        self.own(path)
        return path

    def argv(self, *arguments) -> list[str]:
        argv = [str(shared_folder() / "belljar"), *map(os.fspath, arguments)]
        if IS_ROOT and self.as_user:
            argv = ["/usr/bin/setpriv", f"--reuid={USER_ID}", f"--regid={USER_ID}", "--clear-groups", *argv]
        return argv

    def environment(self, extra: dict | None = None) -> dict:
        home = shared_folder() / "home" if self.as_user and IS_ROOT else os.environ.get("HOME", "/root")
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), **(extra or {})}

    def start(self, *arguments, env: dict | None = None, **options) -> subprocess.Popen:
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("cwd", self.folder)
        return subprocess.Popen(self.argv(*arguments), env=self.environment(env), **options)

    def belljar(self, *arguments, data: bytes | None = None, patience: float = 200, **options) -> Ended:
        if data is not None:
            options["stdin"] = subprocess.PIPE
        with self.start(*arguments, **options) as process:
            try:
                out, err = process.communicate(data, timeout=patience)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return Ended(process.returncode, out or b"", err or b"", process.pid)

    def run_in(self, *arguments, **options) -> Ended:
        return self.belljar("run", *arguments, **options)

    def ok(self, *arguments, **options) -> str:
        """Runs it, expects success and silence from Belljar, and returns stdout."""
        ended = self.run_in(*arguments, **options)
        self.assertEqual(ended.status, 0, str(ended))
        self.assertEqual(ended.own_lines(), [], str(ended))
        return ended.text

    def python(self, code: str, *options, **more) -> str:
        """Runs Python code as a script inside, expects success, and returns stdout."""
        return self.ok(*options, self.write("program.py", code), **more)

    def sh(self, code: str, *options, **more) -> str:
        return self.ok(*options, "--", "sh", "-c", code, **more)

    def record(self, *arguments, **options) -> Record:
        """Runs it with --json and checks the record's form."""
        ended = self.run_in("--json", *arguments, **options)
        self.assertEqual(ended.out.count(b"\n"), 1, str(ended))
        record = Record(json.loads(ended.out))
        self.assertEqual(record_faults(record), [], str(ended))
        record.exit_status = ended.status
        return record

    def assert_refused(self, ended: Ended, status: int, *words: str):
        """One clear line on stderr that holds `words`, nothing on stdout, and nothing left behind."""
        self.assertEqual(ended.status, status, str(ended))
        lines = ended.err.decode(errors="replace").splitlines()
        self.assertEqual(len(lines), 1, str(ended))
        self.assertTrue(lines[0].startswith("belljar: "), str(ended))
        for word in words:
            self.assertIn(word, lines[0])
        self.assertEqual(ended.out, b"", str(ended))
        self.assertEqual(cgroups_of(ended.pid), [])


def both_callers(case: type) -> type:
    """Runs a class of cases as root and as an ordinary user; where the tests don't run as root, as that user only."""
    if IS_ROOT:
        name = f"{case.__name__}AsUser"
        module = sys.modules[case.__module__]
        setattr(module, name, type(name, (case,), {"as_user": True, "__module__": case.__module__}))
    return case


def root_only(case: type) -> type:
    """For what only root can set up."""
    if IS_ROOT:
        return case
    print(f"\nNOT COVERED: {case.__name__}: {(case.__doc__ or '').strip().splitlines()[0]}: the tests don't run as root")
    return unittest.skip("needs root")(case)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that folders are removed
    unittest.main(verbosity=2, argv=sys.argv)
