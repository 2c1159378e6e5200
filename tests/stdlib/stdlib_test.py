#!/usr/bin/python3
"""The standard library's own tests (Debian's libpython3.11-testsuite) natively and in each tier.

stdlib_test.py                the modules of PART, for every run
stdlib_test.py --full         all modules
stdlib_test.py MODULE...      these

The container tier is measured by a native run as an ordinary user, the kernel tier by the container tier. Each case that passes there
and not here must have a row in the tier's list of exceptions, which says why; the rows may cover at most the tier's share of
the cases. What would wait for ever ("hangs: ...") is not even started.
"""

import argparse
import fnmatch
import os
import shlex
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BELLJAR = os.environ.get("BELLJAR", os.path.join(TOP, "build/release/src/cli/belljar"))
SUITE = "/usr/lib/python3.11/test"


@dataclass
class Tier:
    measured_by: str
    exceptions: str
    share_max: float  # of the cases that exceptions may cover


TIERS = {"container": Tier("native", "exceptions.txt", 0.02), "kernel": Tier("container", "exceptions_kernel.txt", 0.05)}

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
    """Case -> passed, failed or skipped, of a JUnit file. None where the run broke off before it wrote one."""
    found = {}
    try:
        cases = ElementTree.parse(path).iter("testcase")
    except ElementTree.ParseError as error:
        print(f"{os.path.basename(path)}: no report: {error}")
        return found
    for case in cases:
        name = f"{case.get('classname')}.{case.get('name')}".strip(".")
        kinds = {child.tag for child in case}
        found[name] = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
    return found


def python(report: str, names: list[str], ignored: tuple[str, ...] | list[str] = ()) -> list[str]:
    ignore = [word for pattern in ignored for word in ("--ignore", pattern)]
    return ["/usr/bin/python3", "-m", "test", "-j2", "--timeout", "240", *ignore, "--junit-xml", report, *names]


def run_native(folder: str, names: list[str]) -> dict[str, str]:
    report = os.path.join(folder, "native.xml")
    os.chown(folder, NATIVE_UID, NATIVE_UID)
    command = ["setpriv", f"--reuid={NATIVE_UID}", f"--regid={NATIVE_UID}", "--clear-groups", "--inh-caps=-all", "env", "-i",
               f"HOME={folder}", f"TMPDIR={folder}", "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "TZ=UTC", *python(report, names)]
    run(command, os.path.join(folder, "native.log"), cwd=folder)
    return results(report)


def run_inside(tier: str, folder: str, names: list[str]) -> dict[str, str]:
    report = os.path.join(folder, f"{tier}.xml")
    # The report comes out by stdout: that is there in every tier.
    hanging = [pattern for pattern, reason in read_exceptions(TIERS[tier].exceptions) if reason.startswith("hangs:")]
    script = f"{shlex.join(python('/tmp/inside.xml', names, hanging))} >&2; cat /tmp/inside.xml"
    command = [BELLJAR, "run", "--isolation", tier, "--memory", "2G", "--cpus", "2", "--tasks", "1024", "--timeout", "2h",
               "--tmp-size", "1G", "--open-files", "1024", "--output-limit", "100M", "-e", "TZ=UTC", "--", "sh", "-c", script]
    run(command, os.path.join(folder, f"{tier}.log"), cwd=folder, out=report)
    return results(report)


def run(command: list[str], log: str, cwd: str, out: str | None = None) -> None:
    with open(log, "w") as output, open(out or os.devnull, "w") as report:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=report if out else output, stderr=output, cwd=cwd)


def read_exceptions(name: str) -> list[tuple[str, str]]:
    rows = []
    with open(os.path.join(HERE, name)) as file:
        for number, line in enumerate(file, 1):
            if not line.strip() or line.startswith("#"):
                continue
            pattern, _, reason = line.strip().partition("  ")
            if not reason.strip():
                sys.exit(f"{name}:{number}: a row is a case or a pattern, two spaces, and the reason")
            rows.append((pattern, reason.strip()))
    return rows


def module_of(case: str) -> str:
    """test.test_os.Class.test -> test_os; test_json.x -> test_json."""
    return next(part for part in case.split(".") if part.startswith("test_"))


def reason_for(case: str, exceptions: list[tuple[str, str]]) -> str | None:
    return next((reason for pattern, reason in exceptions if fnmatch.fnmatchcase(case, pattern)), None)


def compare(names: list[str]) -> dict[str, tuple[int, set[str]]]:
    """Of each tier: the number of cases that pass where it is measured by, and those of them that don't here."""
    with tempfile.TemporaryDirectory(prefix="stdlib-") as folder:
        os.chmod(folder, 0o755)
        found = {"native": run_native(folder, names)}
        for tier in TIERS:
            found[tier] = run_inside(tier, folder, names)
    compared = {}
    for name, tier in TIERS.items():
        passing = {case for case, result in found[tier.measured_by].items() if result == "passed"}
        compared[name] = len(passing), {case for case in passing if found[name].get(case) != "passed"}
    return compared


def judge(name: str, total: int, different: set[str]) -> int:
    """Prints what differs in a tier; returns the number of failures."""
    tier = TIERS[name]
    exceptions = read_exceptions(tier.exceptions)
    failures = explained = 0
    for case in sorted(different):
        reason = reason_for(case, exceptions)
        print(f"{name} tier: {'differs: ' + reason if reason else 'FAILED'}: {case}")
        if reason is None:
            failures += 1
        else:
            explained += 1
    if explained > total * tier.share_max:
        print(f"{name} tier: FAILED: {explained} exceptions are more than {tier.share_max:.0%} of {total} cases")
        failures += 1
    print(f"{name} tier: of {total} cases that pass in the {tier.measured_by} run {explained} differ for a stated reason")
    return failures if total > 0 else 1


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    parser.add_argument("modules", nargs="*")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("NOT COVERED: the standard library's tests: they are compared with an ordinary user's run, which takes root to start")
        return 1
    names = arguments.modules or modules(arguments.full)
    compared = compare(names)
    again = sorted({module_of(case) for _, different in compared.values() for case in different})
    if again:
        # Some cases depend on timing: what differs must differ twice.
        second = compare(again)
        compared = {tier: (total, different & second[tier][1]) for tier, (total, different) in compared.items()}
    failures = sum(judge(tier, total, different) for tier, (total, different) in compared.items())
    passed = sum(total - len(different) for total, different in compared.values())
    print(f"{len(names)} modules")
    print(f"{passed} passed, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
