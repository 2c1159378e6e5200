"""Runs inside the guest: what Belljar does on cgroup v2 under systemd.

guest_cases.py service   systemd's unit starts this as root; it starts the others, and writes a JSON line a case
guest_cases.py session   in a login session of root
guest_cases.py user      in a login session of an ordinary user
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback
import unittest
import uuid
from pathlib import Path

HERE = Path(__file__).resolve().parent
BELLJAR = str(HERE / "belljar")
CGROUPS = Path("/sys/fs/cgroup")
SCOPE = ["systemd-run", "--user", "--scope", "--quiet", "--collect", "-p", "Delegate=yes"]
REMEDY = "systemd-run --user --scope -p Delegate=yes"
USER = "tester"
MIB = 1 << 20
HELD_BY_GROUPS = ("memory", "cpus", "tasks")
PATIENCE_S = 300  # for one run, on an emulated processor

HOG = "b = bytearray()\nwhile True: b += b'x' * (1 << 20)"
IS_EMULATED = subprocess.run(["systemd-detect-virt", "--vm"], capture_output=True, text=True).stdout.strip() != "kvm"
SOON_S = 15 if IS_EMULATED else 1


def emit(**event: object) -> None:
    print(json.dumps(event), flush=True)


def emit_case(name: str, result: str, detail: str = "") -> None:
    emit(case=name, result=result, detail=detail)


def wait_until(condition, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def processes_with(marker: str) -> list[int]:
    """Processes whose command line has `marker`, which only programs in a sandbox are given, or Belljar itself."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                if marker.encode() in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                pass
    return found


def sandbox_groups() -> list[str]:
    """The groups of sandboxes: those below a group named belljar."""
    return [str(path) for path in CGROUPS.rglob("belljar/*") if path.is_dir()]


class Guest(unittest.TestCase):
    prefix: list[str] = []
    maxDiff = None

    def belljar(self, *words: str, **options) -> subprocess.CompletedProcess:
        return subprocess.run([*self.prefix, BELLJAR, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE_S, **options)

    def record(self, *words: str) -> dict:
        done = self.belljar("run", "--json", *words)
        try:
            return json.loads(done.stdout)
        except ValueError:
            self.fail(f"no result record: status {done.returncode}: {done.stdout} {done.stderr}")

    def walls(self) -> dict:
        done = self.belljar("doctor", "--json")
        self.report = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout)
        return {wall["name"]: wall for wall in self.report["tiers"][0]["walls"]}

    def start_sleeper(self, marker: str, *words: str) -> subprocess.Popen:
        """A sandbox in which two processes sleep, one of them in a session of its own."""
        sleeper = subprocess.Popen(
            [*self.prefix, BELLJAR, "run", "--timeout", "5m", *words, "--", "sh", "-c",
             f"setsid sh -c 'sleep 1000; : {marker}' & echo up; sleep 1000; : {marker}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(sleeper.stdout.close)
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        self.assertEqual(sleeper.stdout.readline(), "up\n")
        # belljar itself has the marker in its command line too
        self.assertTrue(wait_until(lambda: len(processes_with(marker)) >= 3, 30), processes_with(marker))
        return sleeper


class HeldInFull:
    """What must hold wherever Belljar has a cgroup v2 to use."""

    def tearDown(self):
        self.assertTrue(wait_until(lambda: not sandbox_groups(), SOON_S), f"groups are left: {sandbox_groups()}")

    def test_doctor(self):
        walls = self.walls()
        self.assertEqual(self.report["cgroups"], "v2")
        for name in HELD_BY_GROUPS:
            self.assertEqual(walls[name]["state"], "enforced", walls[name])

    def test_isolation_in_the_record(self):
        record = self.record("--", "true")
        self.assertEqual(record["status"], "ok", record)
        self.assertLessEqual(set(HELD_BY_GROUPS), set(record["isolation"]["enforced"]), record)

    def test_memory_limit(self):
        record = self.record("--memory", "64M", "--timeout", "4m", "--", "python3", "-c", HOG)
        self.assertEqual(record["status"], "memory", record)
        self.assertIn("memory", record["reason"])
        self.assertGreater(record["usage"]["memory_peak_bytes"], 50 * MIB, record)
        self.assertLessEqual(record["usage"]["memory_peak_bytes"], 65 * MIB, record)

    def test_memory_limit_is_not_stretched_by_swap(self):
        self.assertGreater(len(Path("/proc/swaps").read_text().splitlines()), 1, "the guest should have swap")
        code = "b = bytearray(120 << 20)\nfor at in range(0, len(b), 4096): b[at] = 1\nprint('had it all')"
        record = self.record("--memory", "64M", "--timeout", "4m", "--", "python3", "-c", code)
        self.assertEqual((record["status"], record["stdout"]), ("memory", ""), record)
        # The same with room for it: so the limit decided, and nothing else.
        record = self.record("--memory", "200M", "--timeout", "4m", "--", "python3", "-c", code)
        self.assertEqual((record["status"], record["stdout"]), ("ok", "had it all\n"), record)

    def test_shared_memory_counts(self):
        code = "f = open('/dev/shm/x', 'wb')\nfor _ in range(150): f.write(b'x' * (1 << 20))\nprint('had it all')"
        record = self.record("--memory", "64M", "--tmp-size", "200M", "--timeout", "4m", "--", "python3", "-c", code)
        self.assertEqual((record["status"], record["stdout"]), ("memory", ""), record)

    def test_task_limit(self):
        code = ("import os, time\nn = 0\ntry:\n  while n < 100:\n    if os.fork() == 0: time.sleep(1000)\n    n += 1\n"
                "except BlockingIOError: print(n, 'EAGAIN')")
        record = self.record("--tasks", "20", "--timeout", "4m", "--", "python3", "-c", code)
        self.assertEqual(record["stdout"], "19 EAGAIN\n", record)  # 20 with python itself

    def test_cpu_quota(self):
        code = ("import time\nend = time.monotonic() + 4\nwhile time.monotonic() < end: pass")
        record = self.record("--cpus", "0.2", "--timeout", "4m", "--", "python3", "-c", code)
        self.assertEqual(record["status"], "ok", record)
        used_ms = record["usage"]["cpu_user_ms"] + record["usage"]["cpu_system_ms"]
        share = used_ms / record["duration_ms"]
        self.assertGreater(share, 0.1, record)
        self.assertLess(share, 0.27, record)

    def test_usage_figures(self):
        code = ("import os, time\nb = bytearray(40 << 20)\nfor at in range(0, len(b), 4096): b[at] = 1\n"
                "for _ in range(3):\n  if os.fork() == 0: time.sleep(0.5); os._exit(0)\n"
                "end = time.process_time() + 1\nwhile time.process_time() < end: pass\n")
        record = self.record("--timeout", "4m", "--", "python3", "-c", code)
        self.assertEqual(record["status"], "ok", record)
        usage = record["usage"]
        self.assertGreaterEqual(usage["memory_peak_bytes"], 40 * MIB, record)
        self.assertLess(usage["memory_peak_bytes"], 200 * MIB, record)
        self.assertGreaterEqual(usage["cpu_user_ms"] + usage["cpu_system_ms"], 950, record)
        self.assertLess(usage["cpu_user_ms"] + usage["cpu_system_ms"], record["duration_ms"] * 1.3, record)
        self.assertGreaterEqual(usage["processes_peak"], 4, record)

    def test_deadline_kills_the_tree(self):
        marker = uuid.uuid4().hex
        code = ("import os, signal, time\nprint('begun', flush=True)\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                "for _ in range(10):\n  if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(1000)\n"
                f"    os._exit(0)\ntime.sleep(1000)  # {marker}")
        record = self.record("--timeout", "10s" if IS_EMULATED else "2s", "--", "python3", "-c", code)
        self.assertEqual((record["status"], record["stdout"]), ("timeout", "begun\n"), record)
        self.assertEqual(processes_with(marker), [])

    def test_fork_storm_dies(self):
        marker = uuid.uuid4().hex
        code = f"import os\nwhile True:\n  try: os.fork()\n  except OSError: pass  # {marker}"
        record = self.record("--timeout", "5s", "--", "python3", "-c", code)
        self.assertIn(record["status"], ("timeout", "pids"), record)
        self.assertEqual(processes_with(marker), [])

    def test_groups_as_asked(self):
        """The kernel's own files say what was asked for, and systemd's own work on its tree changes nothing."""
        marker = uuid.uuid4().hex
        sleeper = self.start_sleeper(marker, "--memory", "100M", "--cpus", "0.5", "--tasks", "30")
        inside = [pid for pid in processes_with(marker) if pid != sleeper.pid]
        groups = {Path(f"/proc/{pid}/cgroup").read_text().strip() for pid in inside}
        groups = {g for g in groups if "/belljar/" in g}
        self.assertEqual(len(groups), 1, groups)
        group = CGROUPS / groups.pop().removeprefix("0::/")
        self.assertTrue((group / "cgroup.kill").exists())

        def limits() -> list[str]:
            return [(group / name).read_text().strip() for name in ("memory.max", "memory.swap.max", "cpu.max")]

        asked = limits()
        self.assertEqual(asked[:2], [str(100 * MIB), "0"])
        quota, period = map(int, asked[2].split())
        self.assertAlmostEqual(quota / period, 0.5)
        self.assertIn(int((group / "pids.max").read_text()), range(30, 34))
        self.disturb()
        self.assertEqual(limits(), asked)
        sleeper.send_signal(signal.SIGTERM)
        sleeper.wait(timeout=60)
        self.assertTrue(wait_until(lambda: not processes_with(marker), SOON_S), processes_with(marker))

    def disturb(self):
        user = ["--user"] if os.geteuid() else []
        for command in (["systemctl", *user, "daemon-reload"],
                        ["systemd-run", *user, "--quiet", "--wait", "-p", "CPUQuota=50%", "-p", "MemoryMax=100M", "true"]):
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_killed_supervisor_leaves_nothing(self):
        marker = uuid.uuid4().hex
        sleeper = self.start_sleeper(marker)
        self.assertNotEqual(sandbox_groups(), [])
        sleeper.kill()  # systemd-run --scope becomes belljar by exec, so this is belljar's pid
        sleeper.wait()
        self.assertTrue(wait_until(lambda: not processes_with(marker), SOON_S), processes_with(marker))
        # tearDown looks for groups

    def test_six_at_once(self):
        running = [subprocess.Popen([*self.prefix, BELLJAR, "run", "--json", "--timeout", "4m", "--", "sh", "-c",
                                     "sleep 1; echo done"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
                   for _ in range(6)]
        for process in running:
            record = json.loads(process.communicate(timeout=PATIENCE_S)[0])
            self.assertEqual((record["status"], record["stdout"]), ("ok", "done\n"), record)
            self.assertLessEqual(set(HELD_BY_GROUPS), set(record["isolation"]["enforced"]), record)


class AsRoot(HeldInFull, Guest):
    pass


class UserInScope(HeldInFull, Guest):
    prefix = SCOPE


class UserWithoutScope(Guest):
    """No group of its own: weaker, said so, and refused where a limit is named."""

    def test_doctor_names_the_remedy(self):
        walls = self.walls()
        for name in HELD_BY_GROUPS:
            self.assertEqual(walls[name]["state"], "weaker", walls[name])
            self.assertIn(REMEDY, walls[name]["remedy"])

    def test_defaults_run_and_say_weaker(self):
        record = self.record("--", "echo", "hello")
        self.assertEqual((record["status"], record["stdout"]), ("ok", "hello\n"), record)
        weaker = {wall["name"] for wall in record["isolation"]["weaker"]}
        self.assertLessEqual(set(HELD_BY_GROUPS), weaker, record)

    def test_named_limits_are_refused(self):
        for flag, value in (("--memory", "100M"), ("--cpus", "0.5"), ("--tasks", "20")):
            with self.subTest(flag=flag):
                done = self.belljar("run", flag, value, "--", "echo", "ran")
                self.assertEqual((done.returncode, done.stdout), (125, ""), done.stderr)
                self.assertIn(flag, done.stderr)
                self.assertIn(REMEDY, done.stderr)

    def test_the_default_memory_limit_still_holds(self):
        record = self.record("--timeout", "4m", "--", "python3", "-c", HOG)
        self.assertIn(record["status"], ("memory", "error"), record)
        self.assertLess(record["usage"]["memory_peak_bytes"], 300 * MIB, record)

    def test_deadline_kills_the_tree(self):
        marker = uuid.uuid4().hex
        code = ("import os, time\nfor _ in range(10):\n  if os.fork() == 0:\n    os.setsid()\n    time.sleep(1000)\n"
                f"time.sleep(1000)  # {marker}")
        record = self.record("--timeout", "3s", "--", "python3", "-c", code)
        self.assertEqual(record["status"], "timeout", record)
        self.assertTrue(wait_until(lambda: not processes_with(marker), SOON_S), processes_with(marker))

    def test_killed_supervisor_leaves_nothing(self):
        marker = uuid.uuid4().hex
        sleeper = self.start_sleeper(marker)
        sleeper.kill()
        sleeper.wait()
        self.assertTrue(wait_until(lambda: not processes_with(marker), SOON_S), processes_with(marker))


class CaseLines(unittest.TestResult):
    """A JSON line a case."""

    def __init__(self, where: str):
        super().__init__()
        self.where = where

    def name(self, test: unittest.TestCase) -> str:
        return f"{self.where}: {'.'.join(test.id().split('.')[-2:])}"

    def startTest(self, test):
        super().startTest(test)
        self.problems = []

    def note(self, error):
        self.problems.append("".join(traceback.format_exception(*error)))

    def addError(self, test, err):
        super().addError(test, err)
        self.note(err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(err)

    def stopTest(self, test):
        super().stopTest(test)
        emit_case(self.name(test), "FAIL" if self.problems else "ok", "\n".join(self.problems))


def run_classes(where: str, *classes: type) -> None:
    for each in classes:
        unittest.defaultTestLoader.loadTestsFromTestCase(each).run(CaseLines(where))


def run_gtest(where: str, program: Path, prefix: list[str]) -> None:
    """A case line for each of a GoogleTest program's tests."""
    try:
        done = subprocess.run([*prefix, program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=900)
        output, status = done.stdout, done.returncode
    except (OSError, subprocess.TimeoutExpired) as error:
        output, status = str(error), -1
    words = {"OK": "ok", "SKIPPED": "skipped", "FAILED": "FAIL"}
    seen = []
    block: list[str] = []
    for line in output.splitlines():
        end = re.match(r"\[ +(OK|SKIPPED|FAILED) +\] (\S+) \(\d+ ms\)$", line)
        if re.match(r"\[ RUN +\]", line):
            block = []
        elif end:
            result = words[end[1]]
            seen.append(result)
            detail = "\n".join(block) if result != "ok" else ""
            # What this kernel can't show another host's run does: not a gap of the whole.
            emit_case(f"{where}: {program.name}.{end[2]}", result, detail.replace("NOT COVERED: ", "not in this guest: "))
        else:
            block.append(line)
    if not seen or (status != 0 and "FAIL" not in seen):
        emit_case(f"{where}: {program.name}", "FAIL", f"status {status}\n{output[-3000:]}")


def add_swap() -> None:
    for command in ("fallocate -l 256M /swap", "chmod 600 /swap", "mkswap /swap", "swapon /swap"):
        subprocess.run(command.split(), check=True, stdout=subprocess.DEVNULL)


def in_session(user: str, what: str) -> None:
    """A login session as PAM and logind make it: a scope of its own in the user's slice (pam_systemd(8))."""
    done = subprocess.run(["runuser", "-l", user, "-c", f"exec /usr/bin/python3 {HERE / 'guest_cases.py'} {what}"],
                          stdin=subprocess.DEVNULL, stdout=sys.stdout, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        emit_case(f"{user}'s session", "FAIL", f"status {done.returncode}: {done.stderr}")


def expect_session(uid: int) -> None:
    own = Path("/proc/self/cgroup").read_text().strip()
    good = bool(re.fullmatch(rf"0::/user\.slice/user-{uid}\.slice/session-\w+\.scope", own))
    emit_case(f"uid {uid} is in a login session", "ok" if good else "FAIL", "" if good else own)


def run_service() -> None:
    emit(note=f"Linux {os.uname().release}, {'emulated' if IS_EMULATED else 'KVM'}, "
              f"up {Path('/proc/uptime').read_text().split()[0]} s after the kernel started")
    unified = "cgroup2" in subprocess.run(["stat", "-fc", "%T", CGROUPS], capture_output=True, text=True).stdout
    emit_case("the guest has cgroup v2 alone", "ok" if unified else "FAIL")
    add_swap()
    subprocess.run(["useradd", "-m", "-s", "/bin/bash", USER], check=True)
    run_classes("root in a service", AsRoot)
    for program in ("cgroup_test", "tiers_test", "supervisor_test"):
        run_gtest("root in a service", HERE / program, [])
    in_session("root", "session")
    in_session(USER, "user")


def main(what: str) -> None:
    if what == "service":
        try:
            run_service()
        except Exception:  # pylint: disable=broad-except
            emit_case("the guest's script", "FAIL", traceback.format_exc())
        emit(end=True)
        return
    expect_session(os.geteuid())
    if what == "session":
        run_classes("root in a session", AsRoot)
    else:
        run_classes("user in a session", UserWithoutScope)
        run_classes("user in a delegated scope", UserInScope)
        run_gtest("user in a delegated scope", HERE / "cgroup_test", SCOPE)


if __name__ == "__main__":
    main(sys.argv[1])
