"""HF-02: a working folder that leads out of the root: /proc/self/fd/N of a descriptor left open, /proc/*/cwd, links to them."""

import os
import subprocess

from harness import PYTHON, EscapeTest, callers, descendants, main

# Where the program stands, and whether it can climb from there to a file of the host.
PROBE = """
path = sys.argv[1].lstrip("/")
climbs = [os.path.join(*[".."] * depth, path) if depth else path for depth in range(12)]
report(cwd=os.readlink("/proc/self/cwd"), found=[climb for climb in climbs if os.path.exists(climb)])
"""


class Hf02(EscapeTest):
    def setUp(self) -> None:
        super().setUp()
        self.secret = self.host_file(self.canary)
        self.root = os.open("/", os.O_PATH | os.O_DIRECTORY)
        self.addCleanup(os.close, self.root)
        # Belljar is called with every one of these open at the host's root.
        self.numbers = []
        for number in range(3, 31):
            try:
                os.fstat(number)
            except OSError:
                os.dup2(self.root, number)
                self.addCleanup(os.close, number)
            if os.path.samestat(os.fstat(number), os.stat("/")):
                self.numbers.append(number)

    def assert_confined(self, result, workdir: str) -> None:
        if result.record["error"]:
            self.assertEqual((result.exit_status, result.status), (125, "denied"), workdir)
            return
        self.assertEqual(result.findings["found"], [], f"{workdir}: reached the host from {result.findings['cwd']}")
        self.assertFalse(result.findings["cwd"].startswith("(unreachable)"), workdir)

    def test_positive_control(self) -> None:
        """A program that does stand in an inherited folder of the host finds the file."""
        for caller in callers():
            argv = ["sh", "-c", f'cd /proc/self/fd/{self.numbers[0]} && exec "$@"', "sh", PYTHON, self.script(PROBE), self.secret]
            found = self.native(argv, caller=caller, pass_fds=self.numbers).findings["found"]
            self.assertIn(self.secret.lstrip("/"), found)

    def test_proc_paths(self) -> None:
        paths = [f"/proc/self/fd/{number}" for number in self.numbers]
        paths += ["/proc/self/cwd", "/proc/self/cwd/../..", "/proc/1/cwd", "/proc/self/root", "/proc/1/root/tmp",
                  "/proc/thread-self/cwd", "/dev/fd/5", "/tmp/../../..", "/../../" + str(self.folder)]
        self.assertGreater(len(self.numbers), 20)
        for caller in callers():
            for workdir in paths:
                with self.subTest(caller=caller.name, workdir=workdir):
                    result = self.sandbox(PROBE, ["--workdir", workdir], caller, arguments=[self.secret], pass_fds=self.numbers)
                    self.assert_confined(result, workdir)

    def test_links_in_a_mounted_folder(self) -> None:
        """An earlier run may have left such a link in a folder that is mounted again."""
        for caller in callers():
            data = self.host_folder(f"data-{caller}", caller)
            for name, target in {"fd": f"/proc/self/fd/{self.numbers[4]}", "cwd": "/proc/self/cwd/../..", "up": "../../../..",
                                 "init": "/proc/1/root", "host": str(self.folder)}.items():
                (data / name).symlink_to(target)
                with self.subTest(caller=caller.name, link=name):
                    flags = ["--mount", f"{data}:/data:ro", "--workdir", f"/data/{name}"]
                    result = self.sandbox(PROBE, flags, caller, arguments=[self.secret], pass_fds=self.numbers)
                    self.assert_confined(result, name)

    def test_ordinary_working_folders(self) -> None:
        for caller in callers():
            data = self.host_folder(f"data-{caller}", caller)
            for flags, expected in ([], "/tmp/home"), (["--workdir", "/usr/lib"], "/usr/lib"), (["--workdir", "/data"], "/data"):
                with self.subTest(caller=caller.name, workdir=expected):
                    result = self.sandbox(PROBE, ["--mount", f"{data}:/data", *flags], caller, arguments=[self.secret])
                    self.assertEqual(result.findings["cwd"], expected)

    def test_seen_from_the_host(self) -> None:
        """The kernel says the same: the running program's root and working folder are the sandbox's."""
        if os.geteuid() != 0:
            self.skipTest("only root may look")
        process = self.start(["sleep", "60"], ["--workdir", "/usr"], stdout=subprocess.DEVNULL)
        sleeper = self.wait_for(lambda: [pid for pid in descendants(process.pid) if self.name_of(pid) == "sleep"], "sleep")[0]
        self.assertEqual(os.readlink(f"/proc/{sleeper}/cwd"), "/usr")
        self.assertFalse(os.path.exists(f"/proc/{sleeper}/root{self.secret}"))
        self.assertFalse(os.path.samestat(os.stat(f"/proc/{sleeper}/root"), os.stat("/")))

    @staticmethod
    def name_of(pid: int) -> str:
        try:
            with open(f"/proc/{pid}/comm") as file:
                return file.read().strip()
        except OSError:
            return ""


if __name__ == "__main__":
    main()
