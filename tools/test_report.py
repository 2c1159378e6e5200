"""docs/test-report.md: what `./dev test --full` found, a row for each suite, with the commit and day of that suite's run."""

import os
import platform
import re
import subprocess
import time
from dataclasses import dataclass

import steps
from case_counts import Counts

PAGE = steps.TOP / "docs" / "test-report.md"
ROW = re.compile(r"^\| (\S+) \| (.+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\S+) \| (\S+) \|$", re.MULTILINE)
GAP = re.compile(r"^- (\S+): (.+)$", re.MULTILINE)
HEAD = """# Test report

Written by `./dev test --full`; don't edit. `./dev test --full SUITE...` renews the rows of these suites alone, so each row names
the commit and the day of its own run.
"""


@dataclass
class Row:
    what: str
    counts: Counts
    seconds: int
    commit: str
    day: str
    gaps: list[str]


def git(*arguments: str) -> str:
    run = subprocess.run(["git", *arguments], cwd=steps.TOP, capture_output=True, text=True)
    return run.stdout.strip() if run.returncode == 0 else "unknown"


def commit() -> str:
    """The short name of the commit that the tree holds, with a + when files other than the page differ from it."""
    changed = git("status", "--porcelain", "--", ".", ":!docs/test-report.md")
    return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def read(text: str) -> dict[str, Row]:
    """The rows of a page, by suite."""
    rows = {name: Row(what, Counts(int(passed), int(failed), int(skipped)), int(seconds), at, day, [])
            for name, what, passed, failed, skipped, seconds, at, day in ROW.findall(text)}
    for name, gap in GAP.findall(text):
        if name in rows:
            rows[name].gaps.append(gap)
    return rows


def render(rows: dict[str, Row], order: list[str]) -> str:
    """The page: rows in the order of the suites; suites that are gone are left out."""
    kept = [(name, rows[name]) for name in order if name in rows]
    lines = [HEAD, f"Last run on Linux {re.match(r'[0-9.]+', platform.release())[0]}, {os.cpu_count()} processors.", "",
             "| suite | what | passed | failed | skipped | seconds | commit | day |",
             "| --- | --- | ---: | ---: | ---: | ---: | --- | --- |"]
    for name, row in kept:
        c = row.counts
        lines.append(f"| {name} | {row.what} | {c.passed} | {c.failed} | {c.skipped} | {row.seconds} | {row.commit} | {row.day} |")
    lines += ["", str(sum((row.counts for _, row in kept), Counts())), ""]
    gaps = [f"- {name}: {gap}" for name, row in kept for gap in dict.fromkeys(row.gaps)]
    if gaps:
        lines += ["Not covered on the host of these runs:", "", *gaps, ""]
    return "\n".join(lines)


def renew(fresh: dict[str, Row], order: list[str]) -> None:
    """Replaces the rows of `fresh` in the page."""
    rows = read(PAGE.read_text()) if PAGE.exists() else {}
    PAGE.write_text(render(rows | fresh, order))
