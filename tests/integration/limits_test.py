"""Every limit of spec/limits.def: exceeded by a little, exceeded by a lot, and not reached; and the account of a run."""

import json
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from harness import COMMAND, IS_ROOT, LIMIT_KEYS, Case, both_callers, main, root_only

MIB = 1 << 20

# Programs take one number: how much to use of what their limit counts.
TOUCH = """
import mmap, sys, time
area = mmap.mmap(-1, int(sys.argv[1]))
for at in range(0, len(area), 4096): area[at] = 1
time.sleep(0.2)
"""
BURN = """
import sys, time
while time.process_time() * 1000 < int(sys.argv[1]): pass
"""
SLEEP = "import sys, time; time.sleep(int(sys.argv[1]) / 1000)"
THREADS = """
import sys, threading
gate = threading.Event()
try:
    for _ in range(int(sys.argv[1]) - 1): threading.Thread(target=gate.wait).start()
    status = 0
except RuntimeError: status = 3
gate.set()
sys.exit(status)
"""
WRITE = """
import signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
with open("/tmp/file", "wb", buffering=0) as file:
    left = int(sys.argv[1])
    while left > 0: left -= file.write(bytes(min(left, 65536)))
"""
FILES = """
import os, sys
for number in range(int(sys.argv[1])): os.close(os.open(f"/tmp/{number}", os.O_CREAT | os.O_WRONLY))
"""
OPEN = """
import os, sys
for _ in range(int(sys.argv[1])): os.open("/dev/null", os.O_RDONLY)
"""
PRINT = """
import os, sys
left = int(sys.argv[1])
while left > 0: left -= os.write(1, b"x" * min(left, 4096))
"""

INODES = """
import os
while True:
    try:
        for number in range(600): os.close(os.open(f"/tmp/{number}", os.O_CREAT))
    except OSError:
        for name in os.listdir("/tmp"):
            if name.isdigit(): os.unlink(f"/tmp/{name}")
"""
FORKS = """
import os, time
while True:
    try:
        if os.fork() == 0:
            time.sleep(0.05)
            os._exit(0)
    except OSError: os.waitpid(-1, 0)
"""


@dataclass(frozen=True)
class Limit:
    """What one limit does to a program that uses `under`, `little` or `lot`."""

    key: str  # in the record's `limits`
    flags: tuple[str, ...]
    program: str
    under: int
    little: int
    lot: int
    status: str  # past the limit
    words: str = ""  # of the reason


LIMITS = (
    Limit("memory_bytes", ("--memory", "96M"), TOUCH, 80 * MIB, 98 * MIB, 2000 * MIB, "memory", "memory limit of 96M"),
    Limit("swap_bytes", ("--memory", "96M", "--swap", "0"), TOUCH, 80 * MIB, 98 * MIB, 2000 * MIB, "memory", "96M"),
    Limit("cpu_time_ms", ("--cpu-time", "500ms"), BURN, 350, 700, 60000, "cpu", "processor time limit of 500 ms"),
    Limit("timeout_ms", ("--timeout", "1s"), SLEEP, 600, 1100, 60000, "timeout", "wall clock limit of 1 s"),
    Limit("tasks", ("--tasks", "20"), THREADS, 20, 21, 200, "pids", "limit of 20 tasks"),
    Limit("tmp_size_bytes", ("--tmp-size", "8M"), WRITE, 8 * MIB - 65536, 8 * MIB + 65536, 64 * MIB, "disk", "8M"),
    Limit("tmp_inodes", ("--tmp-inodes", "100"), FILES, 90, 101, 5000, "disk", "the 100 files and folders"),
    Limit("file_size_bytes", ("--file-size", "2M"), WRITE, 2 * MIB, 2 * MIB + 1, 20 * MIB, "disk", "grow past 2M"),
    Limit("open_files", ("--open-files", "50"), OPEN, 46, 48, 5000, "error"),
    Limit("output_bytes", ("--output-limit", "100K", "--on-output-limit", "kill"), PRINT, 102400, 102401, 50 * MIB,
          "output", "output limit of 100K"),
)
# Tried elsewhere, for they end no program.
ELSEWHERE = {
    "cpus": "test_cpus below; a rate slows",
    "fuel": "wasm_test.py",
    "read_rate_bytes": "DiskRates below; a rate slows",
    "write_rate_bytes": "DiskRates below; a rate slows",
    "collect_file_bytes": "collect_test.py",
    "collect_size_bytes": "collect_test.py",
    "collect_entries": "collect_test.py",
    "workspace_entries": "workspace_test.py",
    "net_connections": "../escape/net_19_test.py",
    "net_rate": "../escape/net_19_test.py",
    "net_size_bytes": "../escape/net_19_test.py",
    "net_idle_ms": "../escape/net_19_test.py",
    "net_time_ms": "../escape/net_19_test.py",
}


@both_callers
class EachLimit(Case):
    """The table above."""

    def limits(self) -> list[Limit]:
        return list(LIMITS)

    def tells_of_tasks(self) -> bool:
        return not self.as_user

    def flags(self, limit: Limit) -> list[str]:
        flags = list(limit.flags)
        if self.as_user:  # without control groups some are held more weakly
            for name in ("memory", "swap", "cpus", "cpu_time", "tasks"):
                flags += ["--accept-weaker", name]
        return flags

    def use(self, limit: Limit, amount: int):
        return self.record(*self.flags(limit), self.write("use.py", limit.program), str(amount))

    def test_no_limit_is_left_out(self):
        self.assertEqual({limit.key for limit in LIMITS} | set(ELSEWHERE), LIMIT_KEYS)

    def test_under_it_nothing_happens(self):
        for limit in self.limits():
            with self.subTest(limit=limit.key):
                record = self.use(limit, limit.under)
                self.assertEqual((record["status"], record["exit_code"], record["denials"]), ("ok", 0, []), record)

    def test_exceeded(self):
        for limit in self.limits():
            for amount in (limit.little, limit.lot):
                with self.subTest(limit=limit.key, amount=amount):
                    if limit.key == "tasks" and not self.tells_of_tasks():
                        # RLIMIT_NPROC holds, and leaves no trace that the supervisor could see.
                        self.assertEqual(self.use(limit, amount)["exit_code"], 3)
                        continue
                    record = self.use(limit, amount)
                    self.assertEqual(record["status"], limit.status, record)
                    self.assertIn(limit.words, record["reason"])


@both_callers
class BesidesTheTable(Case):
    """What the table does not try."""

    def test_only_a_limit_that_is_set_is_blamed(self):
        record = self.record("--", "sh", "-c", "kill -XFSZ $$")
        self.assertEqual((record["status"], record["signal"]), ("signal", 25))

    def test_what_the_host_can_not_give(self):
        ended = self.run_in("--open-files", "1048576", "--", "sh", "-c", "ulimit -n")
        if ended.status == 0:
            self.assertEqual(ended.text, "1048576\n")  # with CAP_SYS_RESOURCE
        else:
            self.assert_refused(ended, 125, "--open-files 1048576", "ulimit -Hn")

    def test_cpus(self):
        program = self.write("burn.py", BURN)
        record = self.record("--cpus", "0.25", *(("--accept-weaker", "cpus") if self.as_user else ()), program, "400")
        self.assertEqual(record["status"], "ok")
        self.assertGreater(record["duration_ms"], 1000)
        if self.as_user:
            self.assertIsNone(record["usage"]["cpu_throttled_ms"])
        else:
            self.assertGreater(record["usage"]["cpu_throttled_ms"], 500)
            free = self.record(program, "100")
            self.assertLess(free["usage"]["cpu_throttled_ms"], 100)


@both_callers
class EachLimitOfKernel(EachLimit):
    """The same limits, where the user-space kernel holds some and its memory counts too."""

    SAME_BUT = {key: {"flags": ("--memory", "192M", *more), "under": 100 * MIB, "little": 194 * MIB, "words": "192M"}
                for key, more in (("memory_bytes", ()), ("swap_bytes", ("--swap", "0")))}

    def limits(self) -> list[Limit]:
        return [replace(limit, **self.SAME_BUT.get(limit.key, {})) for limit in LIMITS]

    def flags(self, limit: Limit) -> list[str]:
        return ["--isolation", "kernel", *super().flags(limit)]

    def tells_of_tasks(self) -> bool:
        return True

    def test_what_is_refused_though_the_program_goes_on(self):
        forks = """
import os, sys, time
try:
    while True:
        if os.fork() == 0: time.sleep(60)
except BlockingIOError: sys.exit(3)
"""
        flags = ("--isolation", "kernel", *(("--accept-weaker", "tasks") if self.as_user else ()))
        record = self.record(*flags, "--tasks", "20", "--", "python3", "-c", forks)
        self.assertEqual((record["status"], record["exit_code"], record["warnings"]), ("pids", 3, []), record)
        self.assertEqual([(denial["kind"], denial["count"]) for denial in record["denials"]], [("tasks", 1)])
        self.assertEqual(record["usage"]["processes_peak"], 20)
        record = self.record(*flags, "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 1 & done; wait")
        self.assertEqual(record["usage"]["processes_peak"], 10)
        record = self.record(*flags, "--file-size", "1M", "--", "sh", "-c", "head -c 2M /dev/zero > /tmp/x; exit 4")
        self.assertEqual((record["status"], record["reason"]), ("disk", "refused to let a file grow past 1M"))
        self.assertEqual([denial["kind"] for denial in record["denials"]], ["file_size"])
        for limit in ("--file-size", "--tmp-size"):
            record = self.record(*flags, limit, "1M", "--", "sh", "-c", "head -c 1M /dev/zero > /tmp/x; exit 4")
            self.assertEqual((record["status"], record["denials"]), ("error", []))
        own = self.record(*flags, "--file-size", "1M", "--", "sh", "-c", "ulimit -f 1; head -c 2M /dev/zero > /tmp/x; exit 4")
        self.assertEqual((own["status"], own["denials"]), ("error", []))


@both_callers
class EachLimitOfWasm(EachLimit):
    """The same limits, where a module can reach them: it starts no tasks."""

    MEMORY = {"program": "import sys; kept = bytearray(int(sys.argv[1]))", "under": 60 * MIB, "little": 140 * MIB, "words": "128M"}
    # WASI has neither signals nor /dev/null.
    SAME_BUT = {
        "memory_bytes": {"flags": ("--memory", "128M"), **MEMORY},
        "swap_bytes": {"flags": ("--memory", "128M", "--swap", "0"), **MEMORY},
        **{key: {"program": WRITE.replace("import signal, sys\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)", "import sys")}
           for key in ("tmp_size_bytes", "file_size_bytes")},
        "open_files": {"program": OPEN.replace('"/dev/null"', "__file__"), "under": 40},
    }

    def setUp(self):
        super().setUp()
        if not Path(COMMAND).with_name("belljar-python.cwasm").exists():
            self.not_covered("limits in the wasm tier", "belljar-python.cwasm is not built (./dev wasm)")

    def limits(self) -> list[Limit]:
        return [replace(limit, **self.SAME_BUT.get(limit.key, {})) for limit in LIMITS if limit.key != "tasks"]

    def flags(self, limit: Limit) -> list[str]:
        return ["--isolation", "wasm", *super().flags(limit)]


@both_callers
class Account(Case):
    """What the record says a run used, on known workloads."""

    def usage(self, program: str, *arguments, flags=()):
        record = self.record(*flags, self.write("known.py", program), *map(str, arguments))
        self.assertEqual(record["status"], "ok", record)
        return record["usage"]

    def within(self, actual: float, wanted: float, part: float = 0.05):
        self.assertLess(abs(actual - wanted), wanted * part, f"{actual} instead of {wanted}")

    def test_memory(self):
        least = self.usage(TOUCH, MIB)["memory_peak_bytes"]
        most = self.usage(TOUCH, 161 * MIB)["memory_peak_bytes"]
        self.within(most - least, 160 * MIB)

    def test_memory_that_was_given_back(self):
        used = self.usage(TOUCH + "area.close(); time.sleep(0.3)", 150 * MIB)
        self.assertGreater(used["memory_peak_bytes"], 150 * MIB)
        self.assertLess(used["memory_peak_bytes"], 175 * MIB)

    def test_page_cache_is_no_memory(self):
        folder = self.folder / "out"
        folder.mkdir()
        self.own(folder)
        program = """
import os
with open("/out/file", "wb", buffering=0) as file:
    for _ in range(300): file.write(bytes(1 << 20))
"""
        used = self.usage(program, flags=("--memory", "64M", "--accept-weaker", "memory", "--mount", f"{folder}:/out:rw"))
        self.assertLess(used["memory_peak_bytes"], 32 * MIB)
        self.assertTrue(used["memory_peak_is_sampled"])

    def test_processor_time(self):
        used = self.usage(BURN, 1500)
        self.within(used["cpu_user_ms"] + used["cpu_system_ms"], 1500, 0.1 if self.as_user else 0.05)

    def test_processor_time_of_children(self):
        program = "import subprocess, sys\nfor _ in range(2): subprocess.run([sys.executable, '-c', %r, '600'])" % BURN
        used = self.usage(program)
        self.within(used["cpu_user_ms"] + used["cpu_system_ms"], 1260, 0.12)

    def test_bytes_read_and_written(self):
        program = """
import os
with open("/tmp/file", "wb", buffering=0) as file:
    for _ in range(30): file.write(bytes(1 << 20))
with open("/tmp/file", "rb", buffering=0) as file:
    while file.read(1 << 20): pass
"""
        used = self.usage(program)
        self.within(used["written_bytes"], 30 * MIB)
        self.within(used["read_bytes"], 30 * MIB)
        self.within(used["disk_written_bytes"], 30 * MIB)

    def test_bytes_are_the_programs_alone(self):
        used = self.record("--", "true")["usage"]
        self.assertEqual(used["written_bytes"], 0)
        self.assertLess(used["read_bytes"], 5000)  # by execve(2) and its loader
        script = self.write("long.sh", "#" * 79 + "\n" + ("#" * 999 + "\n") * 900 + "head -c 1000 /dev/zero\n")
        used = self.record(script)["usage"]
        self.assertEqual(used["written_bytes"], 1000)
        self.assertLess(used["read_bytes"], 950_000)
        if not self.as_user:
            used = self.record("--timeout", "1s", "--", "sh", "-c", "head -c 1000 /dev/zero; exec sleep 9")["usage"]
            self.assertEqual(used["written_bytes"], 1000)

    def test_memory_that_is_shared_since_a_fork_counts_once(self):
        program = """
import os, time
held = bytearray(b"x") * (60 << 20)
for _ in range(3):
    if os.fork() == 0:
        time.sleep(0.5)
        os._exit(0)
for _ in range(3): os.wait()
"""
        record = self.record("--", "python3", "-c", program)
        self.within(record["usage"]["memory_peak_bytes"], 67 * MIB, 0.1)
        self.assertEqual(record["warnings"], [])

    def test_bytes_of_children_and_after_a_kill(self):
        program = "head -c 20000000 /dev/zero > /tmp/a"
        used = self.record("--", "sh", "-c", program)["usage"]
        self.within(used["written_bytes"], 20_000_000)
        used = self.record("--timeout", "2s", "--", "sh", "-c", f"{program}; exec sleep 60")["usage"]
        if self.as_user:
            self.assertIsNone(used["written_bytes"])  # nobody may look at a killed sandbox's counters
        else:
            self.within(used["written_bytes"], 20_000_000)

    def test_disk_that_was_given_back(self):
        used = self.usage(WRITE + "import os, time; time.sleep(1.2); os.unlink('/tmp/file')", 20 * MIB, flags=("--file-size", "1G"))
        self.assertLess(used["disk_written_bytes"], MIB)
        self.within(used["disk_peak_bytes"], 20 * MIB)

    def test_disk_after_a_kill(self):
        code = "head -c 20000000 /dev/zero > /tmp/a; exec sleep 60"
        used = self.record("--timeout", "1s", "--", "sh", "-c", code)["usage"]
        self.within(used["disk_written_bytes"], 20_000_000)

    def test_files(self):
        base = self.usage("pass")["disk_written_inodes"]
        self.assertEqual(self.usage(FILES, 40)["disk_written_inodes"], base + 40)

    def test_tasks(self):
        self.assertEqual(self.usage(THREADS + "", 1)["processes_peak"], 1)
        program = "import subprocess, time\nfor p in [subprocess.Popen(['sleep', '0.3']) for _ in range(5)]: p.wait()"
        self.assertEqual(self.usage(program)["processes_peak"], 6)

    def test_time_to_start(self):
        record = self.record("--", "sleep", "0.5")
        self.assertGreater(record["usage"]["start_us"], 100)
        self.assertLess(record["usage"]["start_us"], 5_000_000)
        self.assertGreaterEqual(record["duration_ms"], 490)
        self.assertLess(record["duration_ms"], 900)

    def test_a_memory_kill_that_the_program_lives_through(self):
        if self.as_user:
            return  # without a control group the whole tree ends: test_exceeded
        code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'bytearray(500 << 20)'])"
        record = self.record("--memory", "128M", self.write("parent.py", code))
        self.assertEqual((record["status"], record["usage"]["oom_kills"]), ("ok", 1))

    def test_warnings(self):
        self.assertEqual(self.record("--", "true")["warnings"], [])
        record = self.record("--tmp-size", "8M", self.write("use.py", WRITE), str(8 * MIB - 300_000))
        self.assertEqual(record["warnings"], ["--tmp-size: used 7.71M of the limit of 8M"])
        record = self.record("--timeout", "2s", "--", "sleep", "1.85")
        self.assertEqual([line.split(":")[0] for line in record["warnings"]], ["--timeout"])

    def test_a_writable_mount_is_named(self):
        self.assertNotIn("mount_size", self.record("--", "true").walls("missing"))
        record = self.record("--mount", f"{self.folder}:/out:rw", "--", "true")
        self.assertIn("mount_size", record.walls("missing"))
        self.assert_refused(self.run_in("--require", "mount_size", "--mount", f"{self.folder}:/out:rw", "--", "true"), 125,
                            "/out", "--collect")


# Ways to hold memory, each argument a MiB, that a look at resident sets alone does not see.
HIDDEN_MEMORY = {
    "a mapping whose pages were let go": """
import mmap, sys, time
kept = []
for _ in range(int(sys.argv[1]) // 8):
    area = mmap.mmap(-1, 8 << 20)
    area.write(b"x" * (8 << 20))
    area.madvise(mmap.MADV_DONTNEED)
    kept.append(area)
time.sleep(2)
""",
    "an ended first thread": """
import ctypes, sys, threading, time
def hold():
    kept = bytearray(int(sys.argv[1]) << 20)
    time.sleep(2)
    ctypes.CDLL(None)._exit(0)
threading.Thread(target=hold).start()
ctypes.CDLL(None).syscall(60, 0)
""",
    "many detached segments": """
import ctypes, sys, time
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
for _ in range(100):
    libc.shmget(0, 4096, 0o1600)
for _ in range(int(sys.argv[1]) // 8):
    segment = libc.shmget(0, 8 << 20, 0o1600)
    place = libc.shmat(segment, None, 0)
    ctypes.memset(place, 1, 8 << 20)
    libc.shmdt(ctypes.c_void_p(place))
time.sleep(2)
""",
}
PLAIN_MEMORY = "import sys, time; kept = bytearray(int(sys.argv[1]) << 20); time.sleep(2)"


class SampledMemory(Case):
    """Where no control group holds it."""

    as_user = True

    def status(self, program: str, amount: int, **options) -> str:
        return self.record(self.write("hold.py", program), str(amount), **options)["status"]

    def test_hidden_ways(self):
        for name, program in HIDDEN_MEMORY.items():
            with self.subTest(way=name):
                self.assertEqual(self.status(program, 80), "ok")
                self.assertEqual(self.status(program, 640), "memory")

    def test_init_can_not_be_blinded(self):
        program = """
import ctypes, os, resource, sys
libc = ctypes.CDLL(None, use_errno=True)
resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE)
os.setpriority(os.PRIO_PROCESS, 0, 1)
os.sched_setaffinity(0, os.sched_getaffinity(0))
done = []
def attempt(name, call):
    try:
        call()
        done.append(name)
    except PermissionError:
        pass
attempt("prlimit", lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)))
attempt("nice", lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))
attempt("nice of the user", lambda: os.setpriority(os.PRIO_USER, 0, 19))
attempt("class", lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)))
attempt("processors", lambda: os.sched_setaffinity(1, [0]))
print(done)
"""
        self.assertEqual(self.ok(self.write("blind.py", program)), "[]\n")

    def test_a_caller_in_many_groups(self):
        if not IS_ROOT:
            self.not_covered("memory of a caller in many groups", "only root can be in groups at will")
        program = self.write("hold.py", PLAIN_MEMORY)
        groups = ",".join(str(group) for group in range(10000, 10800))
        argv = self.argv("run", "--json", program, "640")
        argv[argv.index("--clear-groups")] = f"--groups={groups}"
        run = subprocess.run(argv, env=self.environment(), cwd=self.folder, capture_output=True, timeout=60)
        self.assertEqual(json.loads(run.stdout)["status"], "memory")


class DiskRates(Case):
    """What this host can hold holds; the rest is refused by name before the start."""

    def wall(self, name: str) -> dict:
        walls = json.loads(self.belljar("doctor", "--json").out)["tiers"][0]["walls"]
        return next(wall for wall in walls if wall["name"] == name)

    def test_reading(self):
        if self.wall("read_rate")["state"] != "enforced":
            self.assert_refused(self.run_in("--read-rate", "1M", "--", "true"), 125, "--read-rate", "can't be enforced")
            return
        folder = self.folder / "data"
        folder.mkdir()
        blob = folder / "blob"
        blob.write_bytes(os.urandom(6 * MIB))
        subprocess.run(["sync"], check=True)
        command = ("--mount", f"{folder}:/data", "--", "cat", "/data/blob")
        times = []
        for flags in ((), ("--read-rate", "2M")):
            with open(blob, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            start = time.monotonic()
            self.assertEqual(len(self.run_in(*flags, "--output-limit", "16M", *command).out), 6 * MIB)
            times.append(time.monotonic() - start)
        self.assertLess(times[0], 1.5)
        self.assertGreater(times[1], 2)

    def test_writing(self):
        if self.wall("write_rate")["state"] != "enforced":
            self.assert_refused(self.run_in("--write-rate", "1M", "--", "true"), 125, "--write-rate", "can't be enforced")
            return
        folder = self.folder / "out"
        folder.mkdir()
        start = time.monotonic()
        self.ok("--write-rate", "2M", "--mount", f"{folder}:/out:rw", "--",
                "dd", "if=/dev/zero", "of=/out/file", "bs=1M", "count=6", "conv=fsync", "status=none")
        self.assertGreater(time.monotonic() - start, 2)

    def test_refused_without_control_groups(self):
        case = self.__class__.as_user
        self.as_user = True
        try:
            for flag in ("--read-rate", "--write-rate"):
                self.assert_refused(self.run_in(flag, "1M", "--", "true"), 125, flag, "can't be enforced")
        finally:
            self.as_user = case


@root_only
class Neighbours(Case):
    """Sandboxes at their limits harm no other."""

    FIGHTS = {
        "memory": ("--memory", "64M", "--", "python3", "-c", "import mmap\nwhile True:\n  a = mmap.mmap(-1, 60 << 20)\n  for i in range(0, len(a), 4096): a[i] = 1"),
        "cpu": ("--cpus", "1", "--", "sh", "-c", "while :; do :; done"),
        "tasks": ("--tasks", "30", "--", "python3", "-c", FORKS),
        "disk": ("--tmp-size", "20M", "--", "sh", "-c", "while :; do cat /dev/zero > /tmp/f; rm -f /tmp/f; done"),
        "output": ("--output-limit", "1M", "--", "sh", "-c", "while :; do head -c 1000000 /dev/zero; done"),
        "inodes": ("--tmp-inodes", "500", "--", "python3", "-c", INODES),
        "cpu_time": ("--cpu-time", "20s", "--", "sh", "-c", "while :; do :; done"),
        "refusals": ("--", "python3", "-c", "import ctypes\nlibc = ctypes.CDLL(None)\nwhile True: libc.syscall(155, 0, 0)"),
        "open_files": ("--open-files", "64", "--", "python3", "-c", "import os\nwhile True:\n  try: os.dup(0)\n  except OSError: os.closerange(3, 64)"),
    }

    def test_twenty_just_under_their_limits(self):
        program = self.write("near.py", TOUCH + "open('/tmp/f', 'wb').write(bytes(4 << 20))\nprint('well')")

        def near(_):
            return self.record("--memory", "48M", "--tmp-size", "5M", "--tasks", "4", program, str(32 * MIB))

        with ThreadPoolExecutor(20) as pool:
            for record in pool.map(near, range(20)):
                self.assertEqual((record["status"], record["stdout"]), ("ok", "well\n"), record)

    def test_one_that_fights(self):
        for name, command in self.FIGHTS.items():
            with self.subTest(limit=name):
                fighter = self.start("run", "--timeout", "60s", *command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                try:
                    time.sleep(0.3)
                    for _ in range(3):
                        self.assertEqual(self.ok("--timeout", "10s", "--", "echo", "well"), "well\n")
                    self.assertIsNone(fighter.poll(), f"the fight over {name} ended")
                finally:
                    fighter.terminate()
                    fighter.wait(30)


if __name__ == "__main__":
    main()
