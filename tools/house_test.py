#!/usr/bin/python3
"""Self-tests of the tools in tools/: a check that could not fail would check nothing."""

import contextlib
import importlib.machinery
import importlib.util
import io
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
TOOLS = Path(__file__).resolve().parent
sys.path.insert(0, str(TOOLS))
import test_report  # noqa: E402
from case_counts import Counts, count_cases, not_covered  # noqa: E402


def load(name: str):
    """A program of tools/ as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(TOOLS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module
    loader.exec_module(module)
    return module


class Layers(unittest.TestCase):
    floors = {"base": 0, "spec": 2, "cgroup": 2, "belljar": 5, "supervisor": 5, "cli": 8}

    def faults(self, files):
        return load("check_layers").check(files, self.floors)

    def test_lower_and_own_floor_are_allowed(self):
        self.assertEqual(self.faults({
            "cli/main.cc": '#include "spec/spec.h"\n#include "cli/options.h"\n#include <vector>\n',
            "cgroup/cgroup.h": '#include "spec/limits.h"\n',
        }), [])

    def test_higher_floor_is_refused(self):
        self.assertIn("above spec", self.faults({"spec/spec.cc": '#include "cli/options.h"\n'})[0])

    def test_spaces_do_not_hide_an_include(self):
        self.assertEqual(len(self.faults({"spec/spec.cc": '  #  include   "cli/options.h"\n'})), 1)

    def test_unknown_folder_is_refused(self):
        self.assertIn("no floor", self.faults({"shed/a.cc": ""})[0])
        self.assertIn("no floor", self.faults({"base/a.cc": '#include "shed/a.h"\n'})[0])

    def test_include_without_folder_is_refused(self):
        self.assertIn("with its folder", self.faults({"base/a.cc": '#include "fd.h"\n'})[0])

    def test_public_header_is_for_upper_floors(self):
        self.assertEqual(self.faults({"supervisor/a.cc": '#include "belljar/belljar.h"\n'}), [])
        self.assertEqual(len(self.faults({"base/a.cc": '#include "belljar/belljar.h"\n'})), 1)
        self.assertEqual(len(self.faults({"belljar/belljar.h": '#include "cli/options.h"\n'})), 1)

    def test_circle_on_one_floor_is_refused(self):
        self.assertIn("circle", self.faults({
            "spec/a.h": '#include "cgroup/b.h"\n',
            "cgroup/b.h": '#include "spec/a.h"\n',
        })[0])

    def test_floors_file_is_read(self):
        floors = load("check_layers").read_floors((TOOLS / "layers.txt").read_text())
        self.assertEqual(floors["base"], 0)
        self.assertGreater(floors["cli"], floors["supervisor"])


class CaseCounts(unittest.TestCase):
    def test_plain_line(self):
        self.assertEqual(count_cases("x\n3 passed, 0 failed\n", ok=True), Counts(3, 0, 0))
        self.assertEqual(count_cases("3 passed, 2 failed, 1 skipped\n", ok=False), Counts(3, 2, 1))

    def test_last_plain_line_counts(self):
        self.assertEqual(count_cases("1 passed, 0 failed\n5 passed, 0 failed\n", ok=True), Counts(5, 0, 0))

    def test_googletest(self):
        passed = "[==========] 4 tests from 1 test suite ran. (0 ms total)\n[  PASSED  ] 4 tests.\n"
        self.assertEqual(count_cases(passed, ok=True), Counts(4, 0, 0))
        mixed = ("[  PASSED  ] 1 test.\n[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.B\n"
                 "[  FAILED  ] 2 tests, listed below:\n[  FAILED  ] A.C\n[  FAILED  ] A.D\n")
        self.assertEqual(count_cases(mixed, ok=False), Counts(1, 2, 1))

    def test_unittest(self):
        self.assertEqual(count_cases("Ran 7 tests in 0.1s\n\nOK (skipped=2)\n", ok=True), Counts(5, 0, 2))
        self.assertEqual(count_cases("Ran 7 tests in 0.1s\n\nFAILED (failures=1, errors=2, skipped=3)\n", ok=False),
                         Counts(1, 3, 3))

    def test_silent_program_is_one_case(self):
        self.assertEqual(count_cases("", ok=True), Counts(1, 0, 0))
        self.assertEqual(count_cases("", ok=False), Counts(0, 1, 0))

    def test_crash_after_passing_counts_as_failed(self):
        self.assertEqual(count_cases("3 passed, 0 failed\n", ok=False), Counts(3, 1, 0))
        self.assertEqual(count_cases("[  PASSED  ] 4 tests.\nSegmentation fault\n", ok=False), Counts(4, 1, 0))

    def test_no_case_at_all_is_a_failure(self):
        self.assertEqual(count_cases("0 passed, 0 failed\n", ok=True), Counts(0, 1, 0))
        self.assertEqual(count_cases("[  PASSED  ] 0 tests.\n", ok=True), Counts(0, 1, 0))

    def test_summary_line_form(self):
        self.assertEqual(str(Counts(12, 0, 0)), "12 passed, 0 failed")
        self.assertEqual(str(Counts(12, 1, 3)), "12 passed, 1 failed, 3 skipped")

    def test_not_covered(self):
        self.assertEqual(not_covered("a\nNOT COVERED: swap: this host has none\n"), ["swap: this host has none"])


class TestReport(unittest.TestCase):
    ORDER = ["build", "unit"]

    def row(self, passed: int, commit: str, gaps: list[str]) -> test_report.Row:
        return test_report.Row("what it tests", Counts(passed, 0, len(gaps)), 7, commit, "2026-01-02", gaps)

    def test_a_page_is_read_as_it_was_written(self):
        rows = {"build": self.row(1, "abc", []), "unit": self.row(9, "abc+", ["swap: none here", "ports: none"])}
        self.assertEqual(test_report.read(test_report.render(rows, self.ORDER)), rows)

    def test_rows_add_up_and_old_suites_go(self):
        page = test_report.render({"unit": self.row(9, "abc", []), "gone": self.row(5, "abc", [])}, self.ORDER)
        self.assertIn("\n9 passed, 0 failed\n", page)
        self.assertNotIn("gone", page)


class Steps(unittest.TestCase):
    def run_step(self, command: str, **options):
        script = (f"import steps, sys; r = steps.run_step('probe', ['sh', '-c', {command!r}], **{options!r});"
                  "sys.exit(0 if r.ok else 9)")
        return subprocess.run([sys.executable, "-B", "-c", script], cwd=TOOLS, capture_output=True, text=True)

    def test_success_and_failure(self):
        self.assertEqual(self.run_step("true").returncode, 0)
        failed = self.run_step("echo the reason; exit 3")
        self.assertEqual(failed.returncode, 9)
        self.assertIn("| the reason", failed.stdout)

    def test_timeout_kills(self):
        slow = self.run_step("sleep 60", timeout_s=1)
        self.assertEqual(slow.returncode, 9)
        self.assertIn("killed after 1 s", slow.stdout)


class Docs(unittest.TestCase):
    page = """text
```console
$ not tested
```
```console tested
$ echo one
one
$ printf 'a\\nb\\n'; exit 3   # exits 3
a
...
$ cat <<END
> two
> END
two
```
"""

    def fault(self, command):
        docs = load("check_docs")
        return docs.run_command(docs.read_commands(f"```console tested\n{command}\n```\n")[0], TOOLS, {})

    def test_commands_are_read(self):
        commands = load("check_docs").read_commands(self.page)
        self.assertEqual([c.status for c in commands], [0, 3, 0])
        self.assertEqual(commands[1].output, ["a", "..."])
        self.assertEqual(commands[2].text, "cat <<END\ntwo\nEND")

    def test_true_commands_pass(self):
        docs = load("check_docs")
        self.assertEqual([docs.run_command(c, TOOLS, {}) for c in docs.read_commands(self.page)], [None] * 3)

    def test_wrong_status_is_seen(self):
        self.assertIn("exited with 1, not 0", self.fault("$ exit 1"))
        self.assertIn("exited with 0, not 4", self.fault("$ exit 0  # exits 4"))

    def test_missing_output_is_seen(self):
        self.assertIn("lacks the line 'two'", self.fault("$ echo one\ntwo"))
        self.assertIn("lacks the line 'a'", self.fault("$ echo b; echo a; echo b\nb\nb\na"))
        self.assertIsNone(self.fault("$ echo took 31 ms\ntook ... ms"))

    def test_every_wall_and_limit_stands_in_the_page_of_walls(self):
        page = (TOOLS.parent / "docs" / "container-tier.md").read_text()
        for table, row in (("walls.def", r"^WALL\((\w+)"), ("limits.def", r"^LIMIT\((\w+)")):
            names = re.findall(row, (TOOLS.parent / "src" / "spec" / table).read_text(), re.MULTILINE)
            self.assertGreater(len(names), 5)
            self.assertEqual([name for name in names if f"`{name}`" not in page], [])

    def test_broken_link_is_seen(self):
        text = "[a](house_test.py) [b](gone.md#part) [c](https://example.org) [d](#here)"
        self.assertEqual(load("check_docs").bad_links(TOOLS / "x.md", text), (2, ["gone.md"]))


class Dev(unittest.TestCase):
    def test_unknown_command_is_refused(self):
        run = subprocess.run([TOOLS.parent / "dev", "frobnicate"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn("./dev help", run.stderr)

    def test_help_names_every_command(self):
        run = subprocess.run([TOOLS.parent / "dev", "help"], capture_output=True, text=True)
        for command in ("demo", "test", "bench", "fuzz", "format", "setup"):
            self.assertIn(f"  {command}", run.stdout)

    def test_every_package_says_why(self):
        for line in (TOOLS / "packages.txt").read_text().splitlines():
            if line and not line.startswith("#"):
                self.assertRegex(line, r"^[a-z0-9.+-]+ +# \S", line)

    def test_format_check_sees_a_misplaced_brace(self):
        check = load("check_format")
        with tempfile.TemporaryDirectory() as folder:
            bad = Path(folder) / "a.cc"
            bad.write_text("int  f( ){return 1 ;}\n")
            check.steps.source_files = lambda *a, **k: [bad]
            check.steps.TOP = Path(folder)
            sys.argv = ["check_format"]
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(check.main(), 1)


if __name__ == "__main__":
    unittest.main()
