"""How many test cases a test program reports, in the forms that our tests use."""

import re
from dataclasses import dataclass


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        text = f"{self.passed} passed, {self.failed} failed"
        return text + (f", {self.skipped} skipped" if self.skipped else "")


PLAIN = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.MULTILINE)
GTEST = {name: re.compile(rf"^\[  {name:<6}\s*\] (\d+) tests?[.,]", re.MULTILINE) for name in ("PASSED", "FAILED", "SKIPPED")}
UNITTEST = re.compile(r"^Ran (\d+) tests? in .*\n\n(OK|FAILED)(?: \((.*)\))?", re.MULTILINE)
NOT_COVERED = re.compile(r"^\s*NOT COVERED: (.+)$", re.MULTILINE)


def _gtest(output: str) -> Counts | None:
    if not GTEST["PASSED"].search(output):
        return None
    number = {name: sum(int(n) for n in pattern.findall(output)) for name, pattern in GTEST.items()}
    return Counts(number["PASSED"], number["FAILED"], number["SKIPPED"])


def _unittest(output: str) -> Counts | None:
    match = UNITTEST.search(output)
    if not match:
        return None
    detail = {key.strip(): int(value) for key, value in re.findall(r"([a-z ]+)=(\d+)", match[3] or "")}
    failed = detail.get("failures", 0) + detail.get("errors", 0) + detail.get("unexpected successes", 0)
    skipped = detail.get("skipped", 0)
    return Counts(int(match[1]) - failed - skipped, failed, skipped)


def count_cases(output: str, ok: bool) -> Counts:
    """The cases in a test program's output: its last line "N passed, N failed[, N skipped]", or what GoogleTest or
    Python's unittest say; one case where it says nothing. A program that failed counts at least one failed case, and so
    does one that says that it ran no case at all."""
    plain = PLAIN.findall(output)
    if plain:
        counts = Counts(*(int(n or 0) for n in plain[-1]))
    else:
        counts = _gtest(output) or _unittest(output) or Counts(passed=1 if ok else 0)
    if counts.failed == 0 and (not ok or counts.passed + counts.skipped == 0):
        counts.failed = 1
    return counts


def not_covered(output: str) -> list[str]:
    """What a test says that it can't cover on this host."""
    return NOT_COVERED.findall(output)
