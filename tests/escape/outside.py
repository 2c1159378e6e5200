"""What limits, terminal and cleanup tests share: a look from outside at what sandboxes left on the host.

The test program adopts every orphan (PR_SET_CHILD_SUBREAPER), so that whatever belljar or a sandbox leaves running is
found below it, and, as root, goes into mounts and (on cgroup v1) control groups of its own, so that what it sees there
is no other test's. OutsideTest checks at the end of each test that nothing is left.
"""

import atexit
import ctypes
import os
import subprocess
import time
from pathlib import Path

from harness import Caller, EscapeTest, Result, descendants

PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNS, MS_REC, MS_PRIVATE, MS_SHARED = 0x20000, 1 << 14, 1 << 18, 1 << 20
WITHOUT_HELP_S = 0.1  # what must be gone this long after a process of belljar was killed

MIB = 1 << 20
# Limits that only a caller with control groups can name.
GROUP_LIMITS = ("memory", "cpus", "tasks")


def limits(caller: Caller, **values: object) -> list[str]:
    """Flags for these limits (open_files=16: --open-files 16), without those that this caller can't have in full."""
    has_groups = caller.uid == 0
    return [part for name, value in values.items() if has_groups or name not in GROUP_LIMITS
            for part in (f"--{name.replace('_', '-')}", str(value))]


def with_arguments(probe: str, *arguments: str) -> str:
    """The probe, called with these."""
    return f"import sys; sys.argv[1:] = {list(arguments)!r}\n{probe}"


# --- Control groups --------------------------------------------------------------------------------------------------


def _own_groups() -> list[Path]:
    """The folders of this process's groups, one for each mounted hierarchy."""
    mounts = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        kind, _, options = fields[fields.index("-") + 1:]
        if kind in ("cgroup", "cgroup2"):
            mounts.append((Path(fields[4]), kind, options.split(",")))
    folders = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, names, path = line.split(":", 2)
        for mount, kind, options in mounts:
            is_here = kind == "cgroup2" if number == "0" else kind == "cgroup" and all(
                name in options for name in names.split(","))
            if is_here and (mount / path.lstrip("/")).is_dir():
                folders.append(mount / path.lstrip("/"))
                break
    return folders


def _move_into(folder: Path) -> bool:
    try:
        (folder / "tasks" if (folder / "tasks").exists() else folder / "cgroup.procs").write_text(str(os.getpid()))
        return True
    except OSError:
        return False


def _isolate() -> list[Path]:
    """Adopts orphans; moves this process into groups of its own where it may. Returns the groups it is in."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if os.geteuid() == 0 and libc.unshare(CLONE_NEWNS) == 0:
        # Mounts of its own, which no other test changes; and shared, as under systemd, so that a sandbox's would show.
        libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None)
        libc.mount(None, b"/", None, MS_REC | MS_SHARED, None)
    groups = []
    for parent in _own_groups():
        own = parent / f"belljar-test-{os.getpid()}"
        is_v1 = (parent / "tasks").exists() and not (parent / "cgroup.controllers").exists()
        try:
            if is_v1 and "cpuset" not in parent.parts:
                own.mkdir()
                if (own / "cpu.rt_runtime_us").exists():  # so that natively a real-time class can be had
                    (own / "cpu.rt_runtime_us").write_text("1000")
                _move_into(own)
                atexit.register(_leave, parent, own)
                parent = own
        except OSError:
            pass
        groups.append(parent)
    return groups


def _leave(parent: Path, own: Path) -> None:
    _move_into(parent)
    for folder in (own / "belljar", own):
        try:
            folder.rmdir()
        except OSError:
            pass


GROUPS = _isolate()


def sandbox_groups() -> list[Path]:
    """The groups of sandboxes that this test started, in all hierarchies."""
    found = []
    for group in GROUPS:
        base = group / "belljar"
        try:
            found += [entry for entry in base.iterdir() if entry.is_dir()]
        except FileNotFoundError:
            pass
    return found


def has_living_owner(group: Path) -> bool:
    """Whether a belljar that is none of this test's has it: tests may share a group, also with tests of control groups,
    which name theirs otherwise."""
    number = group.name.split("-")[0]
    if not number.isdecimal():
        return True
    return bool(process_name(int(number))) and int(number) not in descendants(os.getpid())


def group_value(name: str) -> int:
    """The number in control file `name` of the only sandbox that runs."""
    values = [int((group / name).read_text()) for group in sandbox_groups() if (group / name).exists()]
    if len(values) != 1:
        raise AssertionError(f"{len(values)} groups have a file {name}")
    return values[0]


# --- Processes -------------------------------------------------------------------------------------------------------


def process_name(pid: int) -> str:
    """The process's name as ps shows it, or "" when it is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    name, _, rest = stat.partition("(")[2].rpartition(")")
    return "" if rest.split()[0] == "Z" else name


def alive_below(pid: int | None = None) -> dict[int, str]:
    """Processes below `pid` (this one) that are no zombies."""
    found = {child: process_name(child) for child in descendants(pid or os.getpid())}
    return {child: name for child, name in found.items() if name}


def reap_adopted() -> None:
    """Takes in the ended orphans that fell to this process, leaving alone what a test waits for."""
    for child in descendants(os.getpid()):
        try:
            stat = Path(f"/proc/{child}/stat").read_text()
        except OSError:
            continue
        name = stat.partition("(")[2].rpartition(")")[0]
        parent = int(stat.rpartition(")")[2].split()[1])
        if parent == os.getpid() and name in ("belljar-init", "belljar-watch"):
            try:
                os.waitpid(child, os.WNOHANG)
            except ChildProcessError:
                pass


def child_named(pid: int, name: str) -> int:
    """The child of `pid` with this name, or 0: belljar-init or belljar-watch of a supervisor."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    return next((int(child) for child in children if process_name(int(child)) == name), 0)


def memory_of(pid: int, key: str = "VmHWM:") -> int:
    """A line of /proc/PID/status in bytes; 0 when the process is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(key)), 0)


# --- All of it -------------------------------------------------------------------------------------------------------


def _mounts() -> set[str]:
    """The host's mounts, without their numbers."""
    return {line.split(" ", 2)[2] for line in Path("/proc/self/mountinfo").read_text().splitlines()}


def _run_files() -> set[str]:
    """What belljar keeps between runs; only locks, one file for each kind."""
    return {str(path) for path in Path("/run/belljar").glob("*")}


def crowding() -> float:
    """By what a time holds longer on this host now: the dying need processors too, and have to wait for their turn."""
    return max(1.0, 2 * os.getloadavg()[0] / len(os.sched_getaffinity(0)))


class Observer:
    """Knows what was there before; says what was left since."""

    def __init__(self) -> None:
        self._processes = set(alive_below())
        self._mounts = _mounts()

    def leftovers(self) -> dict[str, list[str]]:
        """Empty when nothing is left."""
        reap_adopted()
        found = {
            "processes": [f"{pid} {name}" for pid, name in alive_below().items() if pid not in self._processes],
            "cgroups": [str(group) for group in sandbox_groups() if not has_living_owner(group)],
            "mounts": sorted(_mounts() - self._mounts),
            "run folder": sorted(_run_files() - {"/run/belljar/uid-ranges", "/run/belljar/cpu-pins"}),
        }
        return {kind: items for kind, items in found.items() if items}


class OutsideTest(EscapeTest):
    """A test that also fails when something is left on the host."""

    LEFT_WITHIN_S = WITHOUT_HELP_S

    def setUp(self) -> None:
        super().setUp()
        self.observer = Observer()
        self.addCleanup(self.assert_nothing_left)

    def assert_nothing_left(self, seconds: float | None = None, but: tuple[str, ...] = ()) -> None:
        """`but` names kinds of things that a next run or `belljar gc` will remove."""
        def left() -> dict:
            return {kind: items for kind, items in self.observer.leftovers().items() if kind not in but}

        until = time.monotonic() + (self.LEFT_WITHIN_S if seconds is None else seconds) * crowding()
        while (found := left()) and time.monotonic() < until:
            time.sleep(0.005)
        if found:
            found = left()  # the look itself takes time
        self.assertEqual(found, {}, "left on the host")

    # --- Neighbours --------------------------------------------------------------------------------------------------

    def assert_peer_works(self, caller: Caller, probe: str = "report(works=True)", seconds: float = 15) -> Result:
        """Another sandbox starts and does its work while this test's attack goes on."""
        start = time.monotonic()
        result = self.sandbox(probe, caller=caller)
        self.assertEqual(result.status, "ok", f"a neighbour's sandbox: {result}")
        self.assertLess(time.monotonic() - start, seconds, "a neighbour's start and end")
        return result

    def wait_until_running(self, process: subprocess.Popen) -> tuple[int, int]:
        """Waits until the program runs; returns the pids of init and watcher."""
        supervisor = process.pid  # setpriv becomes belljar

        def running():
            init = child_named(supervisor, "belljar-init")
            watcher = child_named(supervisor, "belljar-watch")
            return (init, watcher) if init and watcher and alive_below(init) else None

        return self.wait_for(running, "the program's start")


def free_bytes(path: str = "/") -> int:
    space = os.statvfs(path)
    return space.f_bavail * space.f_frsize


def available_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no MemAvailable")
