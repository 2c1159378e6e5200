#!/usr/bin/python3
"""Programs that print facts run natively first, then in each tier: the output must be the same. Linux is the oracle.

conformance_test.py FOLDER_WITH_THE_COMPILED_PROGRAMS

The native run has no more rights than a sandbox gives: an ordinary user without groups, no_new_privs, an empty folder on a
tmpfs. A difference is allowed only where ALLOWED names the program, the line and the reason.
"""

import difflib
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))

from harness import IS_ROOT, USER_ID, Case, both_callers, main  # noqa: E402

COMPILED = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else HERE

# Options of `belljar run` for each tier. A new tier is a new row.
TIERS = {"container": ["--isolation", "container"], "kernel": ["--isolation", "kernel"]}

NO_NETWORK = "there are no network sockets yet; the unix_... programs are about the others"

# (tier, program): why it does not run there, and what it says then: when that is no longer so, the row must go.
LEFT_OUT = {
    ("kernel", "sockets"): (NO_NETWORK, r"sockets\.c:[0-9]+: socket\(family, SOCK_STREAM, 0\): EAFNOSUPPORT"),
    ("kernel", "python_network.py"): (NO_NETWORK, r"asyncio\.open_connection\(\*server\.sockets\[0\]"),
}

# (tier, program): further options.
OPTIONS = {
    # The compilers' files are copied into the sandbox's memory. An ordinary caller may have no cgroup to hold it.
    ("kernel", "shell_build.sh"): ["--memory", "1G", "--accept-weaker", "memory"],
}

PROGRAMS = [
    "alarms", "children", "clocks", "descriptors", "devices", "epolls", "event_files", "fifos", "file_ends", "file_mappings", "file_times",
    "files", "folder_watches", "folders", "groups", "handlers", "holes", "identity", "links", "many_processes", "masks",
    "memory", "memory_files", "opening", "passing", "patching", "path_walks", "permissions", "pipes", "polling", "proc_others", "proc_self", "processes",
    "protections", "pseudoterminals", "queues", "record_locks", "rename", "signals", "sockets", "splices", "splicing",
    "starting", "sync_objects", "terminals", "thread_lives", "threads", "unix_datagrams", "unix_sockets", "unix_streams", "usage", "vectors",
    "watches",
    "python_async.py", "python_children.py", "python_files.py", "python_imports.py", "python_network.py", "python_parallel.py", "python_system.py",
    "shell.sh", "shell_build.sh", "shell_files.sh", "shell_git.sh", "shell_jobs.sh", "shell_text.sh",
]

# The same for an ordinary caller only.
LEFT_OUT_AS_USER = {
    ("container", "memory_files"): ("where the caller has no cgroup, memory is sampled, and there are no memory files",
                                    r"memory_files\.c:[0-9]+: memfd_create\(.*\): E"),
}

# (tier, program): {beginning of a line: why it may differ, or be there on one side only}
ALLOWED: dict[tuple[str, str], dict[str, str]] = {
    ("container", "opening"): {
        start: "openat2's flags lie in memory, where the seccomp filter can't check them: ENOSYS, and programs fall back to openat"
        for start in ("beneath:", "in root:", "no links:", "unknown:", "too small:", "mode without O_CREAT:")},
    ("container", "sockets"): {"unknown type:": "the seccomp filter checks the type before the kernel does, and has its own errno"},
    ("container", "splices"): {
        start: "the seccomp filter refuses vmsplice: EPERM" for start in ("vmsplice:", "vmspliced:", "vmsplice to a file:")},
    ("container", "shell_jobs.sh"): {"job:": "a race of the shell's own: a job that is stopped and killed is told of as either"},
    ("kernel", "shell_jobs.sh"): {"job:": "the same race"},
    ("kernel", "file_mappings"): {"what was past the end is zero:": "in the rest of the last page; that of the host depends on its version"},
    ("kernel", "rename"): {"the root:": "it is busy, and here on the same file system"},
    ("kernel", "unix_datagrams"): {"bind twice:": "EINVAL, as for stream sockets"},
    ("kernel", "vectors"): {"write from a hole:": "room is looked for before the bytes are"},
}

# The same for an ordinary caller only.
ALLOWED_AS_USER: dict[tuple[str, str], dict[str, str]] = {
    ("container", "files"): {"chown to root:": "the sandbox has no id but the caller's, so root's is not a number that chown(2) "
                                               "knows there: EINVAL, not EPERM"},
    ("container", "identity"): {
        start: "the sandbox has no id but the caller's, so another is not a number that it knows: EINVAL, not EPERM"
        for start in ("setuid to another:", "setreuid to another:", "setresuid to another:", "setgid to another:")},
    ("container", "passing"): {"another's:": "the sandbox has no id but the caller's: EINVAL, not EPERM"},
    ("container", "memory"): {"memfd": "where the caller has no cgroup, memory is sampled; a memfd that nobody maps shows nowhere, "
                                       "so there are none"},
}


def different_lines(native: str, inside: str, allowed: dict[str, str]) -> list[str]:
    lines = difflib.unified_diff(native.splitlines(), inside.splitlines(), "native", "inside", lineterm="", n=0)
    changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return [line for line in changed if not any(line[1:].startswith(start) for start in allowed)]


@both_callers
class Conformance(Case):
    def argv_of(self, program: str) -> list[str]:
        if program.endswith(".py"):
            return ["/usr/bin/python3", f"/tests/{program}"]
        if program.endswith(".sh"):
            return ["/bin/sh", f"/tests/{program}"]
        return [f"/tests/{program}"]

    def programs_folder(self) -> Path:
        """All programs in one folder."""
        folder = self.folder / "tests"
        folder.mkdir()
        for program in PROGRAMS:
            path = HERE / "programs" / program if "." in program else COMPILED / program
            target = folder / program
            target.write_bytes(path.read_bytes())
            target.chmod(0o755)
        return folder

    def run_natively(self, argv: list[str]) -> str:
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
            confined = ["/usr/bin/setpriv", "--no-new-privs"]
            if IS_ROOT:
                os.chown(folder, USER_ID, USER_ID)
                confined += [f"--reuid={USER_ID}", f"--regid={USER_ID}", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
            environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": folder, "LANG": "C.UTF-8", "TZ": "UTC"}
            ended = subprocess.run([*confined, *argv], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                                   timeout=60, umask=0o022, start_new_session=True)
        self.assertEqual((ended.returncode, ended.stderr), (0, b""), "the native run failed")
        return ended.stdout.decode()

    def is_left_out(self, tier: str, program: str, ended) -> bool:
        row = LEFT_OUT.get((tier, program)) or self.as_user and LEFT_OUT_AS_USER.get((tier, program))
        if not row:
            return False
        why, what_it_says = row
        if not re.search(what_it_says, ended.text + ended.err.decode()):
            # A caller may have more than an ordinary one has.
            self.assertNotIn((tier, program), LEFT_OUT, str(ended))
            return False
        print(f"\nNOT COVERED: {program} in the {tier} tier: {why}", flush=True)
        self.assertEqual(ended.status, 1, str(ended))
        return True

    def check(self, program: str):
        folder = self.programs_folder()
        argv = self.argv_of(program)
        native = self.run_natively([word.replace("/tests/", f"{folder}/") for word in argv])
        self.assertGreater(native.count("\n"), 9)
        for tier, options in TIERS.items():
            ended = self.run_in(*options, *OPTIONS.get((tier, program), []), "-e", "TZ=UTC", "--mount", f"{folder}:/tests",
                                "--timeout", "60s", "--", *argv)
            if self.is_left_out(tier, program, ended):
                continue
            self.assertEqual((ended.status, ended.err), (0, b""), str(ended))
            allowed = dict(ALLOWED.get((tier, program), {}))
            if self.as_user:
                allowed |= ALLOWED_AS_USER.get((tier, program), {})
            self.assertEqual(different_lines(native, ended.text, allowed), [], f"{program} in tier {tier}")

    def test_differences_are_found(self):
        """The comparison itself: a changed, a missing and an added line count, an allowed one does not."""
        self.assertEqual(different_lines("a: 1\nb: 2\n", "a: 1\nb: 3\n", {}), ["-b: 2", "+b: 3"])
        self.assertEqual(different_lines("a: 1\nb: 2\n", "a: 1\n", {}), ["-b: 2"])
        self.assertEqual(different_lines("a: 1\n", "a: 1\nb: 2\n", {"b:": "reason"}), [])
        self.assertEqual(different_lines("a: 1\nb: 2\n", "a: 2\nb: 3\n", {"b:": "reason"}), ["-a: 1", "+a: 2"])


def add_test(program: str):
    setattr(Conformance, f"test_{program.replace('.', '_')}", lambda self: self.check(program))


for each in PROGRAMS:
    add_test(each)


if __name__ == "__main__":
    main()
