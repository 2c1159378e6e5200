"""ENV-03: while a run with a secret is active, another user of the host looks for it in command lines, titles and files."""

import json
import os
import subprocess

from harness import EscapeTest, callers, main, not_covered

# Everything about processes that anyone may read, and every file that belljar could have written for this run.
SEARCH = """
canary = sys.stdin.buffer.read()
hits, looked_at = [], 0
def look(path):
    global looked_at
    try:
        with open(path, "rb") as file:
            looked_at += 1
            if canary in file.read(1 << 22):
                hits.append(path)
    except OSError:
        pass
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("cmdline", "comm", "environ", "status", "stat", "mountinfo", "cgroup", "maps", "fdinfo/0"):
        look(f"/proc/{pid}/{name}")
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            look(f"/proc/{pid}/task/{task}/comm")
    except OSError:
        pass
for top in ("/run", "/var/log", "/var/cache/belljar", "/var/lib", "/sys/fs/cgroup", "/dev/shm", *sys.argv[1:]):
    for folder, folders, files in os.walk(top):
        if canary.decode() in folder:
            hits.append(folder)
        for file in files:
            if top != "/sys/fs/cgroup":
                look(os.path.join(folder, file))
report(hits=hits, looked_at=looked_at)
"""


class Env03(EscapeTest):
    def search(self, *folders: str) -> dict:
        """As a user who is neither the caller nor root."""
        script = self.script(SEARCH, "search.py")
        argv = ["/usr/bin/python3", script, *folders]
        if os.geteuid() == 0:
            argv = ["setpriv", "--reuid=63999", "--regid=63999", "--clear-groups", "--", *argv]
        run = subprocess.run(argv, input=self.canary.encode(), capture_output=True, timeout=60, check=True)
        return json.loads(run.stdout.decode().splitlines()[-1].removeprefix("findings:"))

    def setUp(self) -> None:
        super().setUp()
        if os.geteuid() != 0:
            not_covered("ENV-03", "needs root to be another user")
            self.skipTest("needs root to be another user")

    def test_positive_control(self) -> None:
        """A secret on a command line is found."""
        process = subprocess.Popen(["sh", "-c", "sleep 60; true", self.canary])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertIn(f"/proc/{process.pid}/cmdline", self.search()["hits"])

    def test_while_a_run_has_a_secret(self) -> None:
        for caller in callers():
            # By name, and with the value on the command line.
            for flag in "TOKEN", f"TOKEN={self.canary}":
                with self.subTest(caller=caller.name, flag=flag.replace(self.canary, "VALUE")):
                    probe = "import time; print('up', flush=True); time.sleep(60)"
                    process = self.start(probe, ["-e", flag], caller, {"TOKEN": self.canary}, stdout=subprocess.PIPE)
                    self.assertEqual(process.stdout.readline(), b"up\n")
                    found = self.search(str(caller.home))
                    self.assertEqual(found["hits"], [])
                    self.assertGreater(found["looked_at"], 20)
                    process.kill()

    def test_error_texts(self) -> None:
        """A refusal repeats the name of what is wrong, not its value."""
        for caller in callers():
            for flags in (["-e", f"BAD NAME={self.canary}"], ["-e", f"={self.canary}"], ["--memory", "0", "-e", f"A={self.canary}"],
                          ["-e", f"A={self.canary}", "--no-such-flag"]):
                with self.subTest(caller=caller.name, flags=flags):
                    result = self.sandbox(["true"], flags, caller)
                    self.assertEqual(result.exit_status, 125)
                    self.assertNotIn(self.canary, str(result))


if __name__ == "__main__":
    main()
