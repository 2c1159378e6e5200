"""How a run ends and what is said of it: exit statuses, signals, deadlines, limits, background children."""

import json
import random
import re
import signal
import threading
import time
from pathlib import Path

from harness import Case, both_callers, cgroups_of, main, root_only


def processes_with(mark: str) -> list[str]:
    """Command lines of all processes that have `mark` in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


@both_callers
class ExitStatus(Case):
    def test_the_programs_own(self):
        for status in (0, 1, 2, 42, 123, 128, 255):
            self.assertEqual(self.run_in("--", "sh", "-c", f"exit {status}").status, status)

    def test_numbers_that_belljar_uses_too_are_told_apart(self):
        for status in (124, 125, 126, 127, 137):
            ended = self.run_in("--", "sh", "-c", f"exit {status}")
            self.assertEqual((ended.status, ended.err), (status, b""))
            record = self.record("--", "sh", "-c", f"exit {status}")
            self.assertEqual((record["status"], record["exit_code"], record["error"]), ("error", status, None))

    def test_fn_16_no_such_program(self):
        ended = self.run_in("--", "no-such-program-here")
        self.assert_refused(ended, 127, "no-such-program-here", "not found")
        record = self.record("--", "no-such-program-here")
        self.assertEqual((record["status"], record["error"]["code"], record.exit_status), ("denied", "not_found", 127))
        self.assert_refused(self.run_in("--", "/no/such/program"), 127, "/no/such/program")

    def test_fn_16_not_executable(self):
        self.assert_refused(self.run_in("--", "/etc/passwd"), 126, "/etc/passwd")
        record = self.record("--", "/etc/passwd")
        self.assertEqual((record["status"], record["error"]["code"], record.exit_status), ("denied", "not_executable", 126))
        self.assert_refused(self.run_in("--", "/usr"), 126, "/usr")

    def test_executable_without_a_known_form(self):
        path = self.write("noise", b"\x01\x02\x03", 0o755)
        self.assert_refused(self.run_in("--mount", f"{path}:/data/noise", "--", "/data/noise"), 126, "/data/noise")

    def test_fn_20_the_next_run_is_not_harmed(self):
        self.run_in("--", "no-such-program-here")
        self.assertEqual(self.ok("--", "echo", "well"), "well\n")

    def test_killed_by_a_signal(self):
        for name in ("SEGV", "KILL", "TERM", "ABRT", "USR1"):
            number = getattr(signal, f"SIG{name}")
            ended = self.run_in("--", "sh", "-c", f"kill -{name} $$")
            self.assertEqual(ended.status, 128 + number, str(ended))
            self.assertEqual(len(ended.own_lines()), 1, str(ended))
            self.assertIn(f"SIG{name}", ended.own_lines()[0])

    def test_fn_19_crash_of_an_interpreter(self):
        crash = ("python3", "-c", "import ctypes; ctypes.string_at(0)")
        record = self.record("--", *crash)
        self.assertEqual((record["status"], record["signal"], record["exit_code"]), ("signal", signal.SIGSEGV, None))
        self.assertEqual(record.exit_status, 139)
        below_a_shell = self.record("--", "sh", "-c", 'python3 -c "import ctypes; ctypes.string_at(0)"; exit $?')
        self.assertEqual((below_a_shell["status"], below_a_shell["exit_code"]), ("error", 139))

    def test_fn_25_deadline_is_no_error(self):
        self.assertEqual(self.record("--", "false")["status"], "error")
        record = self.record("--timeout", "300ms", "--", "sleep", "30")
        self.assertEqual((record["status"], record["exit_code"], record["signal"]), ("timeout", None, signal.SIGKILL))
        self.assertEqual(record.exit_status, 124)


@both_callers
class MissingInterpreters(Case):
    def test_is_said_of_a_file_that_is_there(self):
        self.write("job", "#!/no/such/interpreter\n", 0o755)
        self.assert_refused(self.run_in("--mount", f"{self.folder}/job:/data/job", "--", "/data/job"), 126,
                            "/data/job: can't be executed: the interpreter or loader that it names is not in the sandbox")
        self.assert_refused(self.run_in("--", "/no/such/file"), 127, "command not found")


@both_callers
class Deadline(Case):
    def test_fn_02_partial_output_at_timeout(self):
        code = "for i in 1 2 3; do echo line $i; echo note $i >&2; done; sleep 30"
        ended = self.run_in("--timeout", "500ms", "--", "sh", "-c", code)
        self.assertEqual((ended.status, ended.out), (124, b"line 1\nline 2\nline 3\n"))
        self.assertEqual(ended.err.decode().splitlines()[:3], ["note 1", "note 2", "note 3"])
        self.assertEqual(len(ended.own_lines()), 1)
        self.assertIn("wall clock limit of 500 ms; output so far is above", ended.own_lines()[0])
        record = self.record("--timeout", "500ms", "--", "sh", "-c", code)
        self.assertEqual((record.out, record.err), (b"line 1\nline 2\nline 3\n", b"note 1\nnote 2\nnote 3\n"))

    def test_fn_03_what_was_flushed_arrives(self):
        script = self.write("flush.py", "import time\nprint('flushed', flush=True)\nprint('in a buffer')\ntime.sleep(30)\n")
        record = self.record("--timeout", "1s", script)
        self.assertEqual((record["status"], record.out), ("timeout", b"flushed\n"))

    def test_fn_31_the_limit_asked_for_is_the_one_that_holds(self):
        record = self.record("--timeout", "1500ms", "--", "sleep", "1")
        self.assertEqual((record["status"], record["limits"]["timeout_ms"]), ("ok", 1500))
        self.assertGreaterEqual(record["duration_ms"], 1000)
        began = time.monotonic()
        record = self.record("--timeout", "700ms", "--", "sleep", "30")
        took = time.monotonic() - began
        self.assertEqual(record["status"], "timeout")
        self.assertGreaterEqual(record["duration_ms"], 700)
        self.assertLess(took, 3)

    def test_what_can_not_be_asked_to_end_ends(self):
        """Ignored signals, stopped processes, double forks in sessions of their own."""
        mark = f"MARK={random.randbytes(12).hex()}"
        code = ("trap '' TERM INT HUP QUIT; setsid sh -c 'trap \"\" TERM; sleep 97' & (setsid sleep 98 &) ; "
                "sleep 99 & kill -STOP $!; echo ready; sleep 96")
        ended = self.run_in("--timeout", "700ms", "-e", mark, "--", "sh", "-c", code)
        self.assertEqual((ended.status, ended.out), (124, b"ready\n"))
        self.assertEqual(processes_with(mark), [])
        self.assertEqual(cgroups_of(ended.pid), [])

    def test_an_exit_just_before_the_deadline_counts(self):
        statuses = set()
        for left_ms in list(range(0, 30)) * 2:
            record = self.record("--timeout", "150ms", "--", "sleep", str((150 - left_ms) / 1000))  # checks the two agree
            statuses.add(record["status"])
        self.assertEqual(statuses, {"ok", "timeout"})

    def test_busy_programs_end_too(self):
        record = self.record("--timeout", "700ms", "--", "sh", "-c", "while :; do :; done & while :; do :; done")
        self.assertEqual(record["status"], "timeout")
        self.assertGreater(record["usage"]["cpu_user_ms"] + record["usage"]["cpu_system_ms"], 100)


@root_only
class KeptByTheKernel(Case):
    """Processes that do not end when they are killed: in a frozen control group of version 1 (cgroups(7))."""

    FREEZER = Path("/sys/fs/cgroup/freezer")

    def test_what_was_written_and_why_it_was_killed(self):
        if not (self.FREEZER / "cgroup.procs").exists():
            self.not_covered("processes that the kernel does not end", "no freezer of version 1 is mounted here")
        group = self.FREEZER / self.folder.name
        group.mkdir()
        self.addCleanup(group.rmdir)
        run = self.start("run", "--json", "--timeout", "3s", "-e", "MARK=" + self.folder.name, "--",
                         "sh", "-c", "echo written; sleep 60")
        try:
            program = self.wait_for_program()
            (group / "cgroup.procs").write_text(str(program))
            (group / "freezer.state").write_text("FROZEN")
            out, _ = run.communicate(timeout=60)
        finally:
            (group / "freezer.state").write_text("THAWED")
        record = json.loads(out)
        self.assertEqual((record["status"], record["stdout"]), ("timeout", "written\n"))
        self.assertIn("had not ended", " ".join(record["warnings"]))
        self.assertEqual(self.belljar("gc").status, 0)
        self.wait_until(lambda: not processes_with("MARK=" + self.folder.name))

    def wait_for_program(self) -> int:
        mark = f"MARK={self.folder.name}".encode()
        found: list[int] = []

        def look() -> bool:
            for entry in Path("/proc").glob("[0-9]*"):
                try:
                    if mark in (entry / "environ").read_bytes() and b"sleep" in (entry / "cmdline").read_bytes()[:6]:
                        found.append(int(entry.name))
                except OSError:
                    continue
            return bool(found)

        self.wait_until(look)
        return found[0]

    def wait_until(self, holds):
        end = time.monotonic() + 30
        while not holds():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)


@both_callers
class Background(Case):
    def test_children_end_with_the_program_and_their_output_is_kept(self):
        mark = f"MARK={random.randbytes(12).hex()}"
        began = time.monotonic()
        ended = self.run_in("-e", mark, "--", "sh", "-c", "(echo child; sleep 30; echo late) & sleep 0.2; echo parent")
        self.assertEqual((ended.status, sorted(ended.text.split())), (0, ["child", "parent"]))
        self.assertLess(time.monotonic() - began, 25)
        self.assertEqual(processes_with(mark), [])

    def test_orphans_are_reaped(self):
        code = "for i in 1 2 3 4 5 6 7 8; do (sleep 0.05 &) ; done; sleep 0.5; ps -e -o stat= | grep -c Z"
        self.assertEqual(self.run_in("--", "sh", "-c", code).text, "0\n")

    def test_wait_for_children(self):
        self.assertEqual(self.sh("for i in 1 2 3; do (sleep 0.$i; echo $i) & done; wait; echo all"), "1\n2\n3\nall\n")


@both_callers
class StoppedByTheCaller(Case):
    def stop(self, number: int) -> tuple[int, list[str], str]:
        mark = f"MARK={random.randbytes(12).hex()}"
        process = self.start("run", "-e", mark, "--", "sh", "-c", "echo ready; sleep 60")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
        self.assertEqual(cgroups_of(process.pid), [])
        return process.returncode, processes_with(mark), err.decode()

    def test_interrupt_and_terminate_end_cleanly(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            status, left, said = self.stop(number)
            self.assertEqual((status, left), (128 + number, []), said)
            self.assertEqual(len(said.splitlines()), 1, said)

    def test_fn_36_stopped_while_it_starts(self):
        """At any moment of the start; the next run finds nothing in its way."""
        for step in range(16):
            process = self.start("run", "--", "sleep", "60")
            time.sleep(step * 0.002)
            process.send_signal(signal.SIGTERM if step % 2 else signal.SIGINT)
            process.communicate(timeout=20)
            self.assertEqual(cgroups_of(process.pid), [])
        self.assertEqual(self.ok("--", "echo", "next"), "next\n")

    def test_killed_while_it_runs(self):
        mark = f"MARK={random.randbytes(12).hex()}"
        process = self.start("run", "-e", mark, "--", "sh", "-c", "echo ready; sleep 60 & sleep 60")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.assertNotEqual(processes_with(mark), [])
        process.kill()
        process.communicate(timeout=20)
        time.sleep(0.1)
        self.assertEqual(processes_with(mark), [])
        deadline = time.monotonic() + 10
        while cgroups_of(process.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(cgroups_of(process.pid), [])


@root_only
class NamedLimits(Case):
    def test_forks_that_are_refused(self):
        program = """
import os, sys, time
try:
    while True:
        if os.fork() == 0: time.sleep(60)
except BlockingIOError:
    sys.exit(3)
"""
        record = self.record("--", "python3", "-c", program)
        self.assertEqual((record["status"], record["exit_code"]), ("pids", 3), record)
        self.assertIn("256 tasks", record["reason"])
        self.assertEqual([denial["kind"] for denial in record["denials"]], ["tasks"])

    def test_a_file_that_may_not_grow(self):
        (self.folder / "rw").mkdir()
        self.own(self.folder / "rw")
        for program in (["sh", "-c", "head -c 2M /dev/zero > /tmp/x; exit 4"],
                        ["sh", "-c", "mkdir -p ~/a/b; head -c 2M /dev/zero > ~/a/b/x; exit 4"],
                        ["sh", "-c", "head -c 2M /dev/zero > /rw/x; exit 4"],
                        ["python3", "-c", "open('/tmp/x', 'wb').write(bytes(2 << 20))"]):
            with self.subTest(program):
                record = self.record("--file-size", "1M", "--mount", f"{self.folder}/rw:/rw:rw", "--", *program)
                self.assertEqual((record["status"], record["reason"]), ("disk", "failed with a file that had reached the limit of 1M for one"))
                self.assertEqual([denial["kind"] for denial in record["denials"]], ["file_size"])
        failed = self.record("--file-size", "1M", "--", "sh", "-c", "head -c 1M /dev/zero >/tmp/x; echo >>/tmp/y; rm /tmp/x; exit 4")
        self.assertEqual((failed["status"], failed["denials"]), ("error", []))

    """Limits that are named, and so must hold in full."""

    def test_fn_21_memory(self):
        code = "b = bytearray(400 << 20)\nprint(len(b))"
        record = self.record("--memory", "100M", self.write("eat.py", code))
        self.assertEqual((record["status"], record.exit_status), ("memory", 124))
        self.assertIn("memory limit of 100M", record["reason"])
        self.assertEqual(record["limits"]["memory_bytes"], 100 << 20)
        self.assertGreater(record["usage"]["memory_peak_bytes"], 90 << 20)
        self.assertLessEqual(record["usage"]["memory_peak_bytes"], 101 << 20)
        self.assertEqual(record["denials"][0]["kind"], "memory")

    def test_fn_21_memory_of_a_child(self):
        record = self.record("--memory", "64M", "--", "sh", "-c", "python3 -c 'b = bytearray(300 << 20)'; echo $?; exit 9")
        self.assertEqual((record["status"], record["exit_code"]), ("memory", 9))

    def test_a_program_that_copes_with_a_memory_kill_is_ok(self):
        record = self.record("--memory", "64M", "--", "sh", "-c", "python3 -c 'b = bytearray(300 << 20)' 2>&-; echo coped")
        self.assertEqual((record["status"], record.out), ("ok", b"coped\n"))
        self.assertEqual(record["denials"][0]["kind"], "memory")

    def test_page_cache_is_no_memory_limit(self):
        """Reading and writing more file data than the limit is ordinary."""
        (self.folder / "out").mkdir()
        record = self.record("--memory", "64M", "--mount", f"{self.folder}/out:/out:rw", "--",
                             "sh", "-c", "head -c 200M /dev/zero > /out/f; cat /out/f | wc -c")
        self.assertEqual((record["status"], record.out.strip()), ("ok", str(200 << 20).encode()))

    def test_tmpfs_counts_as_memory(self):
        record = self.record("--memory", "64M", "--tmp-size", "200M", "--", "head", "-c", "150M", "/dev/zero")
        self.assertEqual(record["status"], "ok")
        record = self.record("--memory", "64M", "--tmp-size", "200M", "--", "sh", "-c", "head -c 150M /dev/zero > /tmp/f")
        self.assertEqual(record["status"], "memory")

    def test_tasks(self):
        code = "import threading\ntry:\n  for i in range(40): threading.Thread(target=threading.Event().wait, daemon=True).start()\n" \
               "except RuntimeError as e:\n  print(i, e, flush=True)\n  import os; os._exit(3)\n"
        record = self.record("--tasks", "16", self.write("threads.py", code))
        self.assertEqual((record["status"], record["exit_code"], record.exit_status), ("pids", 3, 3))
        self.assertIn("16 tasks", record["reason"])
        self.assertTrue(record.out.startswith(b"15 can't start new thread"), record.out)
        self.assertEqual(record["denials"][0]["kind"], "tasks")

    def test_fn_41_thread_pools_fit_the_default(self):
        code = ("import concurrent.futures as f, numpy as n\n"
                "pools = [f.ThreadPoolExecutor(32) for _ in range(4)]\n"
                "print(sum(sum(p.map(abs, range(100))) for p in pools), n.ones((300, 300)).dot(n.ones((300, 300)))[0][0])\n")
        self.assertEqual(self.python(code), "19800 300.0\n")

    def test_cpus(self):
        code = "import time\nbegan = time.monotonic()\nwhile time.monotonic() - began < 1.5: pass\n"
        for cpus, most in (("0.5", 1000), ("0.2", 500)):
            usage = self.record("--cpus", cpus, self.write("burn.py", code))["usage"]
            used = usage["cpu_user_ms"] + usage["cpu_system_ms"]
            self.assertLess(used, most)
            self.assertGreater(used, most / 5)


@both_callers
class Limits(Case):
    def test_disk(self):
        record = self.record("--tmp-size", "5M", "--", "sh", "-c", "head -c 9M /dev/zero > /tmp/f")
        self.assertEqual((record["status"], record["exit_code"], record.exit_status), ("disk", 1, 1))
        self.assertIn("5M", record["reason"])
        self.assertIn(b"No space left", record.err)
        self.assertEqual(record["usage"]["disk_written_bytes"], 5 << 20)

    def test_disk_is_one_limit_for_all_writable_places(self):
        code = "head -c 2M /dev/zero > /tmp/a && head -c 2M /dev/zero > ~/b && head -c 2M /dev/zero > /dev/shm/c"
        self.assertEqual(self.record("--tmp-size", "5M", "--", "sh", "-c", code)["status"], "disk")
        self.assertEqual(self.record("--tmp-size", "7M", "--", "sh", "-c", code)["status"], "ok")

    def test_inodes(self):
        record = self.record("--tmp-inodes", "50", "--", "sh", "-c", "for i in $(seq 90); do : > /tmp/$i || exit 4; done")
        self.assertEqual((record["status"], record.exit_status), ("disk", 2))  # dash: a failed redirection of `:` ends it

    def test_full_and_still_well(self):
        record = self.record("--tmp-size", "5M", "--", "sh", "-c", "head -c 9M /dev/zero > /tmp/f 2>&-; rm /tmp/f; echo fine")
        self.assertEqual((record["status"], record.out), ("ok", b"fine\n"))

    def test_open_files(self):
        code = "import os\nn = 0\ntry:\n  while True: os.dup(0); n += 1\nexcept OSError as e: print(n, e.errno)\n"
        self.assertEqual(self.python(code, "--open-files", "64"), "61 24\n")

    def test_no_core_files(self):
        self.assertEqual(self.sh("ulimit -c; ulimit -Hc"), "0\n0\n")

    def test_default_limits_are_in_the_record(self):
        limits = self.record("--", "true")["limits"]
        self.assertEqual(limits, {"memory_bytes": 256 << 20, "swap_bytes": 0, "cpus": 1, "fuel": None, "tasks": 256,
                                  "timeout_ms": 30000, "cpu_time_ms": None, "file_size_bytes": None,
                                  "read_rate_bytes": None, "write_rate_bytes": None,
                                  "tmp_size_bytes": 50 << 20, "tmp_inodes": 65536, "open_files": 1024,
                                  "output_bytes": 1 << 20, "collect_file_bytes": 256 << 20, "collect_size_bytes": 1 << 30,
                                  "collect_entries": 65536, "workspace_entries": 262144,
                                  "net_connections": 256, "net_rate": 100, "net_size_bytes": 4 << 30, "net_idle_ms": 300000, "net_time_ms": None})

    def test_limits_that_are_off(self):
        """They are no limits: named so everywhere, and what can't hold can't be required."""
        shown = self.belljar("policy", "show").text
        usage = self.belljar("run", "--help").text
        for name in ("cpu_time", "fuel", "file_size", "read_rate", "write_rate", "net_time"):
            flag = "--" + name.replace("_", "-")
            self.assertIn(f'# {name} = "off"  # the default\n', shown)
            self.assert_refused(self.run_in("--require", name, "--", "true"), 125, f"the limit {name} is off", flag)
            policy = self.write("off.toml", f'[limits]\n{name} = "off"\n')
            self.assertEqual(self.ok("--policy", policy, flag, "off", "--", "echo", "on"), "on\n")
            text = re.sub(r"\s+", " ", usage)
            self.assertRegex(text, flag + r" \w+ [^-]*\(default off\)")
        self.assert_refused(self.run_in("--memory", "off", "--", "true"), 125, "this limit is never off")
        record = self.record("--cpu-time", "5s", "--require", "cpu_time", "--", "true") if not self.as_user else None
        self.assertTrue(record is None or record["limits"]["cpu_time_ms"] == 5000)

    def test_a_name_like_a_line_of_status_hides_no_memory(self):
        code = "import ctypes, time\nctypes.CDLL(None).prctl(15, b'RssAnon: 0', 0, 0, 0)\n" \
               "b = bytearray(400 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\ntime.sleep(5)\n"
        self.assertEqual(self.record(self.write("eat.py", code))["status"], "memory")

    def test_default_memory_limit_holds(self):
        code = "b = []\nwhile True: b.append(bytearray(8 << 20)); print(len(b), flush=True)\n"
        record = self.record(self.write("eat.py", code))
        self.assertEqual((record["status"], record.exit_status), ("memory", 124), record["reason"])
        self.assertIn("memory limit of 256M", record["reason"])
        self.assertLess(len(record.out.split()), 60)

    def test_default_task_limit_holds(self):
        code = "my $n = 0; while ($n < 600) { my $p = fork; last unless defined $p; exec 'sleep', '20' unless $p; $n++ } print \"$n \", $!+0, \"\\n\""
        self.assertEqual(self.run_in("--", "perl", "-e", code).text, "255 11\n")

    def test_memory_that_processes_share_counts_once(self):
        code = "import os, time\nb = bytearray(b'x') * (90 << 20)\nfor i in range(8):\n  if os.fork() == 0: time.sleep(1); os._exit(0)\n" \
               "for i in range(8): os.wait()\nprint('done')\n"
        self.assertEqual(self.python(code), "done\n")

    def test_fn_32_a_greedy_run_leaves_the_next_one_room(self):
        process = self.start("run", "--timeout", "20s", "--", "sh", "-c", "while :; do :; done & while :; do :; done & echo up; wait")
        self.assertEqual(process.stdout.readline(), b"up\n")
        began = time.monotonic()
        self.assertEqual(self.ok("--", "echo", "second"), "second\n")
        self.assertLess(time.monotonic() - began, 5)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)

    def test_usage_is_measured(self):
        code = "import time\nx = bytearray(60 << 20)\nend = time.process_time() + 0.4\nwhile time.process_time() < end: pass\n"
        usage = self.record(self.write("use.py", code))["usage"]
        self.assertGreater(usage["cpu_user_ms"] + usage["cpu_system_ms"], 300)
        self.assertLess(usage["cpu_user_ms"] + usage["cpu_system_ms"], 3000)
        self.assertGreater(usage["memory_peak_bytes"], 60 << 20)
        self.assertLess(usage["memory_peak_bytes"], 150 << 20)

    def test_processes_peak(self):
        record = self.record("--", "sh", "-c", "sleep 0.3 & sleep 0.3 & sleep 0.3 & wait")
        peak = record["usage"]["processes_peak"]
        self.assertIn(peak, (4, 0) if "tasks" in record.walls("weaker") else (4,))


@both_callers
class ManyAtOnce(Case):
    def test_twenty_at_once(self):
        code = "import os, sys, time\ntime.sleep(0.2)\nopen('/tmp/mine', 'x').write(sys.argv[1])\nprint(open('/tmp/mine').read(), sorted(os.listdir('/tmp')))\n"
        script = self.write("one.py", code)
        started = [(i, self.start("run", script, str(i))) for i in range(20)]
        for i, process in started:
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out.decode(), err), (0, f"{i} ['home', 'mine']\n", b""))
        self.assertEqual([group for _, process in started for group in cgroups_of(process.pid)], [])

    def test_from_many_threads_of_one_caller(self):
        failures = []
        def work(n: int):
            for i in range(3):
                ended = self.run_in("--", "echo", f"{n}-{i}")
                if (ended.status, ended.text) != (0, f"{n}-{i}\n"):
                    failures.append(str(ended))
        threads = [threading.Thread(target=work, args=[n]) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    main()
