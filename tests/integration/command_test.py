"""The command line itself: bad input, policy files, doctor, gc, help, and the record of every status."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time

from harness import IS_ROOT, Case, both_callers, cgroups_of, main, record_faults, shared_folder


@both_callers
class BadInput(Case):
    def refused(self, *arguments, words=()):
        self.assert_refused(self.run_in(*arguments), 125, *words)
        ended = self.run_in("--json", *arguments)  # the record says the same
        record = json.loads(ended.out)
        self.assertEqual(record_faults(record), [], str(ended))
        self.assertEqual((record["status"], ended.status), ("denied", 125))
        self.assertEqual(f"belljar: {record['error']['message']}\n".encode(), ended.err)

    def test_unknown_flags(self):
        self.refused("--memry", "1G", "--", "true", words=["--memry", "--memory"])
        self.refused("--no-such-flag", "--", "true", words=["--no-such-flag"])
        self.refused("-z", "--", "true", words=["-z"])
        self.refused("--Memory", "1G", "--", "true", words=["--Memory"])
        self.refused("--volume", "/a:/b", "--", "true", words=["--mount"])
        self.refused("--allow", "*", "--", "true", words=["--allow"])
        self.refused("---", "--", "true")

    def test_options_given_twice(self):
        self.refused("--memory", "64M", "--memory", "1G", "--", "true", words=["--memory is given twice", '"64M"', '"1G"'])
        self.refused("--timeout=5s", "--timeout=5s", "--", "true", words=["--timeout is given twice"])
        self.assertEqual(self.ok("-e", "A=1", "-e", "B=2", "--hide", "/usr/games", "--hide", "/usr/local", "--", "sh", "-c", "echo $A$B"), "12\n")

    def test_impossible_values(self):
        for flag, values in {
            "--memory": ["0", "-1", "1e99G", "nan", "inf", "", " ", "1X", "0x10", "1,5G", "٣", "18446744073709551616", "99999999T", "1K", "1G1"],
            "--cpus": ["0", "-1", "nan", "inf", "1e99", "", "two", "0.001", "99999999"],
            "--tasks": ["0", "-1", "nan", "1.5", "1e3", "", "99999999999"],
            "--timeout": ["0", "-1", "nan", "5 weeks", "", "1e99", "0.1ms"],
            "--tmp-size": ["0", "-1", "nan", "1"],
            "--open-files": ["0", "-1", "3", "nan"],
            "--output-limit": ["-1", "nan", "x"],
            "--tmp-inodes": ["0", "-1", "1K"],
        }.items():
            for value in values:
                self.assert_refused(self.run_in(flag, value, "--", "true"), 125, flag)
                self.assert_refused(self.run_in(f"{flag}={value}", "--", "true"), 125, flag)

    def test_other_values(self):
        for flag, value in (("--isolation", "magic"), ("--require", "nothing-such"), ("--on-output-limit", "explode"), ("--hide", "relative"),
                            ("--hide", "/a/../b"), ("-e", "=x"), ("-e", ""), ("--status-fd", "x"), ("--status-fd", "-1"), ("--status-fd", "99"),
                            ("--policy", "/no/such/file"), ("--workdir", "")):
            self.assert_refused(self.run_in(flag, value, "--", "true"), 125, flag if flag != "--policy" else value)

    def test_what_an_early_refusal_knows(self):
        """A record tells no limits and no tier that nobody has asked for."""
        broken = self.write("broken.toml", "[limits]\nmemory = true\n")
        for arguments in (("--memory", "0"), ("--policy", broken), ("--no-such-flag",), ("--isolation", "magic"), ("--status-fd", "x")):
            record = self.record("--timeout", "7s", *arguments, "--", "true")
            self.assertEqual((record["status"], record["isolation"]["tier"]), ("denied", None if arguments[0] != "--status-fd" else "container"))
            self.assertEqual(record["limits"], None if arguments[0] != "--status-fd" else {**record["limits"], "timeout_ms": 7000})
        record = self.record("--timeout", "7s", "--isolation", "kernel", "--limits", "auto:no-such-profile", "--", "true")
        self.assertEqual((record["status"], record["limits"]["timeout_ms"], record["isolation"]["tier"]), ("denied", 7000, "kernel"))

    def test_help_by_its_short_name(self):
        for command in ((), ("run",), ("doctor",), ("gc",), ("version",), ("image",), ("image", "load"), ("changes",), ("policy",),
                        ("policy", "show"), ("policy", "check"), ("runs",), ("show",), ("calibrate",)):
            short, long = (self.belljar(*command, option) for option in ("-h", "--help"))
            self.assertEqual((short.status, short.out, short.err), (0, long.out, b""), f"{command}: {short}")
            self.assertIn("usage: belljar", short.text)

    def test_policies_that_are_no_files(self):
        """Nothing is waited for."""
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        self.own(pipe)
        self.refused("--policy", pipe, "--", "true", words=["pipe", "this is a pipe; a policy must be a regular file"])
        self.refused("--policy", "/dev/zero", "--", "true", words=["this is a device"])
        self.refused("--policy", self.folder, "--", "true", words=["Is a directory"])

    def test_hiding_what_is_the_sandboxs_own(self):
        for path in ("/dev", "/tmp", "/tmp/", "/proc", "/sys", "/dev/shm"):
            self.refused("--hide", path, "--", "true", words=["--hide", path.rstrip("/"), "the sandbox's own", "hide what is in the image or a mount"])

    def test_a_place_in_another_mount(self):
        outer, inner = self.folder / "outer", self.folder / "inner"
        for folder in (outer, inner):
            folder.mkdir()
            self.own(folder)
        self.refused("--mount", f"{outer}:/data", "--mount", f"{inner}:/data/in/it", "--", "true",
                     words=[f"{inner}:/data/in/it", "lies in the mount at /data", f"make {outer}/in/it first"])
        (outer / "in/it").mkdir(parents=True)
        self.assertEqual(self.sh("ls /data/in", "--mount", f"{outer}:/data", "--mount", f"{inner}:/data/in/it"), "it\n")

    def test_few_open_files(self):
        """Who has chosen nothing is not told of an option that was not given."""
        if not self.as_user:
            return  # root may raise the limit
        lower = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        ended = self.run_in("--", "true", preexec_fn=lower)
        self.assert_refused(ended, 125, "the caller's limit on open files (ulimit -Hn) is 100", "--open-files 100")
        self.assertNotIn("--open-files 1024", ended.err.decode())
        self.assertEqual(self.run_in("--open-files", "100", "--", "true", preexec_fn=lower).status, 0)
        self.assert_refused(self.run_in("--open-files", "101", "--", "true", preexec_fn=lower), 125, "--open-files 101")

    def test_a_cache_folder_out_of_reach(self):
        if not self.as_user:
            return  # root has its own
        locked = self.folder / "locked"
        locked.mkdir()
        locked.chmod(0)
        self.assert_refused(self.run_in("--", "true", env={"XDG_CACHE_HOME": str(locked)}), 125, f"{locked}/belljar",
                            "Permission denied", "set XDG_CACHE_HOME to a folder that you can write")

    def test_status_fd_that_can_not_be_written(self):
        fd = os.open("/dev/null", os.O_RDONLY)
        self.assert_refused(self.run_in("--status-fd", str(fd), "--", "true", pass_fds=[fd]), 125, "--status-fd")
        os.close(fd)

    def test_a_stack_that_is_too_small(self):
        for size, status in ((64, 125), (256, 0)):
            argv = ["/bin/sh", "-c", f'ulimit -s {size}; exec "$@"', "sh", *self.argv("run", "--", "true")]
            ended = subprocess.run(argv, env=self.environment(), cwd=self.folder, capture_output=True, text=True, timeout=60)
            self.assertEqual(ended.returncode, status, ended)
            self.assertRegex(ended.stderr, r"^belljar: the stack limit \(ulimit -s\) is too small.*\n$" if status else "^$")

    def test_nothing_to_run(self):
        self.refused(words=["nothing to run"])
        self.refused("--", words=["nothing to run"])
        self.refused("--memory", words=["--memory needs a value"])
        self.refused("--", "")

    def test_unknown_commands(self):
        for words in (["rnu", "x"], ["--json", "run"], ["policy"], ["policy", "shwo"], ["doctor", "now"], ["gc", "now"], ["script.py"]):
            ended = self.belljar(*words)
            self.assert_refused(ended, 125)
        self.assertEqual(self.belljar().status, 125)

    def test_what_this_host_can_not_enforce(self):
        """A limit that is named, or a wall that is required, holds in full or nothing runs."""
        weaker = self.record("--", "true").walls("weaker")
        named = {"memory": ("--memory", "64M"), "cpus": ("--cpus", "0.5"), "tasks": ("--tasks", "50")}
        for wall, flags in named.items():
            if wall in weaker:
                self.assert_refused(self.run_in(*flags, "--", "true"), 125, flags[0])
                self.assert_refused(self.run_in("--require", wall, "--", "true"), 125, wall)
            else:
                self.assertEqual(self.ok(*flags, "--require", wall, "--", "echo", "held"), "held\n")
        if weaker:
            self.assert_refused(self.run_in("--require", "all", "--", "true"), 125, "--require")
        else:
            self.assertEqual(self.ok("--require", "all", "--", "echo", "all"), "all\n")

    def test_help_goes_to_stdout(self):
        for words in (["--help"], ["help"], ["run", "--help"], ["help", "run"], ["policy", "--help"], ["doctor", "--help"], ["gc", "--help"]):
            ended = self.belljar(*words)
            self.assertEqual((ended.status, ended.err), (0, b""), words)
            self.assertIn("usage: belljar", ended.text)
            self.assertLessEqual(max(map(len, ended.text.splitlines())), 100)

    def test_version_tells_what_this_is(self):
        text = self.belljar("--version").text
        self.assertRegex(text, r"^belljar \d+\.\d+\.\d+ \(commit \S+\)\ntiers: container kernel( \(not installed\))? wasm")
        self.assertEqual(self.belljar("version").text, text)
        told = json.loads(self.belljar("version", "--json").text)
        self.assertEqual(json.loads(self.belljar("--version", "--json").text), told)
        self.assertEqual(f"belljar {told['version']} (commit {told['commit']})", text.splitlines()[0])
        # What is installed is what doctor finds.
        tiers = {row["name"]: row["installed"] for row in json.loads(self.belljar("doctor", "--json").text)["tiers"]}
        self.assertEqual({row["name"]: row["installed"] for row in told["tiers"]}, tiers)
        self.assertEqual("wasm-engine" in told["features"], tiers["wasm"])
        self.assertLessEqual({"seccomp", "landlock", "egress", "images", "workspace"}, set(told["features"]))
        self.assertEqual([row for row in told["tiers"] if row["installed"] and row["why_not"]], [])


POLICY = """
workdir = "/data"
hide = ["/usr/bin/whoami"]
on_output_limit = "kill"
stdin = "none"
pass_environment = ["PASSED"]

[limits]
timeout = "2s"
open_files = 100
output = "64K"

[environment]
NAME = "from the file"
OTHER = "ž"

[[mounts]]
source = "."
target = "/data"
access = "rw"
"""


@both_callers
class PolicyFiles(Case):
    def test_everything_in_a_file(self):
        policy = self.write("p.toml", POLICY)
        record = self.record("--policy", policy, "--", "sh", "-c", "pwd; echo $NAME $OTHER $PASSED; ulimit -n; wc -c < /bin/whoami; cat; echo x > made",
                             data=b"unread", env={"PASSED": "passed"})
        self.assertEqual(record["stdout"], "/data\nfrom the file ž passed\n100\n0\n", record)
        self.assertEqual((record["limits"]["timeout_ms"], record["limits"]["output_bytes"]), (2000, 65536))
        self.assertEqual((self.folder / "made").read_text(), "x\n")

    def test_flags_win(self):
        policy = self.write("p.toml", POLICY)
        record = self.record("--timeout", "3s", "--policy", policy, "-e", "NAME=flag", "-e", "PASSED=x", "--workdir", "/tmp", "--", "sh", "-c", "pwd; echo $NAME $OTHER")
        self.assertEqual((record["stdout"], record["limits"]["timeout_ms"]), ("/tmp\nflag ž\n", 3000))

    def test_later_files_win(self):
        first, second = self.write("1.toml", "[limits]\ntimeout = '2s'\nopen_files = 99\n"), self.write("2.toml", "[limits]\ntimeout = '4s'\n")
        limits = self.record("--policy", first, "--policy", second, "--", "true")["limits"]
        self.assertEqual((limits["timeout_ms"], limits["open_files"]), (4000, 99))

    def test_show_round_trip(self):
        policy = self.write("p.toml", POLICY)
        shown = self.belljar("policy", "show", "--policy", policy, "--timeout", "5s")
        self.assertEqual((shown.status, shown.err), (0, b""))
        again = self.belljar("policy", "show", "--policy", self.write("shown.toml", shown.out))
        self.assertEqual(again.out, shown.out)
        code = ["--", "sh", "-c", "pwd; echo $NAME $OTHER $PASSED; ulimit -n"]
        one = self.record("--policy", policy, "--timeout", "5s", *code, env={"PASSED": "p"})
        two = self.record("--policy", self.folder / "shown.toml", *code, env={"PASSED": "p"})
        self.assertEqual((one["limits"], one["stdout"]), (two["limits"], two["stdout"]))

    def test_show_holds_no_secret(self):
        shown = self.belljar("policy", "show", "-e", "TOKEN", env={"TOKEN": "hush-hush"})
        self.assertNotIn("hush-hush", shown.text)
        self.assertIn("TOKEN", shown.text)

    def test_show_of_the_defaults(self):
        shown = self.belljar("policy", "show").text
        for text in ("256M", "30 s", "50M"):
            self.assertIn(text, shown)

    def test_mistakes_are_refused_with_their_line(self):
        for text, words in {
            "nework = 1\n": [":1:", "nework"], "\n[limits]\nmemroy = '1G'\n": [":3:", "memroy", "memory"], "[limits]\nmemory = '0'\n": [":2:", "memory"],
            "[limits]\nmemory = true\n": [":2:"], "hide = '/x'\n": [":1:", "hide"], "hide = [1]\n": [":1:", "must be an array of strings, not one with an integer"], "x = \n": [":1"], "= 1\n": [":1"],
            "[[mounts]]\nsource = '.'\n": ["target"], "[[mounts]]\nsource = '.'\ntarget = '/d'\naccess = 'write'\n": [":4:"],
            "workdir = '/a'\nworkdir = '/b'\n": [":2"], "[environment]\nA = 1\n": [":2:", "string"], "tier = 'magic'\n": [":1:", "magic"],
            "\xff": [], "a" * 300000: [], "x = " + "[" * 5000: [], "[limits]\ntimeout = nan\n": [":2:"],
        }.items():
            policy = self.write("bad.toml", text.encode("latin-1"))
            self.assert_refused(self.run_in("--policy", policy, "--", "true", patience=20), 125, "bad.toml", *words)
            self.assert_refused(self.belljar("policy", "show", "--policy", policy), 125, "bad.toml", *words)

    def test_files_that_are_no_policy(self):
        for path in (self.folder, self.folder / "missing", "/dev/zero"):
            self.assert_refused(self.run_in("--policy", path, "--", "true", patience=10), 125, str(path))

    def test_an_empty_policy_is_the_defaults(self):
        limits = self.record("--policy", self.write("p.toml", ""), "--", "true")["limits"]
        self.assertEqual(limits, self.record("--", "true")["limits"])


@both_callers
class Records(Case):
    def test_every_status(self):
        """record() checks the form of each."""
        held = "memory" in self.record("--", "true").walls("enforced")
        seen = {
            "ok": self.record("--", "true"), "error": self.record("--", "false"), "timeout": self.record("--timeout", "200ms", "--", "sleep", "9"),
            "disk": self.record("--tmp-size", "1M", "--", "sh", "-c", "head -c 2M /dev/zero > /tmp/x"),
            "output": self.record("--output-limit", "5", "--on-output-limit", "kill", "--", "yes"),
            "signal": self.record("--", "sh", "-c", "kill -9 $$"), "denied": self.record("--", "no-such-program"),
        }
        if held:
            seen["memory"] = self.record("--memory", "50M", "--", "python3", "-c", "bytearray(200 << 20)")
            seen["pids"] = self.record("--tasks", "5", "--", "bash", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 1 & done 2>&-; exit 1")
        for status, record in seen.items():
            self.assertEqual(record["status"], status, record)
        for status in ("timeout", "output", "memory"):
            if status in seen:
                self.assertEqual((seen[status]["exit_code"], seen[status]["signal"], seen[status].exit_status), (None, 9, 124), status)

    def test_nobody_reads_the_record(self):
        began = time.monotonic()
        process = self.start("run", "--json", "--timeout", "90s", "--", "sleep", "60")
        process.stdout.close()
        with process:
            said = process.stderr.read().decode()
            self.assertEqual(process.wait(30), -signal.SIGPIPE, said)  # by its own write of the record
        self.assertIn("stopped because the reader of its output went away", said)
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(cgroups_of(process.pid), [])

    def test_cancelled(self):
        process = self.start("run", "--json", "--", "sh", "-c", "echo partial; sleep 30")
        time.sleep(1)
        process.terminate()
        out, _ = process.communicate(timeout=20)
        record = json.loads(out)
        self.assertEqual(record_faults(record), [])
        self.assertEqual((record["status"], record["stdout"], process.returncode), ("cancelled", "partial\n", 143))

    def test_refusal_has_a_whole_record(self):
        ended = self.run_in("--json", "--memory", "0", "--", "true")
        record = json.loads(ended.out)
        self.assertEqual(record_faults(record), [])
        self.assertEqual((record["error"]["code"], record["exit_code"], record["signal"]), ("bad_value", None, None))

    def test_isolation_names_every_wall_once(self):
        record = self.record("--", "true")
        enforced = record["isolation"]["enforced"]
        others = [row["name"] for row in record["isolation"]["weaker"] + record["isolation"]["missing"]]
        self.assertEqual(len(set(enforced + others)), len(enforced + others))
        self.assertLessEqual({"files", "processes", "network", "syscalls", "capabilities", "environment", "timeout", "output"}, set(enforced))
        self.assertLessEqual({"memory", "cpus", "tasks", "landlock", "uid_range"}, set(enforced + others))
        if not self.as_user:
            self.assertEqual([name for name in others if name not in ("landlock", "memory", "cpus", "tasks")], [])
        else:
            self.assertLessEqual({"uid_range", "ownership"}, set(others))


@both_callers
class Denials(Case):
    """Refused system calls are named, with the reason."""

    def test_in_the_record(self):
        code = "import ctypes\nlibc = ctypes.CDLL(None)\nfor _ in range(3): libc.mount(b'a', b'/tmp', b'tmpfs', 0, None)\nlibc.unshare(0x20000)"
        record = self.record(self.write("refused.py", code))
        self.assertEqual(record["status"], "ok")
        rows = [(row["kind"], row["target"], row["count"]) for row in record["denials"]]
        self.assertEqual(rows, [("syscall", "mount", 3), ("syscall", "unshare", 1)])
        self.assertIn("before the program starts", record["denials"][0]["rule"])
        self.assertEqual(self.record("--", "true")["denials"], [])

    def test_said_when_the_program_fails(self):
        ended = self.run_in("--", "unshare", "--mount", "true")
        self.assertEqual(ended.own_lines(), ["belljar: refused unshare: new or other namespaces (no flag allows it in this tier)"])
        code = "import ctypes; ctypes.CDLL(None).unshare(0x20000)"
        self.assertEqual(self.run_in(self.write("copes.py", code)).err, b"")

    def test_a_flood_harms_only_itself(self):
        code = """
import ctypes, sys
libc = ctypes.CDLL(None)
print("begun", flush=True)
while True: libc.syscall(155, 0, 0)
"""
        record = self.record("--timeout", "3s", self.write("flood.py", code))
        self.assertEqual((record["status"], record["stdout"]), ("timeout", "begun\n"))
        self.assertGreater(record["denials"][0]["count"], 1000)
        self.assertLess(record["denials"][0]["count"], 100_000)

    def test_a_program_that_waits_for_an_answer_ends_with_belljar(self):
        code = "import ctypes, time\nlibc = ctypes.CDLL(None, use_errno=True)\nprint('up', flush=True)\n" \
               "while True: libc.mount(b'a', b'/tmp', b'tmpfs', 0, None); time.sleep(0.001)"
        process = self.start("run", self.write("mounts.py", code))
        self.assertEqual(process.stdout.readline(), b"up\n")
        process.kill()
        process.wait()
        self.assertEqual(process.stdout.read(), b"")  # and so its program is gone too
        process.stdout.close()
        process.stderr.close()


@both_callers
class Doctor(Case):
    def test_text(self):
        ended = self.belljar("doctor")
        self.assertEqual((ended.status, ended.err), (0, b""), str(ended))
        self.assertIn("tier container: works", ended.text)
        self.assertRegex(ended.text, r"tier kernel: works .*\n(  .*\n)+?  of the host kernel, the program has these \d\d system calls.*\n(    \w+ +\*? ?\S.*\n)+")
        for line in re.findall(r"^  (?:weaker|missing) .*\n.*\n.*\n", ended.text, re.M):
            self.assertRegex(line, r"why: \S.*\n\s+to get it: \S")

    def test_a_tier_that_does_not_work(self):
        """Its exit status says so; one that is not installed is no fault."""
        folder = self.folder / "install"
        folder.mkdir()
        folder.chmod(0o755)
        for name in ("belljar", "belljar-broker"):
            shutil.copy(shared_folder() / name, folder / name)
        command = self.argv("doctor", "--json")
        command[command.index(str(shared_folder() / "belljar"))] = str(folder / "belljar")
        def examine() -> tuple[int, dict]:
            ended = subprocess.run(command, env=self.environment(), capture_output=True, timeout=100)
            return ended.returncode, {tier["name"]: (tier["installed"], tier["works"]) for tier in json.loads(ended.stdout)["tiers"]}
        status, tiers = examine()
        self.assertEqual((status, tiers["container"], tiers["kernel"]), (0, (True, True), (False, False)))
        (folder / "belljar-ukernel").write_text("no program\n")
        (folder / "belljar-ukernel").chmod(0o755)
        status, tiers = examine()
        self.assertEqual((status, tiers["container"], tiers["kernel"]), (1, (True, True), (True, False)))

    def test_json_agrees_with_a_record(self):
        ended = self.belljar("doctor", "--json")
        self.assertEqual(ended.status, 0, str(ended))
        report = json.loads(ended.out)
        self.assertEqual(report.keys(), {"kernel", "cgroups", "root", "tiers", "hints"})
        self.assertEqual(report["root"], not self.as_user)
        tier = report["tiers"][0]
        self.assertEqual((tier["name"], tier["works"]), ("container", True))
        record = self.record("--", "true")
        no_limit = {"cpu_time", "fuel", "file_size", "read_rate", "write_rate", "net_time"}  # by default: nothing to hold
        for state in ("enforced", "weaker", "missing"):
            walls = {wall["name"] for wall in tier["walls"] if wall["state"] == state}
            self.assertEqual(walls - no_limit, record.walls(state))
        kernel = report["tiers"][1]
        self.assertEqual((kernel["name"], kernel["works"]), ("kernel", True))
        calls = {row["call"] for row in kernel["host_calls"]}
        self.assertTrue({"mmap", "futex", "exit"} <= calls and len(calls) <= 25, calls)
        self.assertTrue(all(row["reason"] and row["rule"].startswith("allow") for row in kernel["host_calls"]))
        record = self.record("--isolation", "kernel", "--", "true")
        for state in ("enforced", "weaker", "missing"):
            walls = {wall["name"] for wall in kernel["walls"] if wall["state"] == state}
            self.assertEqual(walls - no_limit, record.walls(state), state)
        for wall in tier["walls"]:
            self.assertEqual(wall.keys(), {"name", "state", "why", "remedy"})
            if wall["state"] != "enforced":
                self.assertTrue(wall["why"] and wall["remedy"], wall)


@both_callers
class Sweep(Case):
    def test_nothing_to_do(self):
        ended = self.belljar("gc")
        self.assertEqual((ended.status, ended.err), (0, b""), str(ended))
        self.assertRegex(ended.text, r"^removed what \d+ killed runs? left behind\n$")

    def test_what_a_killed_run_left_is_swept_and_running_ones_are_not(self):
        if self.as_user or not IS_ROOT:
            return self.assertEqual(self.belljar("gc").status, 0)
        running = self.start("run", "--", "sh", "-c", "echo up; sleep 2; echo still")
        self.assertEqual(running.stdout.readline(), b"up\n")
        groups = cgroups_of(running.pid)
        if not groups:
            self.not_covered("sweeping of cgroups", "this host has no cgroup that Belljar can write")
        left = os.path.join(os.path.dirname(groups[0]), "4194303-1-0")  # of a process that can't be
        os.mkdir(left)
        ended = self.belljar("gc")
        self.assertFalse(os.path.exists(left), str(ended))
        self.assertEqual(running.communicate(timeout=20)[0], b"still\n")


if __name__ == "__main__":
    main()
