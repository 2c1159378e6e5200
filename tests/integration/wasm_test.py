"""The wasm tier: what modules need to work, how they end, and what is refused."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from harness import COMMAND, LIMIT_KEYS, TOP, Case, both_callers, main, shared_folder

sys.path.insert(0, str(TOP / "tests" / "modules"))
import wasm_modules as modules  # noqa: E402

HAS_ENGINE = Path(COMMAND).with_name("belljar-wasm").exists()

HELLO = r"""
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) printf("[%s]", argv[i]);
  printf("\nHOME=%s MODE=%s\n", getenv("HOME"), getenv("MODE"));
  fprintf(stderr, "to stderr\n");
  return argc - 1;
}
"""
COPY = r"""
#include <stdio.h>
#include <unistd.h>
int main() {
  char buffer[65536];
  ssize_t count;
  while ((count = read(0, buffer, sizeof buffer)) > 0)
    for (ssize_t done = 0, n; done < count; done += n)
      if ((n = write(1, buffer + done, count - done)) < 0) return 2;
  return count < 0;
}
"""
# Each word is an operation: r PATH, w PATH TEXT, l PATH (list), s PATH (size), u PATH (unlink), m PATH (mkdir) ...
FILES = r"""
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
static void say(const char* what, int result) {
  printf("%s %s\n", what, result < 0 ? strerror(errno) : "ok");
}
static int put(const char* path, int flags, const char* text) {
  int fd = open(path, flags, 0644);
  if (fd < 0) return fd;
  ssize_t count = write(fd, text, strlen(text));
  int error = errno;
  close(fd);
  errno = error;
  return count < 0 ? -1 : 0;
}
int main(int argc, char** argv) {
  for (int i = 1; i + 2 < argc; i += 3) {
    const char *op = argv[i], *a = argv[i + 1], *b = argv[i + 2];
    struct stat status;
    char text[4096];
    if (!strcmp(op, "read")) {
      int fd = open(a, O_RDONLY);
      ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
      if (count >= 0) { text[count] = 0; printf("read %s\n", text); } else say(op, -1);
    } else if (!strcmp(op, "write")) say(op, put(a, O_WRONLY | O_CREAT | O_TRUNC, b));
    else if (!strcmp(op, "append")) say(op, put(a, O_WRONLY | O_APPEND, b));
    else if (!strcmp(op, "truncate")) say(op, open(a, O_RDWR | O_TRUNC));
    else if (!strcmp(op, "mkdir")) say(op, mkdir(a, 0755));
    else if (!strcmp(op, "rmdir")) say(op, rmdir(a));
    else if (!strcmp(op, "unlink")) say(op, unlink(a));
    else if (!strcmp(op, "rename")) say(op, rename(a, b));
    else if (!strcmp(op, "link")) say(op, link(a, b));
    else if (!strcmp(op, "symlink")) say(op, symlink(a, b));
    else if (!strcmp(op, "times")) { struct timeval t[2] = {{1, 0}, {1, 0}}; say(op, utimes(a, t)); }
    else if (!strcmp(op, "size")) { int r = stat(a, &status); if (r < 0) say(op, r); else printf("size %d\n", (int)status.st_size); }
    else if (!strcmp(op, "readlink")) { ssize_t n = readlink(a, text, sizeof text - 1); if (n < 0) say(op, -1); else { text[n] = 0; printf("readlink %s\n", text); } }
    else if (!strcmp(op, "list")) {
      DIR* folder = opendir(a);
      if (!folder) { say(op, -1); continue; }
      int entries = 0;
      for (struct dirent* entry; (entry = readdir(folder));) entries += entry->d_name[0] != '.';
      printf("list %d\n", entries);
    }
  }
  return 0;
}
"""
ALLOCATE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
  size_t size = (size_t)atoi(argv[1]) << 20;
  char* area = malloc(size);
  if (!area) return 3;
  memset(area, 1, size);
  printf("%d\n", area[size / 2]);
  return 0;
}
"""
SLEEP = r"""
#include <time.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  struct timespec t = {atoi(argv[1]), 0};
  return nanosleep(&t, 0);
}
"""
RANDOM = r"""
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main() {
  unsigned char bytes[16];
  if (getentropy(bytes, sizeof bytes)) return 1;
  for (int i = 0; i < 16; ++i) printf("%02x", bytes[i]);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  printf(" %lld\n", (long long)now.tv_sec);
  return 0;
}
"""
# argv[1] says of what to use, argv[2] how much.
USE = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wasi/api.h>
static char block[65536];
static long long cpu_ms(void) {
  __wasi_timestamp_t now;
  return __wasi_clock_time_get(__WASI_CLOCKID_PROCESS_CPUTIME_ID, 0, &now) ? -1 : (long long)(now / 1000000);
}
static int spend(int fd, long long left) {
  while (left > 0) {
    ssize_t n = write(fd, block, left < (long long)sizeof block ? left : sizeof block);
    if (n < 0) return 1;
    left -= n;
  }
  return 0;
}
int main(int argc, char** argv) {
  long long amount = atoll(argv[2]);
  char name[32];
  if (!strcmp(argv[1], "memory")) { char* area = malloc(amount); if (!area) return 3; memset(area, 1, amount); return area[amount / 2] != 1; }
  if (!strcmp(argv[1], "time")) { struct timespec t = {amount / 1000, amount % 1000 * 1000000}; return nanosleep(&t, 0); }
  if (!strcmp(argv[1], "cpu")) { while (cpu_ms() < amount) {} return 0; }
  if (!strcmp(argv[1], "bytes")) return spend(open("/tmp/file", O_WRONLY | O_CREAT, 0644), amount);
  if (!strcmp(argv[1], "output")) return spend(1, amount);
  for (int i = 0; i < amount; ++i) {
    snprintf(name, sizeof name, "/tmp/%d", strcmp(argv[1], "files") ? 0 : i);
    int fd = open(name, O_WRONLY | O_CREAT, 0644);
    if (fd < 0) return 1;
    if (!strcmp(argv[1], "files")) close(fd);
  }
  return 0;
}
"""
MIB = 1 << 20


@dataclass(frozen=True)
class Limit:
    """As in limits_test.py: what a module sees that uses `under`, `little` or `lot`."""

    key: str
    flags: tuple[str, ...]
    use: str
    under: int
    little: int
    lot: int
    status: str
    words: str = ""


LIMITS = (
    Limit("memory_bytes", ("--memory", "64M"), "memory", 55 * MIB, 65 * MIB, 2000 * MIB, "memory", "memory limit of 64M"),
    Limit("swap_bytes", ("--memory", "64M", "--swap", "0"), "memory", 55 * MIB, 65 * MIB, 2000 * MIB, "memory", "64M"),
    Limit("cpu_time_ms", ("--cpu-time", "500ms"), "cpu", 350, 900, 60000, "cpu", "processor time limit of 500 ms"),
    Limit("timeout_ms", ("--timeout", "1s"), "time", 600, 1100, 60000, "timeout", "wall clock limit of 1 s"),
    Limit("tmp_size_bytes", ("--tmp-size", "8M"), "bytes", 8 * MIB - 65536, 8 * MIB + 65536, 64 * MIB, "disk", "8M"),
    Limit("tmp_inodes", ("--tmp-inodes", "100"), "files", 90, 101, 5000, "disk", "the 100 files and folders"),
    Limit("file_size_bytes", ("--file-size", "2M"), "bytes", 2 * MIB, 2 * MIB + 1, 20 * MIB, "disk", "grow past 2M"),
    Limit("open_files", ("--open-files", "50"), "open files", 30, 50, 5000, "error"),
    Limit("output_bytes", ("--output-limit", "100K", "--on-output-limit", "kill"), "output", 102400, 102401, 50 * MIB,
          "output", "output limit of 100K"),
)
ELSEWHERE = {
    "cpus": "EachLimit.test_cpus; a rate slows",
    "fuel": "Endings",
    "tasks": "../escape; a module can start none",
    "read_rate_bytes": "limits_test.py; the container's",
    "write_rate_bytes": "limits_test.py; the container's",
    "collect_file_bytes": "collect_test.py; the supervisor's",
    "collect_size_bytes": "collect_test.py; the supervisor's",
    "collect_entries": "collect_test.py; the supervisor's",
    "workspace_entries": "EachLimit.test_refused",
    "net_connections": "EachLimit.test_refused",
    "net_rate": "EachLimit.test_refused",
    "net_size_bytes": "EachLimit.test_refused",
    "net_idle_ms": "EachLimit.test_refused",
    "net_time_ms": "EachLimit.test_refused",
}
IMPORT_EXIT = '(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))'
LOOP = "(loop $again (br $again))"


class WasmCase(Case):
    def setUp(self):
        super().setUp()
        if not HAS_ENGINE:
            self.not_covered("the wasm tier", "belljar-wasm is not built (./dev wasm)")

    def module(self, content: bytes, name: str = "module.wasm") -> Path:
        return self.write(name, content)

    def wasm(self, content: bytes, *arguments: str, flags: tuple = (), **options):
        return self.run_in("--isolation", "wasm", *flags, self.module(content), *arguments, **options)

    def wasm_record(self, content: bytes, *arguments: str, flags: tuple = (), **options):
        return self.record("--isolation", "wasm", *flags, self.module(content), *arguments, **options)

    def limit(self, name: str, value: str) -> tuple:
        """Flags for a limit that an ordinary user's host may hold more weakly."""
        return (f"--{name}", value, *(("--accept-weaker", name.replace("-", "_")) if self.as_user else ()))

    def files(self, *operations: str, flags: tuple = ()) -> list[str]:
        words = [word for operation in operations for word in (operation.split() + ["-", "-"])[:3]]
        ended = self.wasm(modules.from_c(FILES), *words, flags=flags)
        self.assertEqual(ended.status, 0, str(ended))
        return ended.text.splitlines()


@both_callers
class Programs(WasmCase):
    def test_arguments_environment_and_streams(self):
        ended = self.wasm(modules.from_c(HELLO), "one", "two words", "", flags=("-e", "MODE=x=y"))
        self.assertEqual((ended.status, ended.text), (3, "[one][two words][]\nHOME=/tmp/home MODE=x=y\n"), str(ended))
        self.assertEqual(ended.err, b"to stderr\n")

    def test_variables_are_the_modules_alone(self):
        """The engine would take some of them for its own."""
        for variable in ("WASMTIME_BACKTRACE_DETAILS=1", "RUST_BACKTRACE=full", "LD_PRELOAD=/none.so", "MALLOC_ARENA_MAX=0", "MODE=set"):
            ended = self.wasm(modules.from_c(HELLO), flags=("-e", variable))
            self.assertEqual(ended.status, 0, str(ended))
            self.assertEqual(ended.text, "\nHOME=/tmp/home MODE=" + ("set\n" if variable == "MODE=set" else "(null)\n"))
            self.assertEqual(ended.err, b"to stderr\n")

    def test_bytes_pass_both_ways(self):
        data = bytes(range(256)) * 5000 + "žluťoučký \x00 end".encode()
        self.assertEqual(self.wasm(modules.from_c(COPY), data=data, flags=("--output-limit", "8M")).out, data)

    def test_no_stdin_is_its_end(self):
        self.assertEqual(self.wasm(modules.from_c(COPY), flags=("--no-stdin",), data=b"secret").out, b"")

    def test_record(self):
        record = self.wasm_record(modules.from_c(HELLO))
        self.assertEqual((record["status"], record["exit_code"], record["isolation"]["tier"]), ("ok", 0, "wasm"))
        self.assertIn("syscalls", record["isolation"]["enforced"])
        self.assertGreater(record["usage"]["start_us"], 0)

    def test_output_limit(self):
        record = self.wasm_record(modules.from_c(COPY), data=b"x" * 300000, flags=("--output-limit", "100000"))
        self.assertEqual((record["stdout_bytes_total"], len(record.out), record["stdout_truncated"]), (300000, 100000, True))

    def test_random_and_clock_are_real(self):
        first, second = (self.wasm(modules.from_c(RANDOM)).text.split() for _ in range(2))
        self.assertNotEqual(first[0], second[0])
        self.assertLess(abs(int(first[1]) - time.time()), 60)

    def test_a_limit_on_address_space_is_named(self):
        for limit, works in (("2000000", False), ("40000000", True)):
            ended = subprocess.run(["/bin/sh", "-c", f'ulimit -v {limit}; exec "$0" "$@"', COMMAND, "run", "--isolation", "wasm",
                                    self.module(modules.from_c(HELLO))], capture_output=True, check=False, stdin=subprocess.DEVNULL)
            self.assertEqual(ended.returncode, 0 if works else 125, ended.stderr)
            self.assertEqual(b"RLIMIT_AS" in ended.stderr, not works, ended.stderr)

    def test_exit_statuses(self):
        for code, status in ((0, 0), (1, 1), (125, 125), (255, 255), (256, 255), (-1, 255)):
            with self.subTest(code=code):
                ended = self.wasm(modules.command(f"(call $exit (i32.const {code}))", IMPORT_EXIT))
                self.assertEqual((ended.status, ended.err), (status, b""), str(ended))

    def test_collect(self):
        target = self.folder / "got"
        ended = self.wasm(modules.from_c(FILES), "write", "/out/a", "text", flags=("--collect", f"/out:{target}"))
        self.assertEqual(ended.status, 0, str(ended))
        self.assertEqual((target / "a").read_text(), "text")


@both_callers
class Endings(WasmCase):
    def test_trap_has_a_backtrace(self):
        module = modules.from_wat(
            '(module (memory (export "memory") 1) (func $inner (unreachable)) (func $outer (call $inner))'
            ' (func (export "_start") (call $outer)))', "--debug-names")
        record = self.wasm_record(module)
        self.assertEqual((record["status"], record["exit_code"]), ("error", 134))
        for word in ("inner", "outer", "unreachable"):
            self.assertIn(word, record["stderr"])

    def test_stack_overflow(self):
        record = self.wasm_record(modules.command("(call $dive)", more="(func $dive (call $dive) (call $dive))"))
        self.assertEqual((record["status"], record["exit_code"]), ("error", 134), record)
        self.assertIn("call stack exhausted", record["stderr"])
        self.assertLess(len(record["stderr"].splitlines()), 40)

    def test_memory_past_the_limit(self):
        for size, status in ((20, "ok"), (70, "memory"), (2000, "memory")):
            with self.subTest(size=size):
                record = self.wasm_record(modules.from_c(ALLOCATE), str(size), flags=self.limit("memory", "64M"))
                self.assertEqual(record["status"], status, record)
        self.assertEqual(record.exit_status, 124)

    def test_own_maximum_is_no_limit_of_ours(self):
        """A module that asks past the maximum that it declares gets -1, as the specification has it."""
        record = self.wasm_record(modules.command(
            "(call $exit (i32.eq (memory.grow (i32.const 5)) (i32.const -1)))", IMPORT_EXIT, '(memory (export "memory") 1 3)'))
        self.assertEqual((record["status"], record["exit_code"]), ("error", 1))

    def test_memory_and_tables_from_the_start(self):
        big = {"memory": '(memory (export "memory") 4096)',
               "table": '(memory (export "memory") 1) (table 10000000 funcref)'}
        for name, memory in big.items():
            with self.subTest(name):
                record = self.wasm_record(modules.command("", memory=memory), flags=self.limit("memory", "64M"))
                self.assertEqual(record["status"], "memory", record)

    def test_table_growth(self):
        body = "(drop (table.grow $t (ref.null func) (i32.const 50000000)))"
        record = self.wasm_record(modules.command(body, more="(table $t 1 funcref)"), flags=self.limit("memory", "64M"))
        self.assertEqual(record["status"], "memory", record)

    def test_fuel_is_the_same_on_every_run(self):
        module = modules.from_c(HELLO)
        used = {self.wasm_record(module, flags=("--fuel", "10000000"))["usage"]["fuel_used"] for _ in range(3)}
        self.assertEqual(len(used), 1, used)
        fuel = used.pop()
        self.assertGreater(fuel, 1000)
        enough = self.wasm_record(module, flags=("--fuel", str(fuel + 1)))
        self.assertEqual((enough["status"], enough["usage"]["fuel_used"]), ("ok", fuel))
        short = self.wasm_record(module, flags=("--fuel", str(fuel // 2)))
        self.assertEqual((short["status"], short.exit_status), ("cpu", 124))
        self.assertIn(f"{fuel // 2} units of fuel", short["reason"])

    def test_fuel_ends_a_loop(self):
        began = time.monotonic()
        self.assertEqual(self.wasm_record(modules.command(LOOP), flags=("--fuel", "1000000"))["status"], "cpu")
        self.assertLess(time.monotonic() - began, 10)

    def deadline(self, module: bytes, *arguments: str, mounts: tuple = (), **options):
        began = time.monotonic()
        record = self.wasm_record(module, *arguments, flags=("--timeout", "1s", *mounts), **options)
        self.assertEqual((record["status"], record["signal"], record.exit_status), ("timeout", 9, 124), record)
        self.assertLess(time.monotonic() - began, 8)
        self.assertGreaterEqual(record["duration_ms"], 950)
        self.assertLess(record["duration_ms"], 2500)

    def test_deadline_of_a_loop(self):
        self.deadline(modules.command(LOOP))

    def test_deadline_of_a_sleep(self):
        self.deadline(modules.from_c(SLEEP), "3600")

    def test_deadline_of_reading_stdin(self):
        read, write = os.pipe()
        self.addCleanup(os.close, write)
        self.deadline(modules.from_c(COPY), stdin=read)
        os.close(read)

    def test_deadline_of_opening_a_fifo(self):
        """open(2) of one waits for who writes to it."""
        folder = self.folder / "pipes"
        folder.mkdir()
        os.mkfifo(folder / "fifo")
        for path in (folder, folder / "fifo"):
            self.own(path)
        self.deadline(modules.from_c(FILES), "read", "/data/fifo", "-", mounts=("--mount", f"{folder}:/data"))

    def test_deadline_of_writing_to_a_full_pipe(self):
        """Nobody reads what belljar is to pass on: it waits, and the sandbox is gone all the same."""
        self.assertEqual(self.wasm(modules.from_c(USE), "output", "1").status, 0)
        read, write = os.pipe()
        process = self.start("run", "--isolation", "wasm", "--timeout", "1s", "--output-limit", "1G",
                             self.module(modules.from_c(USE)), "output", "1000000000", stdout=write)
        os.close(write)
        time.sleep(0.5)
        until = time.monotonic() + 10
        while sandboxes_of(process.pid) and time.monotonic() < until:
            time.sleep(0.1)
        self.assertEqual(sandboxes_of(process.pid), [])
        self.assertIsNone(process.poll())
        with open(read, "rb") as out:
            out.read()
        _, err = process.communicate(timeout=20)
        self.assertEqual((process.returncode, b"wall clock" in err), (124, True))

    def test_deadline_of_bulk_memory(self):
        fill = "(loop $again (memory.fill (i32.const 0) (i32.const 1) (i32.const 50000000)) (br $again))"
        self.deadline(modules.command(fill, memory='(memory (export "memory") 1000)'))

    def test_deadline_of_host_calls(self):
        module = modules.command("(loop $again (drop (call $yield)) (br $again))",
                                 '(import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))')
        self.deadline(module)

    def test_cpu_time(self):
        record = self.wasm_record(modules.command(LOOP), flags=self.limit("cpu-time", "300ms"))
        self.assertEqual(record["status"], "cpu", record)

    def test_interrupted_by_the_caller(self):
        process = self.start("run", "--isolation", "wasm", self.module(modules.command(LOOP)))
        time.sleep(1.5)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)


    def test_interrupted_while_it_is_compiled(self):
        process = self.start("run", "--isolation", "wasm", self.module(modules.many_functions(900_000)))
        time.sleep(2)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=20)
        self.assertEqual((process.returncode, err), (128 + signal.SIGTERM, b"belljar: stopped by the caller\n"))
        self.assertLess(time.monotonic() - began, 8)


@both_callers
class EachLimit(WasmCase):
    """The table above."""

    def flags(self, limit: Limit) -> tuple[str, ...]:
        weaker = ("memory", "swap", "cpu_time") if self.as_user else ()
        return (*limit.flags, *(word for name in weaker for word in ("--accept-weaker", name)))

    def use(self, limit: Limit, amount: int):
        return self.wasm_record(modules.from_c(USE), limit.use, str(amount), flags=self.flags(limit))

    def test_no_limit_is_left_out(self):
        self.assertEqual({limit.key for limit in LIMITS} | set(ELSEWHERE), LIMIT_KEYS)

    def test_under_it_nothing_happens(self):
        for limit in LIMITS:
            with self.subTest(limit=limit.key):
                record = self.use(limit, limit.under)
                self.assertEqual((record["status"], record["exit_code"], record["denials"]), ("ok", 0, []), record)

    def test_exceeded(self):
        for limit in LIMITS:
            for amount in (limit.little, limit.lot):
                with self.subTest(limit=limit.key, amount=amount):
                    record = self.use(limit, amount)
                    self.assertEqual(record["status"], limit.status, record)
                    self.assertIn(limit.words, record["reason"])

    def test_cpus(self):
        limit = Limit("cpus", ("--cpus", "0.25", *(("--accept-weaker", "cpus") if self.as_user else ())), "cpu", 0, 400, 0, "ok")
        record = self.use(limit, limit.little)
        self.assertEqual(record["status"], "ok", record)
        self.assertGreater(record["duration_ms"], 1000)

    def test_refused(self):
        module = self.module(modules.command(""))
        for name, value in (("workspace-entries", "5"), ("net-connections", "5"), ("net-rate", "5"), ("net-size", "5M"),
                            ("net-idle", "5s"), ("net-time", "5s")):
            with self.subTest(name):
                self.assert_refused(self.run_in("--isolation", "wasm", f"--{name}", value, module), 125, f"--{name}", "wasm")


@both_callers
class Mounts(WasmCase):
    def mounted(self, access: str) -> tuple[Path, tuple]:
        folder = self.folder / f"data-{access}"
        folder.mkdir()
        (folder / "file").write_text("content")
        (folder / "sub").mkdir()
        (folder / "sub" / "up").symlink_to("../file")
        (folder / "out").symlink_to("../../../../etc/passwd")
        (folder / "absolute").symlink_to("/etc/passwd")
        for path in (folder, folder / "file", folder / "sub"):
            self.own(path)
        return folder, ("--mount", f"{folder}:/data:{access}")

    def test_reading(self):
        _, flags = self.mounted("ro")
        self.assertEqual(self.files("read /data/file", "read /data/sub/up", "read /data/sub/../file", "list /data",
                                    "size /data/file", "read /data/nothing", "readlink /data/sub/up", flags=flags),
                         ["read content", "read content", "read content", "list 4", "size 7",
                          "read No such file or directory", "readlink ../file"])

    def test_nothing_leads_out(self):
        _, flags = self.mounted("rw")
        outside = ("/data/out", "/data/absolute", "/data/../proc/self/maps", "/data/sub/../../etc/passwd", "/proc/self/mem",
                   "/dev/null", "/etc/passwd", "/.belljar/engine", "/", "/data/..")
        for line in self.files(*(f"read {path}" for path in outside), *(f"list {path}" for path in ("/", "/proc", "/data/..")),
                               flags=flags):
            self.assertRegex(line, "(Capabilities insufficient|No such file|Not permitted|not permitted|Bad file)", line)

    def test_a_read_only_folder_stays_as_it_is(self):
        """WSM-02."""
        folder, flags = self.mounted("ro")
        before = snapshot(folder)
        lines = self.files("write /data/file x", "append /data/file x", "truncate /data/file", "write /data/new x",
                           "mkdir /data/new", "unlink /data/file", "rmdir /data/sub", "rename /data/file /data/new",
                           "rename /tmp/x /data/file", "link /data/file /data/new", "link /data/file /tmp/hard",
                           "symlink file /data/new", "times /data/file", "append /tmp/hard x", flags=flags)
        for line in lines[:-1]:
            self.assertRegex(line, "Read-only file system|Cross-device|not permitted|No such file", line)
        self.assertEqual(snapshot(folder), before)

    def test_a_writable_folder_takes_changes(self):
        folder, flags = self.mounted("rw")
        lines = self.files("write /data/new text", "mkdir /data/made", "rename /data/new /data/made/new",
                           "link /data/file /data/hard", "symlink file /data/soft", "times /data/file",
                           "unlink /data/sub/up", "rmdir /data/sub", "append /data/file !", flags=flags)
        self.assertEqual({line.split()[1] for line in lines}, {"ok"}, lines)
        self.assertEqual((folder / "made/new").read_text(), "text")
        self.assertEqual((folder / "file").read_text(), "content!")
        self.assertEqual((folder / "hard").stat().st_ino, (folder / "file").stat().st_ino)
        self.assertEqual(os.readlink(folder / "soft"), "file")
        self.assertEqual((folder / "file").stat().st_uid, self.caller_id)
        self.assertFalse((folder / "sub").exists())

    def test_a_single_file(self):
        path = self.write("one", "alone")
        self.assertEqual(self.files("read /data/one", "write /data/one x", "list /data", flags=("--mount", f"{path}:/data/one")),
                         ["read alone", "write Read-only file system", "list 1"])
        self.assert_refused(self.wasm(modules.from_c(HELLO), flags=("--mount", f"{path}:/one")), 125, "--mount", "/data")

    def test_writable_bytes_are_counted(self):
        record = self.wasm_record(modules.from_c(
            '#include <stdio.h>\nint main() { FILE* f = fopen("/tmp/x", "w"); static char b[65536] = {1}; long n = 0;'
            ' while (n < 100000000 && fwrite(b, sizeof b, 1, f) == 1) n += sizeof b;'
            ' return n < 100000000; }'), flags=("--tmp-size", "1M"))
        self.assertEqual(record["status"], "disk", record)

    def test_many_entries(self):
        folder = self.folder / "many"
        folder.mkdir()
        self.own(folder)
        for number in range(3000):
            (folder / f"{number}-{'n' * 100}").touch()
        self.assertEqual(self.files("list /data", flags=("--mount", f"{folder}:/data")), ["list 3000"])


def sandboxes_of(pid: int) -> list[str]:
    """The first processes of the sandboxes that a belljar has under way."""
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            name, state = re.match(r"\d+ \((.*)\) (.)", Path(f"/proc/{child}/stat").read_text()).groups()
        except OSError:
            continue
        if state != "Z" and name == "belljar-init":
            found.append(child)
    return found


def snapshot(folder: Path) -> list:
    """What would show a change of anything in the folder."""
    return sorted((str(path), path.lstat().st_mode, path.lstat().st_mtime_ns, path.lstat().st_nlink, path.lstat().st_size,
                   hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else "")
                  for path in [folder, *folder.rglob("*")])


@both_callers
class Refusals(WasmCase):
    def test_flags_are_refused_by_name(self):
        module = self.module(modules.command(""))
        for flags in (("--allow", "example.org"), ("--workspace", "."), ("--image", "x"), ("--venv", "/usr"),
                      ("--hide", "/etc"), ("--workdir", "/tmp"), ("--net-rate", "5")):
            with self.subTest(flags):
                self.assert_refused(self.run_in("--isolation", "wasm", *flags, module), 125, flags[0], "wasm")
        secret = ("--secret", "K=env:K@example.org:X-Key: {}")
        for flags in secret, ("--allow", "example.org"), (*secret, "--allow", "example.org"):
            self.assert_refused(self.run_in("--isolation", "wasm", *flags, module), 125, flags[0], "wasm", "use --isolation container")
        self.assert_refused(self.run_in("--isolation", "wasm", "--", "true"), 125, "-- COMMAND")
        self.assert_refused(self.run_in("--fuel", "5", "--", "true"), 125, "--fuel")

    def test_what_is_no_module(self):
        garbage = {"empty": (b"", "does not begin"), "text": (b"(module)", "does not begin"), "elf": (b"\x7fELF" + bytes(60), ""),
                   "head": (b"\0asm", "cut short"), "cut": (modules.command("")[:-3], "unexpected end"),
                   "version": (b"\0asm\x02\0\0\0", "version"), "rubbish": (b"\0asm\x01\0\0\0" + os.urandom(500), "")}
        for name, (content, why) in garbage.items():
            with self.subTest(name):
                ended = self.wasm(content)
                self.assert_refused(ended, 126, "module.wasm: ", why)
                self.assertNotRegex(ended.err, rb"\\n|Caused by|  ")
                self.assertEqual(json.loads(self.run_in("--json", "--isolation", "wasm", self.module(content)).out)
                                 ["error"]["code"], "bad_module")

    def test_a_library(self):
        self.assert_refused(self.wasm(modules.from_wat('(module (func (export "add")))')), 126, "exports no function _start")
        self.assert_refused(self.wasm(modules.from_wat('(module (func (export "_start") (param i32)))')), 126, "_start takes or returns")

    def test_missing_imports(self):
        self.assert_refused(self.wasm(modules.command("", '(import "env" "system" (func))')), 127, '"system"', '"env"')
        wrong_type = '(import "wasi_snapshot_preview1" "fd_close" (func (param i64)))'
        self.assert_refused(self.wasm(modules.command("", wrong_type)), 127, "fd_close")

    def test_wrong_wasi(self):
        old = modules.command("", '(import "wasi_unstable" "fd_close" (func (param i32) (result i32)))')
        self.assert_refused(self.wasm(old), 125, "preview 0")
        self.assert_refused(self.wasm(b"\0asm\x0d\0\x01\0"), 125, "component")

    def test_what_is_no_file(self):
        for path in ("nothing.wasm", "."):
            self.assert_refused(self.run_in("--isolation", "wasm", path), 125, path)


@both_callers
class Cache(WasmCase):
    def cache(self) -> Path:
        base = Path("/var/cache") if self.caller_id == 0 else shared_folder() / "home" / ".cache"
        return base / "belljar" / "wasm"

    def test_a_damaged_entry_is_made_again(self):
        content = modules.command(f"(call $exit (i32.const {len(self.id())}))", IMPORT_EXIT)
        before = set(os.listdir(self.cache())) if self.cache().exists() else set()
        want = self.wasm(content).status
        made = sorted(set(os.listdir(self.cache())) - before)
        entry = self.cache() / made[0] if made else max(self.cache().iterdir(), key=lambda p: p.stat().st_mtime)
        whole = entry.read_bytes()
        for name, damaged in (("flipped", whole[:2000] + bytes([whole[2000] ^ 1]) + whole[2001:]), ("cut", whole[:-100]),
                              ("empty", b""), ("digest", whole[:-1] + b"?"), ("rubbish", os.urandom(5000))):
            with self.subTest(name):
                entry.unlink()
                entry.write_bytes(damaged)
                self.own(entry)
                self.assertEqual(self.wasm(content).status, want)
                self.assertEqual(entry.read_bytes()[-64:], whole[-64:])

    def test_an_entry_of_another_module_is_not_taken(self):
        first, second = (modules.command(f"(call $exit (i32.const {code}))", IMPORT_EXIT) for code in (41, 42))
        for content, status in ((first, 41), (second, 42)):
            self.assertEqual(self.wasm(content).status, status)
        entries = sorted(self.cache().iterdir(), key=lambda p: p.stat().st_mtime)[-2:]
        texts = [entry.read_bytes() for entry in entries]
        for entry, text in zip(entries, reversed(texts)):
            entry.unlink()
            entry.write_bytes(text)
            self.own(entry)
        self.assertEqual([self.wasm(content).status for content in (first, second)], [41, 42])

    def test_many_first_runs_at_once(self):
        for number in range(3):
            module = self.module(modules.command(f"(call $exit (i32.const {number}))", IMPORT_EXIT) + b"\0\x0a\x01n" + os.urandom(8))
            runs = [self.start("run", "--isolation", "wasm", module, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE) for _ in range(6)]
            self.assertEqual([(run.communicate()[1], run.returncode) for run in runs], [(b"", number)] * len(runs))

    def test_what_a_killed_run_left_is_removed(self):
        self.wasm(modules.command(""))
        left = self.cache() / f"{'0' * 64}.1.0.new"
        left.write_bytes(b"half of it")
        self.own(left)
        self.assertEqual(self.belljar("gc").status, 0)
        self.assertFalse(left.exists())

    def test_on_a_file_system_without_executable_mappings(self):
        """noexec: the module is copied, with its data."""
        ended = self.run_on_a_tmpfs("noexec", "--isolation", "wasm", self.module(modules.from_c(HELLO)), "a")
        self.assertEqual((ended.returncode, ended.stdout), (1, b"[a]\nHOME=/tmp/home MODE=(null)\n"), ended.stderr)

    def test_on_a_file_system_without_devices(self):
        """nodev: of all tiers. As an ordinary user the host's own nodes are what is seen."""
        for tier, words in (("container", ("--", "sh", "-c", "echo x >/dev/null && head -c 3 /dev/zero | wc -c")),
                            ("wasm", (self.module(modules.from_c(HELLO)),))):
            ended = self.run_on_a_tmpfs("nodev", "--isolation", tier, *words)
            self.assertEqual((ended.returncode, ended.stderr.replace(b"to stderr\n", b"")), (0, b""))
            self.assertTrue(ended.stdout.startswith(b"3\n" if tier == "container" else b"\nHOME="), ended.stdout)

    def run_on_a_tmpfs(self, option: str, *words):
        """The cache folder is one, mounted with this option where no other process sees it."""
        if os.geteuid() != 0:
            self.not_covered(f"a cache folder mounted {option}", "mounting takes root")
        become, cache = "", self.cache().parent
        if self.as_user:
            become = f"setpriv --reuid {self.caller_id} --regid {self.caller_id} --clear-groups"
        cache.mkdir(parents=True, exist_ok=True)
        mount = f'mount -t tmpfs -o {option},mode=755,uid={self.caller_id},gid={self.caller_id} none {cache} && exec {become} "$0" run "$@"'
        return subprocess.run(["unshare", "--mount", "/bin/sh", "-c", mount, COMMAND, *words], env=self.environment(), cwd=self.folder,
                              capture_output=True, stdin=subprocess.DEVNULL, check=False)

    def test_a_folder_that_others_can_write_is_refused(self):
        self.wasm(modules.command(""))
        mode = self.cache().stat().st_mode & 0o777
        self.cache().chmod(0o777)
        self.addCleanup(self.cache().chmod, mode)
        self.assert_refused(self.wasm(modules.command("")), 125, "others")


@both_callers
class Scripts(WasmCase):
    def script(self, code: str, *arguments: str, flags: tuple = (), name: str = "script.js", **options):
        return self.run_in("--isolation", "wasm", *flags, self.write(name, code), *arguments, **options)

    def test_javascript(self):
        ended = self.script("console.log([1, 2, 3].map(n => n * n).join(), scriptArgs.length, scriptArgs[1])", "a b")
        self.assertEqual((ended.status, ended.text), (0, "1,4,9 2 a b\n"), str(ended))

    def test_javascript_module(self):
        ended = self.script("const later = await Promise.resolve(7); console.log(later)", name="script.mjs")
        self.assertEqual((ended.status, ended.text), (0, "7\n"), str(ended))

    def test_javascript_library(self):
        use = "std.printf('%d ', 5); os.setTimeout(() => std.out.puts('later\\n'), 1)"
        for code in (use, "import * as std from 'std'; import * as os from 'os';" + use,
                     "import * as std from 'qjs:std'; import * as os from 'qjs:os';" + use):
            ended = self.script(code)
            self.assertEqual((ended.status, ended.text), (0, "5 later\n"), str(ended))

    def test_javascript_timers(self):
        ended = self.script("let n = 0; const t = setInterval(() => { if (++n == 3) clearInterval(t); console.log(n) }, 1);\n"
                            "setTimeout(() => console.log('never'), 1e6, clearTimeout(setTimeout(() => console.log('no'), 1)));\n"
                            "setTimeout(() => std.exit(4), 200)")
        self.assertEqual((ended.status, ended.text), (4, "1\n2\n3\n"), str(ended))

    def test_javascript_recursion_without_end(self):
        for what in ("function f(n) { return 1 + f(n + 1) } f(0)", "const o = { get a() { return this.a } }; o.a",
                     "const o = { toString() { return '' + this } }; '' + o", "function f(...a) { f(...a, 1) } f()",
                     "const p = new Proxy({}, { get(t, k, r) { return r[k] } }); p.x", "JSON.parse('['.repeat(1e6))",
                     "new RegExp('('.repeat(1e5))", "eval('('.repeat(1e6))", "class A { constructor() { new A() } } new A()",
                     "let a = []; for (let i = 0; i < 1e6; ++i) a = [a]; JSON.stringify(a)", "const f = () => [1, 2].map(f); f()",
                     "const f = () => [2, 1].sort(f); f()", "const g = () => 'x'.replace(/x/, g); g()"):
            with self.subTest(what):
                ended = self.script(f"try {{ {what}; console.log('ended') }} catch (e) {{ console.log(e.name) }}")
                self.assertEqual(ended.status, 0, str(ended))
                self.assertIn(ended.text, ("InternalError\n", "RangeError\n", "SyntaxError\n"), str(ended))
        ended = self.script("function f(n) { return n ? 1 + f(n - 1) : 0 } console.log(f(2000))")
        self.assertEqual(ended.text, "2000\n", str(ended))

    def test_javascript_error(self):
        ended = self.script("function deep() { throw new Error('broken') }\ndeep()")
        self.assertEqual(ended.status, 1, str(ended))
        self.assertIn(b"broken", ended.err)
        self.assertIn(b"script.js:1", ended.err)

    def test_javascript_limits(self):
        self.assertEqual(self.script("for (;;);", flags=("--timeout", "500ms")).status, 124)
        self.assertEqual(self.script("let a = []; for (;;) a.push(new Uint8Array(1e6))", flags=self.limit("memory", "64M")).status, 124)
        fuel = [self.record("--isolation", "wasm", "--fuel", "1000000000", self.write("s.js", "console.log(1)"))["usage"]
                ["fuel_used"] for _ in range(2)]
        self.assertEqual(fuel[0], fuel[1])

    def test_what_has_no_interpreter(self):
        self.assert_refused(self.script("print(1)", name="script.rb"), 126, "script.rb")


class Interpreters(WasmCase):
    """As an installation has them, compiled."""

    # x86-64-v2, as gcc's manual has it.
    ANY_PROCESSOR = {b"cmpxchg16b", b"sse3", b"ssse3", b"sse41", b"sse42", b"popcnt"}

    def compiled(self) -> list[Path]:
        return sorted(Path(COMMAND).parent.glob("belljar-*.cwasm"))

    def test_they_are_for_any_processor(self):
        self.assertEqual([path.name for path in self.compiled()], ["belljar-python.cwasm", "belljar-quickjs.cwasm"])
        for path in self.compiled():
            # The engine's note of what code asks of the processor: a name, then 2 for a truth value, and that.
            found = dict(re.findall(rb"has_([a-z0-9]+)\x02([\x00\x01])", path.read_bytes()))
            self.assertLessEqual(self.ANY_PROCESSOR | {b"avx2", b"bmi2"}, set(found))
            self.assertEqual({name for name, asked in found.items() if asked == b"\x01"}, self.ANY_PROCESSOR)

    def test_what_asks_more_than_the_processor_has_is_not_run(self):
        """Neither the installation nor the cache is trusted with that: the engine looks itself."""
        engine = Path(COMMAND).with_name("belljar-wasm")
        compiled, report = self.folder / "true.cwasm", self.folder / "report"
        words = ["/bin/sh", "-c", 'exec "$@" 3>"$0"', report, engine]
        with open(compiled, "wb") as out:
            subprocess.run([*words, "compile", self.module(modules.command("")), "0", "any", "1000000"], stdout=out, check=True)
        run = [*words, "run", compiled, "", "1000000", "0", "0", "true"]
        self.assertEqual(subprocess.run(run).returncode, 0)
        content = compiled.read_bytes()
        self.assertIn(b"has_sse42\x02\x01", content)
        compiled.write_bytes(content.replace(b"has_sse42", b"has_sse49"))
        self.assertEqual(subprocess.run(run).returncode, 1)
        self.assertIn(b"has_sse49", report.read_bytes())


class Doctor(WasmCase):
    def test_it_names_what_this_tier_holds(self):
        report = json.loads(self.belljar("doctor", "--json").out)
        walls = {tier["name"]: {wall["name"]: wall["state"] for wall in tier["walls"]} for tier in report["tiers"]}
        self.assertEqual((walls["wasm"]["fuel"], walls["container"]["fuel"]), ("enforced", "missing"))
        self.assertEqual(set(walls["container"]) - set(walls["wasm"]),
                         {"net_connections", "net_rate", "net_size", "net_idle", "net_time", "workspace_entries"})


class Choice(WasmCase):
    def chosen(self, path: Path, trust: str, *flags: str) -> str:
        ended = self.run_in("--isolation", "auto", "--trust", trust, "--explain", *flags, path)
        lines = [line for line in ended.own_lines() if line.startswith("belljar: isolation ")]
        self.assertEqual(len(lines), 1, str(ended))
        return lines[0].split()[2].rstrip(":")

    def test_the_table(self):
        module = self.module(modules.command(""))
        script = self.write("script.js", "")
        other = self.write("script.sh", "true")
        self.assertEqual({self.chosen(module, trust) for trust in ("untrusted", "reviewed", "own")}, {"wasm"})
        self.assertEqual(self.chosen(script, "untrusted"), "wasm")
        self.assertNotEqual(self.chosen(script, "reviewed"), "wasm")
        self.assertEqual(self.chosen(script, "own"), "container")
        self.assertNotEqual(self.chosen(script, "untrusted", "--allow", "example.org"), "wasm")
        self.assertNotEqual(self.chosen(other, "untrusted"), "wasm")
        self.assertEqual(self.chosen(other, "own"), "container")

    def test_a_flag_that_a_tier_refuses_leads_to_another(self):
        script = self.write("script.js", "")
        for trust, flags, want in (("untrusted", ("--allow", "example.org"), "container"),
                                   ("untrusted", ("--workspace", str(self.folder)), "container"),
                                   ("reviewed", ("--mount", f"{self.folder}:/data:rw"), "container"),
                                   ("own", ("--fuel", "1000000000"), "wasm"), ("reviewed", ("--fuel", "1000000000"), "wasm"),
                                   ("untrusted", ("--mount", f"{self.write('data', 'x')}:/one"), "kernel")):
            with self.subTest(flags):
                self.assertEqual(self.chosen(script, trust, *flags), want)
        nowhere = self.run_in("--isolation", "auto", "--trust", "own", "--fuel", "5", "--allow", "example.org", script)
        self.assert_refused(nowhere, 125, "no tier", "container: --fuel", "kernel: --allow", "wasm: --allow")

    def test_the_reason_is_the_one_that_decided(self):
        script = self.write("script.js", "")
        reasons = [self.run_in("--isolation", "auto", "--trust", trust, "--explain", script).err.decode()
                   for trust in ("untrusted", "reviewed", "own")]
        for reason, words in zip(reasons, ("nobody has read", "somebody has read", "your own")):
            self.assertIn(words, reason)

    def test_a_module_is_one_by_its_content(self):
        module = self.module(modules.command("(call $exit (i32.const 6))", IMPORT_EXIT), "named.py")
        self.assertEqual(self.chosen(module, "own"), "wasm")
        self.assertEqual(self.run_in("--isolation", "wasm", module).status, 6)

    def test_an_interpreter_that_lacks_a_part_is_none(self):
        copy = self.folder / "bin"
        shutil.copytree(Path(COMMAND).parent, copy, ignore=lambda folder, names: [n for n in names if not n.startswith("belljar")])
        self.own(copy)
        run = [copy / "belljar", "run", "--isolation", "auto", "--trust", "untrusted", "--explain", self.write("script.py", "")]
        for lacks, tier in ((None, b"isolation wasm"), ("belljar-python311.zip", b"isolation kernel")):
            if lacks:
                (copy / lacks).unlink()
            self.assertIn(tier, subprocess.run(run, capture_output=True, check=False, stdin=subprocess.DEVNULL).stderr)

    def test_the_record_names_the_tier(self):
        record = self.record("--isolation", "auto", "--trust", "own", self.module(modules.command("")))
        self.assertEqual(record["isolation"]["tier"], "wasm")

    def test_auto_and_trust_belong_together(self):
        module = self.module(modules.command(""))
        self.assert_refused(self.run_in("--isolation", "auto", module), 125, "--trust")
        self.assert_refused(self.run_in("--trust", "own", module), 125, "--trust")
        self.assert_refused(self.run_in("--explain", module), 125, "--explain")
        self.assert_refused(self.run_in("--isolation", "auto", "--trust", "some", module), 125, "untrusted, reviewed or own")


if __name__ == "__main__":
    main()
