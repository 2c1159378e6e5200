#!/usr/bin/python3
"""The standard library's own tests (Debian's libpython3.11-testsuite): what passes natively passes inside.

stdlib_test.py          the modules of PART, for every run
stdlib_test.py --full   all modules

Each case that passes natively as an ordinary user and does not pass inside must have a row in exceptions.txt, which names the
wall and the denied call; the rows may cover at most 2 % of the cases.
"""

import argparse
import fnmatch
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BELLJAR = os.environ.get("BELLJAR", os.path.join(TOP, "build/release/src/cli/belljar"))
SUITE = "/usr/lib/python3.11/test"
EXCEPTION_SHARE_MAX = 0.02

# What a sandbox is most likely to break: files, processes, threads, sockets, memory, time.
PART = """test_os test_posix test_posixpath test_shutil test_tempfile test_glob test_pathlib test_fileio test_io test_mmap
test_subprocess test_signal test_threading test_thread test_queue test_selectors test_select test_poll test_epoll test_pipes
test_pty test_fcntl test_resource test_time test_zoneinfo test_locale test_json test_sqlite3 test_zipfile
test_socketpair test_asyncore test_socketserver test_dbm test_pwd test_grp test_uuid test_random test_hashlib""".split()

NATIVE_UID = 65533  # an ordinary user, as the sandbox's is


def modules(full: bool) -> list[str]:
    names = sorted({name.removesuffix(".py") for name in os.listdir(SUITE) if name.startswith("test_")})
    return names if full else [name for name in PART if name in names]


def results(path: str) -> dict[str, str]:
    """Case -> passed, failed or skipped, of a JUnit file."""
    found = {}
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}".strip(".")
        kinds = {child.tag for child in case}
        found[name] = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
    return found


def python(report: str, names: list[str]) -> list[str]:
    return ["/usr/bin/python3", "-m", "test", "-j2", "--timeout", "240", "--junit-xml", report, *names]


def run_native(folder: str, names: list[str]) -> dict[str, str]:
    report = os.path.join(folder, "native.xml")
    os.chown(folder, NATIVE_UID, NATIVE_UID)
    command = ["setpriv", f"--reuid={NATIVE_UID}", f"--regid={NATIVE_UID}", "--clear-groups", "--inh-caps=-all", "env", "-i",
               f"HOME={folder}", f"TMPDIR={folder}", "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "TZ=UTC", *python(report, names)]
    run(command, os.path.join(folder, "native.log"), cwd=folder)
    return results(report)


def run_inside(folder: str, names: list[str]) -> dict[str, str]:
    os.chown(folder, os.geteuid(), os.getegid())
    command = [BELLJAR, "run", "--memory", "2G", "--cpus", "2", "--tasks", "1024", "--timeout", "2h", "--tmp-size", "1G",
               "--open-files", "1024", "--output-limit", "100M", "-e", "TZ=UTC", "--mount", f"{folder}:/out:rw", "--",
               *python("/out/inside.xml", names)]
    run(command, os.path.join(folder, "inside.log"), cwd=folder)
    return results(os.path.join(folder, "inside.xml"))


def run(command: list[str], log: str, cwd: str) -> None:
    with open(log, "w") as output:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=cwd)


def read_exceptions() -> list[tuple[str, str]]:
    rows = []
    with open(os.path.join(HERE, "exceptions.txt")) as file:
        for number, line in enumerate(file, 1):
            if not line.strip() or line.startswith("#"):
                continue
            pattern, _, reason = line.strip().partition("  ")
            if not reason.strip():
                sys.exit(f"exceptions.txt:{number}: a row is a case or a pattern, two spaces, and the wall with the denied call")
            rows.append((pattern, reason.strip()))
    return rows


def module_of(case: str) -> str:
    """test.test_os.Class.test -> test_os; test_json.x -> test_json."""
    return next(part for part in case.split(".") if part.startswith("test_"))


def compare(names: list[str]) -> tuple[int, list[str]]:
    """The number of cases that pass natively, and those of them that don't inside."""
    with tempfile.TemporaryDirectory(prefix="stdlib-") as folder:
        os.chmod(folder, 0o755)
        native = run_native(folder, names)
        inside = run_inside(folder, names)
    passing = [case for case, result in native.items() if result == "passed"]
    return len(passing), [case for case in passing if inside.get(case) != "passed"]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    parser.add_argument("modules", nargs="*")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("NOT COVERED: the standard library's tests: they are compared with an ordinary user's run, which takes root to start")
        return 1
    names = arguments.modules or modules(arguments.full)
    total, different = compare(names)
    if different:
        # Some cases depend on timing: what differs must differ twice.
        again = sorted({module_of(case) for case in different})
        _, second = compare(again)
        different = sorted(set(different) & set(second))
    exceptions = read_exceptions()
    unexplained = []
    for case in different:
        reason = next((reason for pattern, reason in exceptions if fnmatch.fnmatchcase(case, pattern)), None)
        print(f"{'differs: ' + reason if reason else 'FAILED'}: {case}")
        if reason is None:
            unexplained.append(case)
    explained = len(different) - len(unexplained)
    if explained > total * EXCEPTION_SHARE_MAX:
        print(f"FAILED: {explained} exceptions are more than 2 % of {total} cases")
        unexplained.append("exceptions")
    print(f"{len(names)} modules: of {total} cases that pass natively {explained} differ inside for a stated reason")
    print(f"{total - len(different)} passed, {len(unexplained)} failed")
    return 1 if unexplained or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
