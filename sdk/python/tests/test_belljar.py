"""The package against the real command: $BELLJAR, or the release build."""

import ast
import asyncio
import dataclasses
import hashlib
import inspect
import io
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

PACKAGE = Path(__file__).resolve().parents[1]
os.environ.setdefault("BELLJAR", str(PACKAGE.parents[1] / "build/release/src/cli/belljar"))

import belljar  # noqa: E402


def save_image(path: Path, command: list) -> Path:
    """An image that has one empty folder, as `docker save` writes it."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        folder = tarfile.TarInfo("etc")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
    config = {"os": "linux", "architecture": "amd64", "config": {"Cmd": command},
              "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer.getvalue()).hexdigest()]}}
    manifest = [{"Config": "config.json", "Layers": ["layer.tar"], "RepoTags": []}]
    with tarfile.open(path, "w") as tar:
        for name, content in (("config.json", json.dumps(config).encode()), ("layer.tar", layer.getvalue()),
                              ("manifest.json", json.dumps(manifest).encode())):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


class Executor(unittest.TestCase):
    def test_the_usual_recipe(self):
        executor = belljar.SandboxedExecutor(image=None, timeout_seconds=30, memory_limit="256m", cpu_quota=50000)
        stdout, stderr, exit_code = executor.execute("import sys\nprint(6 * 7)\nprint('oh', file=sys.stderr)\nsys.exit(3)")
        self.assertEqual((stdout, stderr, exit_code), ("42\n", "oh\n", 3))

    def test_defaults_are_those_of_the_recipe(self):
        parameters = inspect.signature(belljar.SandboxedExecutor).parameters
        defaults = {name: parameters[name].default for name in ("image", "timeout_seconds", "memory_limit", "cpu_quota")}
        self.assertEqual(defaults, {"image": None, "timeout_seconds": 30, "memory_limit": "256m", "cpu_quota": 50000})

    def test_a_traceback_names_the_line(self):
        _, stderr, exit_code = belljar.SandboxedExecutor().execute("x = 1\nraise ValueError('no')")
        self.assertEqual(exit_code, 1)
        self.assertIn("line 2", stderr)
        self.assertTrue(stderr.endswith("ValueError: no\n"), stderr)

    def test_timeout_carries_the_partial_output(self):
        code = "import sys, time\nprint('so far', flush=True)\nprint('and', file=sys.stderr, flush=True)\ntime.sleep(60)"
        began = time.monotonic()
        with self.assertRaises(TimeoutError) as caught:
            belljar.SandboxedExecutor(timeout_seconds=1.5).execute(code)
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual((caught.exception.stdout, caught.exception.stderr), ("so far\n", "and\n"))
        self.assertIsInstance(caught.exception, belljar.ExecutionTimeout)
        self.assertEqual(caught.exception.outcome.limits["timeout_ms"], 1500)
        self.assertIn("1.5 s", str(caught.exception))

    def test_memory_limit(self):
        _, stderr, exit_code = belljar.SandboxedExecutor(memory_limit="64m").execute("x = bytearray(10**9)")
        self.assertEqual(exit_code, 137)
        self.assertEqual(stderr, "belljar: killed at the memory limit of 64M\n")

    def test_cpu_quota(self):
        code = "import time\nend = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass\nprint(time.process_time())"
        stdout, _, _ = belljar.SandboxedExecutor(cpu_quota=20000).execute(code)
        self.assertLess(float(stdout), 0.6)

    def test_output_that_was_cut_is_said(self):
        stdout, stderr, _ = belljar.SandboxedExecutor().execute("print('x' * 3000000)")
        self.assertEqual(len(stdout), 1 << 20)
        self.assertIn("stdout was cut at the output limit; the program wrote 3000001 bytes", stderr)

    def test_names_of_variables_can_not_be_options(self):
        for env in ({"": "x"}, {"--": "y", "": "x"}, {"a=b": "x"}, {"A": "x\0y"}):
            with self.assertRaisesRegex(ValueError, "can't name a variable"):
                belljar.run(["env"], env=env)
        with self.assertRaises(TypeError):
            belljar.run(["env"], env={"A": 1})
        self.assertIn("--=x\n", belljar.run(["env"], env={"--": "x"}).stdout)

    def test_each_execution_is_a_new_sandbox(self):
        executor = belljar.SandboxedExecutor()
        executor.execute("open('/tmp/left', 'w').write('x')")
        self.assertEqual(executor.execute("import os; print(os.path.exists('/tmp/left'))")[0], "False\n")

    def test_nothing_of_the_caller_is_seen(self):
        os.environ["SECRET_OF_THE_CALLER"] = "canary"
        self.addCleanup(os.environ.pop, "SECRET_OF_THE_CALLER")
        stdout, _, _ = belljar.SandboxedExecutor().execute("import os; print(dict(os.environ))")
        self.assertNotIn("canary", stdout)

    def test_no_network(self):
        code = "import socket; socket.create_connection(('1.1.1.1', 443), timeout=3)"
        _, stderr, exit_code = belljar.SandboxedExecutor().execute(code)
        self.assertEqual(exit_code, 1)
        self.assertIn("Network is unreachable", stderr)

    def test_unknown_image(self):
        with self.assertRaises(belljar.ImageNotFound) as caught:
            belljar.SandboxedExecutor(image="no-such-image").execute("print(1)")
        self.assertIn("no-such-image", str(caught.exception))
        self.assertEqual(caught.exception.code, "unknown_image")

    def test_the_default_limit_however_it_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            recorder = Path(folder, "belljar")
            recorder.write_text(f'#!/bin/sh\necho "$@" > {folder}/seen\nexec {os.environ["BELLJAR"]} "$@"\n')
            recorder.chmod(0o755)
            for limit, is_default in (("256m", True), ("256M", True), (268435456, True), ("268435456", True), ("255M", False)):
                belljar.SandboxedExecutor(memory_limit=limit, belljar=recorder).execute("")
                self.assertEqual("--accept-weaker=memory" in Path(folder, "seen").read_text(), is_default, limit)

    def test_further_arguments_of_run(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "in.txt").write_text("data")
            executor = belljar.SandboxedExecutor(mounts=[f"{folder}:/data"])
            self.assertEqual(executor.execute("print(open('/data/in.txt').read())")[0], "data\n")

    def test_code_that_is_long_or_odd(self):
        for code, wanted in ((f"x = '{'y' * 300_000}'\nprint(len(x))", "300000\n"), ("print('\u2211\U0001f600')", "∑😀\n"),
                             ("", ""), ("print('''a\n'b\"c''')", "a\n'b\"c\n")):
            self.assertEqual(belljar.SandboxedExecutor().execute(code)[:2], (wanted, ""))

    def test_async(self):
        async def several():
            executor = belljar.SandboxedExecutor()
            return await asyncio.gather(*(executor.execute_async(f"print({n})") for n in range(8)))

        self.assertEqual([out for out, _, _ in asyncio.run(several())], [f"{n}\n" for n in range(8)])

    def test_fifty_threads(self):
        executor = belljar.SandboxedExecutor(timeout_seconds=120)
        gate = threading.Barrier(50)

        def execute(number: int):
            gate.wait()
            return executor.execute(f"import sys\nprint({number})\nsys.exit({number})")

        with ThreadPoolExecutor(50) as pool:
            results = list(pool.map(execute, range(50)))
        self.assertEqual(results, [(f"{n}\n", "", n) for n in range(50)])
        self.assertEqual(threading.active_count(), 1)


class Run(unittest.TestCase):
    def test_command_with_stdin(self):
        outcome = belljar.run(["sort", "-n"], stdin="10\n9\n", memory="64M", timeout=20)
        self.assertEqual((outcome.status, outcome.ok, outcome.exit_code, outcome.returncode), ("ok", True, 0, 0))
        self.assertEqual(outcome.stdout, "9\n10\n")
        self.assertEqual((outcome.limits["memory_bytes"], outcome.limits["timeout_ms"]), (64 << 20, 20_000))

    def test_all_of_the_record(self):
        outcome = belljar.run(["sh", "-c", "printf '\\377'; exit 7"])
        self.assertEqual((outcome.status, outcome.exit_code, outcome.signal), ("error", 7, None))
        self.assertEqual((outcome.stdout, outcome.stdout_bytes, outcome.stdout_bytes_total), ("\ufffd", b"\xff", 1))
        self.assertGreater(outcome.usage.memory_peak_bytes, 0)
        self.assertEqual(outcome.isolation.tier, "container")
        self.assertIn("files", outcome.isolation.enforced)
        self.assertEqual(outcome.record["status"], "error")
        self.assertEqual(set(outcome.record["usage"]), {field.name for field in dataclasses.fields(belljar.Usage)})
        fields = {field.name for field in dataclasses.fields(outcome)}
        self.assertEqual(set(outcome.record) - fields - {"changes_id"}, {"error", "stdout_base64"})

    def test_the_program_that_an_image_names(self):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["BELLJAR_IMAGES"] = str(Path(folder, "store"))
            self.addCleanup(os.environ.pop, "BELLJAR_IMAGES")
            archive = save_image(Path(folder, "image.tar"), ["/named/by/the-image", "word"])
            with self.assertRaisesRegex(belljar.Refused, "^/named/by/the-image: ") as caught:
                belljar.run([], image=str(archive))
            self.assertEqual(caught.exception.code, "not_found")

    def test_endings_are_outcomes(self):
        killed = belljar.run(["sh", "-c", "kill -SEGV $$"])
        self.assertEqual((killed.status, killed.signal, killed.returncode), ("signal", signal.SIGSEGV, 139))
        late = belljar.run(["sleep", "30"], timeout="300ms")
        self.assertEqual((late.status, late.ok), ("timeout", False))

    def test_script_with_arguments(self):
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "job.sh")
            script.write_text('echo "$1,$2"\n')
            self.assertEqual(belljar.run(script=script, args=["a b", "-c"]).stdout, "a b,-c\n")
        self.assertEqual(belljar.run(code="import sys; print(sys.argv[1:])", args=["--json"]).stdout, "['--json']\n")

    def test_variables(self):
        outcome = belljar.run(["sh", "-c", "echo $TOKEN,$HOME,$XDG_STATE_HOME"],
                              env={"TOKEN": "a=b c", "HOME": "/tmp", "XDG_STATE_HOME": "/x"})
        self.assertEqual(outcome.stdout, "a=b c,/tmp,/x\n")

    def test_variables_of_the_program_do_not_steer_the_command(self):
        names = ("PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "BELLJAR_IMAGES", "SSL_CERT_FILE")
        with tempfile.TemporaryDirectory() as folder:
            recorder = Path(folder, "belljar")
            recorder.write_text(f'#!{sys.executable} -IS\nimport os, sys\nopen("{folder}/seen", "w").write(repr(dict(os.environ)))\n'
                                f'os.execv("{os.environ["BELLJAR"]}", ["belljar", *sys.argv[1:]])\n')
            recorder.chmod(0o755)
            outcome = belljar.run(["/usr/bin/env"], env={name: "/of/the/program" for name in names}, belljar=recorder)
            for name in names:
                self.assertIn(f"{name}=/of/the/program\n", outcome.stdout)
            self.assertNotIn("/of/the/program", Path(folder, "seen").read_text())

    def test_values_of_variables_are_not_on_the_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            recorder = Path(folder, "belljar")
            recorder.write_text(f'#!/bin/sh\necho "$@" > {folder}/seen\nexec {os.environ["BELLJAR"]} "$@"\n')
            recorder.chmod(0o755)
            self.assertEqual(belljar.run(["printenv", "TOKEN"], env={"TOKEN": "s3cret"}, belljar=recorder).stdout, "s3cret\n")
            self.assertNotIn("s3cret", Path(folder, "seen").read_text())

    def test_limits_by_name(self):
        outcome = belljar.run(["true"], limits={"tasks": 64, "tmp_size": "10M", "timeout": 2.5}, cpus=0.5, memory=1 << 26)
        limits = outcome.limits
        self.assertEqual((limits["tasks"], limits["tmp_size_bytes"], limits["timeout_ms"], limits["cpus"], limits["memory_bytes"]),
                         (64, 10 << 20, 2500, 0.5, 64 << 20))
        with self.assertRaisesRegex(belljar.Refused, "did you mean memory"):
            belljar.run(["true"], limits={"memry": "1G"})

    def test_collect(self):
        with tempfile.TemporaryDirectory() as folder:
            outcome = belljar.run(["sh", "-c", "echo made > /out/file"], collect=[f"/out:{folder}/got"])
            self.assertEqual(Path(folder, "got", "file").read_text(), "made\n")
            file, = outcome.files
            self.assertEqual((file.path, file.saved_as, file.size, file.change),
                             ("/out/file", f"{folder}/got/file", 5, "added"))
            self.assertEqual((outcome.ok, outcome.files_skipped, outcome.files_truncated), (True, (), False))

    def test_files_that_were_left_behind_are_told(self):
        with tempfile.TemporaryDirectory() as folder:
            code = "open('/out/large', 'w').write('x' * 5000); open(b'/out/odd-\\xff', 'w').write('x')"
            outcome = belljar.run(code=code, collect=[f"/out:{folder}/got"], limits={"collect_file": "1K"})
            self.assertEqual((outcome.status, outcome.exit_code), ("ok", 0))
            self.assertEqual((outcome.ok, outcome.returncode, outcome.files_truncated), (False, 125, True))
            self.assertEqual([os.fsencode(file.path) for file in outcome.files], [b"/out/odd-\xff"])
            self.assertTrue(Path(outcome.files[0].saved_as).exists())
            skipped, = outcome.files_skipped
            self.assertEqual(skipped.path, "/out/large")
            self.assertIn("1K", skipped.reason)

    def test_profile(self):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_STATE_HOME"] = folder
            self.addCleanup(os.environ.pop, "XDG_STATE_HOME")
            belljar.run(["true"], profile="sdk")
            self.assertTrue(Path(folder, "belljar", "runs.db").exists())

    def test_refusals(self):
        with self.assertRaises(belljar.Refused) as caught:
            belljar.run(["no-such-program"])
        self.assertEqual((caught.exception.code, caught.exception.outcome.status), ("not_found", "denied"))
        with self.assertRaisesRegex(belljar.Refused, "--memory|limits.memory"):
            belljar.run(["true"], memory="lots")

    def test_wrong_calls(self):
        for arguments in ({}, {"command": ["true"], "code": "1"}, {"command": "true"}, {"command": []},
                          {"command": ["true"], "args": ["x"]}):
            with self.assertRaises(ValueError):
                belljar.run(**arguments)
        with self.assertRaisesRegex(ValueError, "no image"):
            belljar.run([])
        with self.assertRaises(TypeError):
            asyncio.run(belljar.run_async(["true"], memroy="1G"))
        with self.assertRaisesRegex(TypeError, "code is text, not bytes"):
            belljar.SandboxedExecutor().execute(b"print(1)")

    def test_refusals_speak_of_what_the_caller_gave(self):
        with self.assertRaisesRegex(belljar.Refused, '^limits.timeout: "0" is out of range') as caught:
            belljar.run(["true"], timeout=0)
        self.assertNotIn("/proc/", caught.exception.outcome.reason)
        with self.assertRaisesRegex(belljar.Refused, "^code: a script of .* is too large"):
            belljar.run(code="#" * (17 << 20))

    def test_command_is_missing(self):
        with self.assertRaises(belljar.BelljarNotInstalled):
            belljar.run(["true"], belljar="/no/such/belljar")

    def test_command_that_writes_no_record(self):
        with self.assertRaisesRegex(belljar.InternalError, "status 1"):
            belljar.run(["true"], belljar="/bin/false")

    def test_async_has_the_same_arguments(self):
        outcome = asyncio.run(belljar.run_async(["cat"], stdin=b"x" * 3_000_000, limits={"output": "4M"}))
        self.assertEqual((outcome.status, len(outcome.stdout_bytes)), ("ok", 3_000_000))

    def test_cancelling_ends_the_sandbox(self):
        mark = f"mark{os.getpid()}"

        async def cancelled():
            task = asyncio.ensure_future(belljar.run_async(["sleep", "61"], env={"MARK": mark}))
            await asyncio.sleep(1)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(cancelled())
        self.assertEqual(self.processes_with(mark), [])

    def test_cancelling_a_program_that_wrote_much(self):
        mark = f"wrote{os.getpid()}"
        program = ["sh", "-c", "head -c 1000000 /dev/zero; sleep 61"]

        async def cancelled():
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(belljar.run_async(program, stdin="x" * 300_000, env={"MARK": mark}), 2)
            executor = belljar.SandboxedExecutor(env={"MARK": mark})
            task = asyncio.ensure_future(executor.execute_async("import time; print('x' * 900000, flush=True); time.sleep(61)"))
            await asyncio.sleep(2)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        began = time.monotonic()
        asyncio.run(asyncio.wait_for(cancelled(), 40))
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(self.processes_with(mark), [])

    def test_interrupt_ends_the_sandbox(self):
        mark = f"interrupted{os.getpid()}"
        code = f"import belljar; belljar.run(['sleep', '62'], env={{'MARK': '{mark}'}})"
        process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL, start_new_session=True,
                                   env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        deadline = time.monotonic() + 20
        while not self.processes_with(mark) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertTrue(self.processes_with(mark))
        process.send_signal(signal.SIGINT)  # to Python alone
        process.wait(20)
        while self.processes_with(mark) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.processes_with(mark), [])

    def test_interrupt_while_the_command_starts(self):
        mark = f"starting{os.getpid()}"
        start = subprocess.Popen._execute_child

        def interrupted(process, *arguments):
            start(process, *arguments)
            raise KeyboardInterrupt

        began = time.monotonic()
        with mock.patch.object(subprocess.Popen, "_execute_child", interrupted), self.assertRaises(KeyboardInterrupt):
            belljar.run(["sleep", "64"], env={"MARK": mark}, timeout=90)
        self.wait_until_gone(mark)
        self.assertLess(time.monotonic() - began, 30)

    def test_cancelling_twice(self):
        mark = f"twice{os.getpid()}"
        program = ["sh", "-c", "head -c 9000000 /dev/zero; sleep 65"]

        async def cancelled(ends_at_once: bool):
            task = asyncio.ensure_future(belljar.run_async(program, limits={"output": "16M"}, env={"MARK": mark}))
            await asyncio.sleep(2)
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError as error:
                held.append(error)  # and with it the frame that has the process, which its end would kill
            while not ends_at_once and self.processes_with(mark):
                await asyncio.sleep(0.05)

        held = []
        for ends_at_once in (False, True):
            asyncio.run(asyncio.wait_for(cancelled(ends_at_once), 30))
            self.wait_until_gone(mark)
        self.assertEqual(len(held), 2)

    def wait_until_gone(self, mark: str):
        deadline = time.monotonic() + 20
        while self.processes_with(mark) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.processes_with(mark), [])

    def test_code_has_a_name_and_is_in_no_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TMPDIR"] = folder
            self.addCleanup(os.environ.pop, "TMPDIR", None)
            outcome = belljar.run(code="import sys, os; print(__file__, sys.argv, os.listdir('/app'), os.listdir('/proc/self/fd'))",
                                  args=["a"], memory="64M", timeout=20)
            self.assertEqual(outcome.stdout, "/app/main.py ['/app/main.py', 'a'] ['main.py'] ['0', '1', '2', '3']\n", outcome)
            self.assertEqual(os.listdir(folder), [])

    def test_a_killed_caller_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            mark = f"killed{os.getpid()}"
            code = f"import belljar; belljar.run(code='import time; time.sleep(63)', timeout=100, env={{'MARK': '{mark}'}})"
            process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL,
                                       env={**os.environ, "PYTHONPATH": str(PACKAGE), "TMPDIR": folder})
            deadline = time.monotonic() + 20
            while not self.processes_with(mark) and time.monotonic() < deadline:
                time.sleep(0.05)
            running = self.processes_with(mark)
            process.kill()
            process.wait()
            self.assertTrue(running)
            self.assertEqual(os.listdir(folder), [])
            while self.processes_with(mark) and time.monotonic() < deadline + 20:
                time.sleep(0.05)
            self.assertEqual((self.processes_with(mark), os.listdir(folder)), ([], []))

    @staticmethod
    def processes_with(mark: str) -> list:
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if f"MARK={mark}".encode() in (entry / "environ").read_bytes():
                    found.append(entry.name)
            except OSError:
                continue
        return found


class Workspaces(unittest.TestCase):
    """workspace= of run(), and belljar.changes."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.environ["XDG_STATE_HOME"] = str(Path(folder.name, "state"))
        self.addCleanup(os.environ.pop, "XDG_STATE_HOME")
        self.work = Path(folder.name, "work")
        self.work.mkdir()
        (self.work / "one").write_text("one\n")

    def change(self, code: str) -> str:
        outcome = belljar.run(["sh", "-c", code], workspace=self.work)
        self.assertEqual(outcome.status, "ok", outcome)
        return outcome.changes_id

    def test_diff_and_apply(self):
        id = self.change("echo two > one; mkdir new; echo x > new/file; echo y > new/other")
        self.assertEqual((self.work / "one").read_text(), "one\n")
        kept, = belljar.changes.list()
        self.assertEqual((kept.id, kept.workspace), (id, str(self.work)))
        self.assertEqual([(c.path, c.change, c.kind, c.size) for c in kept.changes],
                         [("new", "added", "folder", 0), ("new/file", "added", "file", 2), ("new/other", "added", "file", 2),
                          ("one", "modified", "file", 4)])
        self.assertIn("-one\n+two\n", belljar.changes.diff(id, "one"))
        self.assertNotIn("one", belljar.changes.diff(id, "new"))
        applied = belljar.changes.apply(id, "new/file", "one")
        self.assertEqual(([c.path for c in applied.applied], applied.left_out), (["new/file", "one"], ()))
        self.assertEqual((self.work / "one").read_text(), "two\n")
        self.assertFalse((self.work / "new/other").exists())
        belljar.changes.apply(id)
        self.assertEqual((self.work / "new/other").read_text(), "y\n")
        self.assertEqual(belljar.changes.list(), ())

    def test_no_change_has_no_id(self):
        self.assertIsNone(self.change("cat one"))
        self.assertIsNone(belljar.run(["true"]).changes_id)

    def test_what_is_left_out(self):
        id = self.change("mkdir .vscode; echo x > .vscode/tasks.json; ln -s /etc l; echo x > fine")
        applied = belljar.changes.apply(id)
        self.assertEqual([c.path for c in applied.applied], ["fine"])
        self.assertEqual([(row.path, row.changes) for row in applied.left_out], [(".vscode", 2), ("l", 1)])
        self.assertIn("symbolic link", applied.left_out[1].reason)
        belljar.changes.discard(id)
        self.assertEqual(belljar.changes.list(), ())
        self.assertFalse((self.work / ".vscode").exists())

    def test_damaged_sets(self):
        id = self.change("echo two > one")
        Path(os.environ["XDG_STATE_HOME"], "belljar/changes", id, "changes.json").write_text("{")
        listed = belljar.changes.list()
        self.assertEqual([(row.id, row.workspace, row.changes) for row in listed], [(id, "", ())])
        self.assertIn("damaged", listed[0].damage)
        with self.assertRaisesRegex(belljar.ChangesError, "damaged"):
            belljar.changes.apply(id)
        belljar.changes.discard(id)
        self.assertEqual(belljar.changes.list(), ())

    def test_odd_names(self):
        outcome = belljar.run(code="open(b'odd-\\xff -x', 'w').write('x')", workspace=str(self.work))
        change, = belljar.changes.list()[0].changes
        self.assertEqual(os.fsencode(change.path), b"odd-\xff -x")
        self.assertEqual(belljar.changes.apply(outcome.changes_id, change.path).applied, (change,))
        self.assertTrue((self.work / change.path).exists())

    def test_errors(self):
        for use in (belljar.changes.diff, belljar.changes.apply, belljar.changes.discard):
            for id in ("01234567", "--json", "../x", ""):
                with self.assertRaisesRegex(belljar.ChangesError, "no changes are kept|id", msg=id):
                    use(id)
        id = self.change("echo two > one")
        (self.work / "one").write_text("mine\n")
        with self.assertRaisesRegex(belljar.ChangesError, "nothing was applied: .*one"):
            belljar.changes.apply(id)
        with self.assertRaises(belljar.BelljarNotInstalled):
            belljar.changes.list(belljar="/no/such/belljar")
        with self.assertRaises(belljar.Refused):
            belljar.run(["true"], workspace="/no/such/folder")


class Hostile(unittest.TestCase):
    """What a sandbox writes is data."""

    def test_nothing_is_unpickled(self):
        class Trap:
            def __reduce__(self):
                return (os._exit, (66,))

        payload = pickle.dumps(Trap())
        stdout, _, _ = belljar.SandboxedExecutor().execute(f"import sys; sys.stdout.buffer.write({payload!r})")
        self.assertIsInstance(stdout, str)
        self.assertEqual(belljar.run(["cat"], stdin=payload).stdout_bytes, payload)

    def test_the_package_has_no_way_to_execute_data(self):
        for path in (PACKAGE / "belljar").glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                names = [alias.name for alias in getattr(node, "names", []) if isinstance(alias, ast.alias)]
                if isinstance(node, ast.Name):
                    names = [node.id]
                for name in names:
                    self.assertNotIn(name, ("pickle", "marshal", "shelve", "dill", "eval", "exec", "compile"), path)

    def test_a_forged_record_stays_output(self):
        forged = '{"status": "ok", "exit_code": 0, "error": null}'
        outcome = belljar.run(["sh", "-c", f"echo '{forged}'; exit 9"])
        self.assertEqual((outcome.exit_code, outcome.stdout), (9, forged + "\n"))

    def test_floods_are_cut(self):
        outcome = belljar.run(["sh", "-c", "yes | head -c 30000000"], timeout=60)
        self.assertTrue(outcome.stdout_truncated)
        self.assertEqual((len(outcome.stdout), outcome.stdout_bytes_total), (1 << 20, 30_000_000))


class OrdinaryUser(unittest.TestCase):
    """A user without a control group of its own."""

    def setUp(self):
        if os.geteuid() != 0:
            print("NOT COVERED: the class of an ordinary user: needs root, to become one")
            self.skipTest("needs root, to become an ordinary user")

    def run_as_user(self, code: str) -> subprocess.CompletedProcess:
        with tempfile.TemporaryDirectory(prefix="belljar-user-") as folder:
            os.chmod(folder, 0o755)
            shutil.copytree(PACKAGE / "belljar", Path(folder, "belljar"))
            shutil.copy(os.environ["BELLJAR"], Path(folder, "command"))
            home = Path(folder, "home")
            home.mkdir()
            os.chown(home, 54321, 54321)
            argv = ["/usr/bin/setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "/usr/bin/python3", "-c", code]
            environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "PYTHONPATH": folder, "BELLJAR": f"{folder}/command"}
            return subprocess.run(argv, env=environment, capture_output=True, text=True, cwd=home)

    def test_defaults_work(self):
        ended = self.run_as_user("import belljar; print(belljar.SandboxedExecutor().execute('print(6 * 7)'))")
        self.assertEqual((ended.stdout, ended.stderr), ("('42\\n', '', 0)\n", ""))

    def test_chosen_limits_hold_in_full_or_are_refused(self):
        ended = self.run_as_user("import belljar; print(belljar.SandboxedExecutor(memory_limit='300m').execute('print(1)'))")
        if not ended.stdout:
            self.assertIn("can't be enforced in full", ended.stderr)
        else:  # a control group is delegated to this user
            self.assertEqual(ended.stdout, "('1\\n', '', 0)\n")


class Installing(unittest.TestCase):
    """pip install ./sdk/python, without a network."""

    def test_pip_install(self):
        with tempfile.TemporaryDirectory(prefix="belljar-venv-") as folder:
            subprocess.run(["/usr/bin/python3", "-m", "venv", folder], check=True, stdout=subprocess.DEVNULL)
            python = f"{folder}/bin/python"
            offline = {**os.environ, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
            offline.pop("PYTHONPATH", None)
            subprocess.run([python, "-m", "pip", "install", "--quiet", PACKAGE], check=True, env=offline, cwd=folder)
            code = "import belljar; print(belljar.__file__, belljar.SandboxedExecutor().execute('print(1)'))"
            shown = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True, env=offline, cwd=folder)
            self.assertTrue(shown.stdout.startswith(folder), shown.stdout)
            self.assertIn("('1\\n', '', 0)", shown.stdout)
            listed = subprocess.run([python, "-m", "pip", "show", "-f", "belljar"], check=True, capture_output=True, text=True,
                                    env=offline)
            self.assertIn("py.typed", listed.stdout)
            self.assertRegex(listed.stdout, r"(?m)^Requires: *$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
