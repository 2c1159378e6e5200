"""System calls that must be refused, as a table, and the tests that go through it (krn_04_test.py, krn_05_test.py)."""

import errno
import json
from dataclasses import dataclass, field

from harness import callers, not_covered, root

PROBE = """
rows = json.loads(sys.stdin.read())
report(answers=[syscall(number, *arguments) for number, arguments in rows])
"""

ANY = "any"


@dataclass
class Row:
    """A call with arguments that are wrong or do nothing, so that it is harmless should it get through. The wall answers
    `refusal`; the kernel itself answers something else, which is the positive control, unless `native` is None: then no
    kernel tells its answer from the wall's, or the call would do harm."""

    name: str
    number: int
    arguments: list[int] = field(default_factory=list)
    refusal: int = errno.EPERM
    native: str | None = ANY


class Refusals:
    """Mixed into an EscapeTest that has `rows`."""

    rows: list[Row] = []

    def answers(self, run, rows: list[Row]) -> list[str]:
        return run(json.dumps([[row.number, row.arguments] for row in rows]).encode()).findings["answers"]

    def test_positive_control(self) -> None:
        """The kernel gets as far as the arguments for root, so it is not the kernel that refuses inside."""
        caller = root()
        if caller is None:
            return
        rows = [row for row in self.rows if row.native is not None]
        answers = self.answers(lambda text: self.native(PROBE, caller, input=text), rows)
        refused = [row.name for row, answer in zip(rows, answers, strict=True) if answer == errno.errorcode[row.refusal]]
        if refused:
            not_covered("the positive control of " + ", ".join(refused), "this host answers as the wall does")
        self.assertLess(len(refused), len(rows) / 3, "this host refuses too much to show anything")

    def test_refused(self) -> None:
        for caller in callers():
            answers = self.answers(lambda text, who=caller: self.sandbox(PROBE, caller=who, input=text), self.rows)
            for row, answer in zip(self.rows, answers, strict=True):
                with self.subTest(caller=caller.name, call=row.name):
                    self.assertEqual(answer, errno.errorcode[row.refusal])
