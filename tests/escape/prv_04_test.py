"""PRV-04: every way in is hardened alike: scripts of each kind, commands, shells, policies, mounts, closed streams, children."""

import json
import os
import subprocess

from harness import EscapeTest, callers, main

LINES = ["NoNewPrivs:", "Seccomp:", "Seccomp_filters:", "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:", "Uid:", "Gid:", "Groups:",
         "NSpid:", "SigIgn:", "SigBlk:", "Umask:"]

GOLDEN = {
    "NoNewPrivs:": "1", "Seccomp:": "2", "Seccomp_filters:": "1", "CapInh:": "0000000000000000", "CapPrm:": "0000000000000000",
    "CapEff:": "0000000000000000", "CapBnd:": "0000000000000000", "CapAmb:": "0000000000000000", "Uid:": "1000 1000 1000 1000",
    "Gid:": "1000 1000 1000 1000", "Groups:": "", "SigIgn:": "0000000000000000", "SigBlk:": "0000000000000000", "Umask:": "0022",
}


def golden(caller) -> dict[str, str]:
    """A user's memory is sampled where no cgroup is delegated, as in these tests: one filter more, which refuses memfd_create."""
    return GOLDEN | {"Seccomp_filters:": "1" if caller.uid == 0 else "2"}


# Of every limit: what prlimit shows; of namespaces: the kernel's numbers.
SHOW = "cat /proc/self/status; echo limits; cat /proc/self/limits; echo map; cat /proc/self/uid_map; for n in /proc/self/ns/*; do readlink $n; done"

PYTHON_SCRIPT = f"import subprocess\nsubprocess.run(['sh', '-c', {SHOW!r}])\n"
PERL_SCRIPT = f"system('sh', '-c', q({SHOW}));\n"
NODE_SCRIPT = f"require('child_process').execSync({json.dumps(SHOW)}, {{stdio: 'inherit'}});\n"


def lines_of(text: str) -> dict[str, str]:
    found = {line.split()[0]: " ".join(line.split()[1:]) for line in text.splitlines() if line.split()[:1] and line.split()[0] in LINES}
    found.pop("NSpid:", None)
    return found


def namespaces_of(text: str) -> set[str]:
    return {line for line in text.splitlines() if line.endswith("]") and ":[" in line}


class Prv04(EscapeTest):
    def entries(self, caller) -> dict[str, list[str]]:
        """Each way to start a program, as the arguments of belljar run."""
        def script(name: str, text: str) -> str:
            return self.script(text, f"{caller}-{name}", tools="")
        work = self.host_folder(f"work-{caller}", caller)
        policy = script("policy.toml", 'workdir = "/usr"\n[limits]\ntimeout = "20s"\n')
        return {
            "command": ["--", "sh", "-c", SHOW],
            "absolute command": ["--", "/bin/sh", "-c", SHOW],
            "python script": [script("a.py", PYTHON_SCRIPT)],
            "shell script": [script("a.sh", SHOW)],
            "perl script": [script("a.pl", PERL_SCRIPT)],
            "node script": [*(["--memory", "1G"] if caller.uid == 0 else []), script("a.js", NODE_SCRIPT)],
            "#! script": [script("plain", f"#!/bin/sh\n{SHOW}\n")],
            "mounted folder": ["--mount", f"{work}:/work:rw", "--workdir", "/work", "--", "sh", "-c", SHOW],
            "variables": ["-e", "A=B", "--", "sh", "-c", SHOW],
            "policy": ["--policy", policy, "--", "sh", "-c", SHOW],
            "json": ["--json", "--", "sh", "-c", SHOW],
            "grandchild in a session of its own": ["--", "sh", "-c", f"setsid sh -c '(sh -c \"{SHOW}\")'".replace("$n", "\\$n")],
        }

    def test_all_alike(self) -> None:
        for caller in callers():
            for name, arguments in self.entries(caller).items():
                with self.subTest(caller=caller.name, entry=name):
                    run = caller.run([caller.belljar, "run", *arguments])
                    self.assertEqual(run.returncode, 0, run)
                    text = run.stdout.decode()
                    if name == "json":
                        text = json.loads(text)["stdout"]
                    self.assertEqual(lines_of(text), golden(caller))
                    self.assertIn("Max core file size", text)

    def test_with_closed_streams(self) -> None:
        for caller in callers():
            shell = f'exec "$0" "$@" {{}}'
            for closed in "<&-", "2>&-", "<&- 2>&-":
                with self.subTest(caller=caller.name, closed=closed):
                    argv = ["sh", "-c", shell.format(closed), caller.belljar, "run", "--", "sh", "-c", SHOW]
                    self.assertEqual(lines_of(caller.run(argv).stdout.decode()), golden(caller))

    def test_under_a_caller_with_odd_settings(self) -> None:
        """Ignored and blocked signals, a mask of 0, and high limits are not passed on."""
        for caller in callers():
            odd = ("import os, resource, signal, sys\nos.umask(0)\nsignal.signal(signal.SIGPIPE, signal.SIG_IGN)\n"
                   "signal.signal(signal.SIGUSR1, signal.SIG_IGN)\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGCHLD})\n"
                   "os.execv(sys.argv[1], sys.argv[1:])\n")
            run = caller.run(["/usr/bin/python3", "-c", odd, caller.belljar, "run", "--", "sh", "-c", SHOW])
            self.assertEqual(lines_of(run.stdout.decode()), golden(caller))

    def test_namespaces_are_its_own(self) -> None:
        """None of the host's, and none of another sandbox's. The positive control is the host: it shares all with itself."""
        host = namespaces_of(subprocess.run(["sh", "-c", SHOW], capture_output=True, text=True).stdout)
        again = namespaces_of(subprocess.run(["sh", "-c", SHOW], capture_output=True, text=True).stdout)
        self.assertEqual(host, again)
        for caller in callers():
            first, second = (namespaces_of(self.sandbox(["sh", "-c", SHOW], caller=caller).stdout) for _ in range(2))
            shared_with_host = {entry.split(":")[0] for entry in first & host}
            self.assertLessEqual(shared_with_host, {"time", "time_for_children"} | (set() if caller.uid == 0 else {"cgroup"}))
            self.assertGreaterEqual(len(first), 8)
            if os.geteuid() == 0 and caller.uid == 0:
                # Started at the same time, none is shared either.
                peer = self.start(["sh", "-c", SHOW + "; echo end; sleep 60"], stdout=subprocess.PIPE)
                lines = []
                while not lines or lines[-1] != b"end\n":
                    lines.append(peer.stdout.readline())
                live = namespaces_of(b"".join(lines).decode())
                third = namespaces_of(self.sandbox(["sh", "-c", SHOW], caller=caller).stdout)
                self.assertLessEqual({entry.split(":")[0] for entry in live & third}, {"time", "time_for_children"})


if __name__ == "__main__":
    main()
