#!/usr/bin/python3
"""The kernel tier: real programs on the user-space kernel, what is refused, and what hostile guests get."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from harness import Case, Record, both_callers, main, root_only

# A guest that knows where the kernel's shared memory is, and writes over it.
SCRIBBLE = r"""
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  srand(atoi(argv[1]));
  const uint64_t arena = 0x6f1000000000, size = 0x480000;
  for (int i = 0; i < 300000; ++i) *(volatile uint32_t*)(arena + ((uint64_t)rand() * 65537 % size & ~3ull)) = rand();
  for (int i = 0; i < 100; ++i) if (fork() == 0) _exit(0);
  return 0;
}
"""

# Has so many MiB of its own, reads all files of a folder twice, and looks at what it has.
READS_MUCH = r"""
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  static unsigned char block[1 << 16];
  const size_t size = (size_t)atol(argv[1]) << 20;
  unsigned char* const own = malloc(size);
  for (size_t i = 0; i < size; i += 4096) own[i] = (unsigned char)(i >> 12);
  long bytes = 0;
  unsigned sum = 0;
  if (chdir(argv[2]) != 0) return 2;
  for (int round = 0; round < 2; ++round) {
    DIR* const folder = opendir(".");
    for (struct dirent* entry; (entry = readdir(folder)) != 0;) {
      const int fd = open(entry->d_name, O_RDONLY);
      for (long count; (count = read(fd, block, sizeof block)) > 0; bytes += count) sum += block[count - 1] * (unsigned)count;
      close(fd);
    }
    closedir(folder);
  }
  for (size_t i = 0; i < size; i += 4096)
    if (own[i] != (unsigned char)(i >> 12)) return 3;
  printf("%ld %u\n", bytes, sum);
  return 0;
}
"""

# Jumps to a syscall instruction in the kernel's own text, as only the wall stands behind that, once for each number.
PROBE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static unsigned char* gadget(void) {
  unsigned char* text = (unsigned char*)0x6f0000000000;
  for (int i = 0; i < 0x20000; ++i)
    if (text[i] == 0x0f && text[i + 1] == 5 && text[i + 2] == 0xc3) return text + i;
  return 0;
}
int main(int argc, char** argv) {
  long result;
  __asm__ volatile("call *%2" : "=a"(result) : "0"(atol(argv[1])), "r"(gadget()), "D"(0), "S"(0), "d"(0) : "rcx", "r11", "memory");
  printf("answered %ld\n", result);
  return 0;
}
"""
# Tries to change what other sandboxes read: the cache of contents, mapped behind the sandbox's own contents.
CACHE = r"""
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static unsigned char* gadget(void) {
  unsigned char* text = (unsigned char*)0x6f0000000000;
  for (int i = 0; i < 0x20000; ++i)
    if (text[i] == 0x0f && text[i + 1] == 5 && text[i + 2] == 0xc3) return text + i;
  return 0;
}
static long host(long number, long a, long b, long c, long d, long e, long f) {
  unsigned char* const call = gadget();
  long result;
  register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
  __asm__ volatile("call *%2" : "=a"(result) : "0"(number), "r"(call), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
int main() {
  volatile char* const cache = (char*)0x6f5000000000;
  printf("begins with %d letters\n", cache[0] != 0 && cache[63] != 0 && cache[64] == 0 ? 64 : 0);
  printf("protect %ld\n", host(10, (long)cache, 4096, PROT_READ | PROT_WRITE, 0, 0, 0));
  printf("map to write %ld\n", host(9, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 5, 0));
  const long own = host(9, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, 5, 0);
  *(char*)own = 'x';
  printf("other descriptor %ld\n", host(9, 0, 4096, PROT_READ, MAP_SHARED, 5, 1L << 40) > 0 ? 1L : 0L);
  fflush(stdout);
  host(28, (long)cache, 4096, 9 /* MADV_REMOVE */, 0, 0, 0);
  if (fork() == 0) { *cache = 'x'; _exit(0); }
  int status;
  wait(&status);
  printf("signal %d\n", WTERMSIG(status));
  return 0;
}
"""
# What the profile lets pass with arguments of 0, so that the guest lives on (or ends in order).
# munmap, mprotect, sched_yield, exit..., sigaltstack, restart_syscall, clock_gettime, futex
PASSES = {11, 10, 24, 60, 231, 131, 219, 228, 202}


@both_callers
class Programs(Case):
    def kernel(self, *arguments, **options):
        return self.run_in("--isolation", "kernel", *arguments, **options)

    def kernel_sh(self, code: str, *options) -> str:
        return self.sh(code, "--isolation", "kernel", *options)

    def test_shells(self):
        self.assertEqual(self.kernel_sh("seq 3 | tac | tr '\\n' ' '; echo $(echo a $(echo b))"), "3 2 1 a b\n")
        ended = self.kernel("--", "bash", "-c", "diff <(seq 3) <(seq 4); trap 'echo bye' EXIT; sleep 0.1 & wait; cat <<< here")
        self.assertEqual((ended.status, ended.text), (0, "3a4\n> 4\nhere\nbye\n"), str(ended))

    def test_python(self):
        code = ("import json, re, asyncio, email, http.client, unittest, decimal, sqlite3, subprocess, threading, multiprocessing\n"
                "base = sqlite3.connect('x.db'); base.execute('pragma journal_mode=wal'); base.execute('create table t(a)')\n"
                "base.execute('insert into t values (5)'); base.commit(); print(base.execute('select a from t').fetchone()[0])\n"
                "print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout.strip())\n"
                "with multiprocessing.get_context('fork').Pool(2) as pool: print(pool.map(abs, [-1, -2]))\n"
                "threads = [threading.Thread(target=print, args=(i,)) for i in range(1)]; [t.start() for t in threads]; [t.join() for t in threads]\n")
        self.assertEqual(self.python(code, "--isolation", "kernel"), "5\nchild\n[1, 2]\n0\n")

    def test_tools(self):
        self.need("git")
        self.need("gcc")
        git = ("git init -q r; cd r; git config user.email a@b; git config user.name n; echo x > f; git add f; git commit -qm m; "
               "git clone -q . ../c; git -C ../c log --format=%s; cat ../c/f")
        self.assertEqual(self.kernel_sh(git), "m\nx\n")
        compile_it = "printf '#include <stdio.h>\\nint main() { puts(\"made\"); }' > a.c; gcc a.c -o a; ./a"
        self.assertEqual(self.kernel_sh(compile_it), "made\n")

    def test_streams(self):
        ended = self.kernel("--", "sh", "-c", "cat; echo oops >&2; exit 7", data=b"x" * 200_000)
        self.assertEqual((ended.status, len(ended.out), ended.err), (7, 200_000, b"oops\n"))

    def test_mount(self):
        folder = self.folder / "data"
        folder.mkdir()
        (folder / "f").write_text("seen\n")
        ended = self.kernel("--mount", f"{folder}:/data", "--", "sh", "-c", "cat /data/f; echo x > /data/g")
        self.assertEqual((ended.status, ended.text), (2, "seen\n"), str(ended))
        self.assertFalse((folder / "g").exists())

    def test_mounts_below_tmp(self):
        folder = self.folder / "data"
        folder.mkdir()
        (folder / "f").write_text("seen\n")
        ended = self.kernel("--mount", f"{folder}:/tmp/home/in", "--mount", f"{folder}:/tmp/a/b", "--mount", f"{folder}/f:/tmp/file", "--", "sh", "-c",
                            "cat ~/in/f /tmp/a/b/f /tmp/file; ls ~ /tmp; (echo x > /tmp/file) 2>&-; (echo x > ~/in/new) 2>&-; "
                            "rm -f /tmp/file 2>&-; mv /tmp/a/b /tmp/c 2>&-; echo mine > /tmp/a/x; cat /tmp/a/x")
        self.assertEqual((ended.status, ended.text), (1, "seen\nseen\nseen\n/tmp:\na\nfile\nhome\n\n/tmp/home:\nin\n"), str(ended))
        self.assertEqual(((folder / "f").read_text(), sorted(os.listdir(folder))), ("seen\n", ["f"]))

    def test_limits(self):
        record = self.record("--isolation", "kernel", "--timeout", "1s", "--", "sh", "-c", "echo partial; while :; do :; done")
        self.assertEqual((record["status"], record["stdout"], record["isolation"]["tier"]), ("timeout", "partial\n", "kernel"))
        ended = self.kernel("--tmp-size", "1M", "--", "sh", "-c", "head -c 3000000 /dev/zero > x; wc -c < x")
        self.assertEqual((ended.status, ended.text), (0, "1048576\n"), str(ended))
        record = self.record("--isolation", "kernel", "--tmp-size", "1M", "--", "sh", "-c", "head -c 3000000 /dev/zero > x")
        self.assertEqual((record["status"], record["usage"]["disk_written_bytes"]), ("disk", 1 << 20))
        record = self.record("--isolation", "kernel", "--tmp-inodes", "20", "--", "sh", "-c", "for i in $(seq 30); do : > $i || exit 1; done")
        self.assertEqual((record["status"], record["usage"]["disk_written_inodes"]), ("disk", 20))
        record = self.record("--isolation", "kernel", "--", "sh", "-c", "kill -SEGV $$")
        self.assertEqual((record["status"], record["signal"]), ("signal", 11))

    def test_refusals(self):
        self.assert_refused(self.kernel("--", "nosuch"), 127, "nosuch", "not found")
        secret = ("--secret", "K=env:K@example.org:X-Key: {}")
        for options, word in ((("--allow", "example.org"), "--allow"), (secret, "--secret"), (("--allow", "example.org", *secret), "--secret"),
                              (("--mount", f"{self.folder}:/data:rw"), ":rw")):
            self.assert_refused(self.kernel(*options, "--", "true"), 125, word, "kernel tier", "use --isolation container")


@both_callers
class Cache(Case):
    """Contents of the image are kept for all sandboxes of it. As an ordinary user each test has a cache of its own."""

    def setUp(self):
        super().setUp()
        self.place = Path("/var/cache/belljar") if self.caller_id == 0 else self.folder / "cache/belljar"

    def kernel(self, *command, **options):
        return self.run_in("--isolation", "kernel", *command, env={"XDG_CACHE_HOME": str(self.folder / "cache")}, **options)

    def newest(self) -> Path:
        return max((self.place / "kernel").iterdir(), key=lambda path: path.stat().st_mtime)

    def beginning(self) -> bytes:
        with open(self.newest(), "rb") as file:
            return file.read(128)

    def read_env(self):
        ended = self.kernel("--", "sha256sum", "/usr/bin/env")
        wanted = subprocess.run(["sha256sum", "/usr/bin/env"], capture_output=True, text=True).stdout
        self.assertEqual((ended.status, ended.text), (0, wanted), str(ended))

    def test_damage_is_replaced(self):
        self.read_env()
        path = self.newest()
        os.truncate(path, 4096)
        self.read_env()
        self.assertEqual(path.stat().st_size, 1 << 30)
        with open(path, "r+b") as file:
            file.write(b"damaged")
        self.read_env()
        self.assertEqual(self.beginning().decode().rstrip("\0"), self.newest().name)

    def test_several_at_once(self):
        code = "import json, asyncio, email, decimal; print(json.dumps([1]))"
        running = [self.start("run", "--isolation", "kernel", "--", "python3", "-c", code, stdout=subprocess.PIPE,
                              env={"XDG_CACHE_HOME": str(self.folder / "cache")}) for _ in range(4)]
        self.assertEqual([one.communicate()[0] for one in running], [b"[1]\n"] * 4)

    def test_guests_only_read_it(self):
        source = self.write("guest.c", CACHE)
        subprocess.run(["gcc", "-O1", "-w", "-static", "-o", self.folder / "guest", source], check=True)
        (self.folder / "guest").chmod(0o755)
        self.read_env()
        before = self.beginning()
        ended = self.kernel("--mount", f"{self.folder / 'guest'}:/guest", "--", "/guest")
        self.assertEqual(ended.text.splitlines(), ["begins with 64 letters", "protect -13", "map to write -13", "other descriptor 1",
                                                   f"signal {signal.SIGSEGV}"], str(ended))
        self.assertEqual(self.beginning(), before)

    def test_compiling_fits_into_the_default_memory(self):
        self.need("g++")
        code = "printf '#include <iostream>\\nint main() { std::cout << \"made\" << std::endl; }' > a.cc; g++ a.cc -o a && ./a"
        ended = self.kernel("--", "sh", "-c", code)
        self.assertEqual((ended.status, ended.text), (0, "made\n"), str(ended))


@root_only
class Upgrade(Case):
    def test_is_seen(self):
        """A file of the host's that was kept is read anew after it has changed, also where its size and name are the same."""
        path = Path(f"/usr/local/share/belljar-test-{os.getpid()}")
        self.addCleanup(path.unlink)
        for text in ("first", "other", "third"):
            path.write_text(text)
            time.sleep(3.1)  # what changed a moment ago is not kept
            for _ in range(2):
                self.assertEqual(self.sh(f"cat {path}", "--isolation", "kernel"), text)
            path.with_suffix(".new").write_text(text.upper())
            path.with_suffix(".new").rename(path)
            self.assertEqual(self.sh(f"cat {path}", "--isolation", "kernel"), text.upper())


class Memory(Case):
    def test_limit(self):
        record = self.record("--isolation", "kernel", "--memory", "64M", "--", "/usr/bin/python3", "-c", "x = bytearray(10**9)")
        self.assertEqual(record["status"], "memory")

    def test_reading_takes_none(self):
        """A program that is near its limit reads more files than there is memory: what was read can go again."""
        self.need("gcc")
        source = self.write("reads.c", READS_MUCH)
        subprocess.run(["gcc", "-O1", "-w", "-static", "-o", self.folder / "reads", source], check=True)
        files = self.folder / "files"
        files.mkdir()
        for number in range(40):
            (files / f"large{number}").write_bytes(os.urandom(1 << 16) * 64)
        for number in range(2000):
            (files / f"small{number}").write_bytes(b"%d" % number * 4000)
        told = [self.run_in("--isolation", tier, "--memory", "128M", "--timeout", "100s", "--mount", f"{self.folder}:/mnt", "--",
                            "/mnt/reads", "70", "/mnt/files") for tier in ("container", "kernel")]
        for ended in told:
            self.assertEqual(ended.status, 0, str(ended))
        self.assertEqual(*[ended.text for ended in told])
        self.assertGreater(int(told[0].text.split()[0]), 2 * 40 << 22)


@both_callers
class Trace(Case):
    """--strace."""

    LINE = re.compile(rb"\[\d+\] \w+\(.*\)( = (\d+|0x[0-9a-f]+|-1 [A-Z0-9]+))?")

    def traced(self, *arguments, **options):
        return self.run_in("--isolation", "kernel", "--strace", *arguments, **options)

    def test_lines(self):
        program = ("grep", "-hs", "root", "/etc/passwd", "/nosuch")
        ended = self.traced("--", *program)
        untraced = self.run_in("--isolation", "kernel", "--", *program)
        self.assertEqual((ended.status, ended.out), (untraced.status, untraced.out))
        self.assertEqual((ended.status, ended.out[:5]), (2, b"root:"))
        self.assertEqual([line for line in ended.err.splitlines() if not self.LINE.fullmatch(line)], [])
        text = ended.err.decode()
        for line in ('[2] openat(AT_FDCWD, "/etc/passwd", O_NOCTTY, 00) = 3', '[2] openat(AT_FDCWD, "/nosuch", O_NOCTTY, 00) = -1 ENOENT',
                     "[2] exit_group(2)"):
            self.assertIn(line + "\n", text)
        self.assertRegex(text, r'\[2\] read\(3, "root:x:0:0:.*"\.\.\., \d+\) = \d+\n')

    def test_each_process_has_its_own_lines(self):
        ended = self.traced("--", "sh", "-c", "for i in 1 2 3 4; do (for j in $(seq 50); do echo $i$j; done) & done; wait")
        self.assertEqual(ended.status, 0)
        self.assertEqual([line for line in ended.err.splitlines() if not self.LINE.fullmatch(line)], [])
        self.assertGreaterEqual(len({line.split()[0] for line in ended.err.splitlines()}), 5)

    def test_nothing_that_a_terminal_acts_on(self):
        code = "import os\ntry: os.stat('/\\x1b]0;evil\\x07\\xff')\nexcept OSError: pass\nos.write(1, b'\\x1b[31m\\xc2\\x9b')"
        ended = self.traced(self.write("program.py", code))
        self.assertEqual((ended.status, ended.out), (0, b"\x1b[31m\xc2\x9b"))
        self.assertIn(rb'"/\x1b]0;evil\x07\xc3\xbf"', ended.err)
        self.assertEqual({byte for byte in ended.err if not 32 <= byte < 127 and byte != 10}, set())

    def test_the_output_limit_holds(self):
        record = self.record("--isolation", "kernel", "--strace", "--output-limit", "2K", "--", "sh", "-c", "ls /usr/bin > /dev/null; echo done")
        self.assertEqual((record["status"], record["stdout"], record["stderr_truncated"]), ("ok", "done\n", True))
        self.assertLessEqual(len(record["stderr"]), 2048 + 200)
        record = self.record("--isolation", "kernel", "--strace", "--output-limit", "2K", "--on-output-limit", "kill", "--", "ls", "/usr/bin")
        self.assertEqual(record["status"], "output")

    def test_other_tiers(self):
        self.assert_refused(self.run_in("--strace", "--", "true"), 125, "--strace", "--isolation kernel")
        ended = self.run_in("--isolation", "auto", "--trust", "own", "--explain", "--strace", "--", "true")
        self.assertEqual(ended.status, 0, str(ended))
        self.assertIn("kernel", ended.own_lines()[0])


@both_callers
class KilledFromOutside(Case):
    """SIGKILL by the host, or by its memory killer, of any one process: the run ends soon, as what it is, with what was
    printed until then."""

    CODE = """
import os, sys, time
print("before", flush=True)
if os.fork() == 0: time.sleep(60)
if os.fork() == 0:
    while True: pass
time.sleep(60)
"""

    def processes(self, belljar: int) -> dict[int, str]:
        """Below this one, and what each is called."""
        found, waiting = {}, [belljar]
        while waiting:
            pid = waiting.pop()
            for task in Path(f"/proc/{pid}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
            found[pid] = Path(f"/proc/{pid}/comm").read_text().strip()
        return found

    def started(self, script: Path) -> tuple[subprocess.Popen, list[int], list[int]]:
        process = self.start("run", "--isolation", "kernel", "--json", "--timeout", "60", script)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            names = self.processes(process.pid)
            kernels = sorted(pid for pid, name in names.items() if name == "belljar-ukernel" or name.isdigit())
            if len(kernels) == 5:  # the caretaker, its helper, and three of the program
                time.sleep(0.3)
                return process, kernels, [pid for pid, name in names.items() if name == "belljar-broker"]
            time.sleep(0.02)
        process.kill()
        process.communicate()
        self.fail(f"not started: {names}")

    def test_stopped_and_continued(self):
        """In timed waits, too: the host goes on with those by a call of its own."""
        process = self.start("run", "--isolation", "kernel", "--json", "--timeout", "30", "--", "python3", "-c",
                             "import time; print('before', flush=True); time.sleep(2); print('after')")
        time.sleep(1)
        inside = [pid for pid, name in self.processes(process.pid).items() if name not in ("belljar", "belljar-init", "belljar-watch")]
        for number in (signal.SIGSTOP, signal.SIGCONT) * 3:
            for pid in inside:
                os.kill(pid, number)
            time.sleep(0.05)
        record = Record(json.loads(process.communicate(timeout=30)[0]))
        self.assertEqual((record["status"], record.out), ("ok", b"before\nafter\n"), record)

    def test_every_process(self):
        script = self.write("forks.py", self.CODE)
        for index in range(6):
            with self.subTest(index=index):
                process, kernels, brokers = self.started(script)
                os.kill([*kernels, *brokers][index], signal.SIGKILL)
                killed = time.monotonic()
                out, err = process.communicate(timeout=30)
                self.assertLess(time.monotonic() - killed, 3, err)
                record = Record(json.loads(out))
                self.assertEqual((record["status"], record.out, process.returncode), ("tampered", b"before\n", 124), record)


@both_callers
class Hostile(Case):
    def setUp(self):
        super().setUp()
        for name, code in ("scribble", SCRIBBLE), ("probe", PROBE):
            source = self.write(f"{name}.c", code)
            subprocess.run(["gcc", "-O1", "-w", "-static", "-o", self.folder / name, source], check=True)
            (self.folder / name).chmod(0o755)

    def guest(self, *command: str):
        return self.run_in("--isolation", "kernel", "--timeout", "2s", "--mount", f"{self.folder}:/guest", "--", *command)

    def test_scribbling_harms_only_itself(self):
        for seed in range(5):
            began = time.monotonic()
            ended = self.guest("/guest/scribble", str(seed))
            self.assertLess(time.monotonic() - began, 60)
            self.assertNotIn(b"internal", ended.err, str(ended))
        self.assertEqual(self.sh("echo alive", "--isolation", "kernel"), "alive\n")

    def test_files_from_damaged_memory(self):
        """What is collected after that is the program's own files or none, and Belljar says which."""
        for seed in range(5):
            ended = self.run_in("--isolation", "kernel", "--timeout", "2s", "--mount", f"{self.folder}:/guest", "--collect", f"/out:./out{seed}", "--",
                                "sh", "-c", f"cd /out; mkdir d; for i in $(seq 50); do echo $i > d/$i; done; exec /guest/scribble {seed}")
            self.assertNotIn(b"internal", ended.err, str(ended))
            saved = {path.name for path in (self.folder / f"out{seed}").rglob("*") if path.is_file()}
            self.assertTrue(len(saved) == 50 or b"not collected" in ended.err, str(ended))

    def test_the_host_answers_only_what_the_profile_lists(self):
        for number in (0, 1, 2, 9, 16, 39, 41, 56, 57, 59, 61, 62, 101, 102, 157, 165, 257, 262, 272, 310, 317, 321, 322, 425, 435, 437):
            ended = self.guest("/guest/probe", str(number))
            answer = ended.text.strip()
            if number in PASSES:
                continue
            # mmap of nothing passes the filter's test of flags and fails by itself; the rest kills.
            self.assertTrue(answer == "" or (number == 9 and answer.startswith("answered -")), f"{number}: {ended}")

    def test_control(self):
        """The probe does reach the host's kernel where the profile allows it: sched_yield(2) answers 0."""
        self.assertEqual(self.guest("/guest/probe", "24").text, "answered 0\n")


if __name__ == "__main__":
    main()
