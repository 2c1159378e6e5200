"""docs/escape-cases.md and the files of this folder tell the same: every case has a row, every row that holds has its test."""

import re
import unittest

from harness import REPOSITORY

PAGE = REPOSITORY / "docs" / "escape-cases.md"
ROW = re.compile(r"^\| (?P<id>[A-Z]+-\d+) \| (?P<attempt>[^|]+) \| (?P<state>[^|]*) \| (?P<by>[^|]*) \|$")
CASES = 155
STATES = {"holds", "later", "n/a"}


def rows() -> list[re.Match]:
    lines = [line for line in PAGE.read_text().splitlines() if re.match(r"\| [A-Z]+-\d", line)]
    found = [ROW.match(line) for line in lines]
    assert all(found), "a row of another form: " + lines[found.index(None)]
    return found


class Cases(unittest.TestCase):
    def test_every_case_has_one_row(self) -> None:
        ids = [row["id"] for row in rows()]
        self.assertEqual(len(ids), CASES)
        self.assertEqual(len(set(ids)), CASES)

    def test_every_row_says_why(self) -> None:
        for row in rows():
            with self.subTest(case=row["id"]):
                self.assertIn(row["state"], STATES)
                self.assertGreater(len(row["by"].strip()), 3)

    def test_rows_that_hold_name_their_tests(self) -> None:
        for row in rows():
            if row["state"] != "holds":
                continue
            with self.subTest(case=row["id"]):
                files = re.findall(r"(?:tests|src)/[\w./]+", row["by"])
                self.assertTrue(files, "names no file")
                for file in files:
                    self.assertTrue((REPOSITORY / file).is_file(), f"no such file: {file}")

    def test_every_test_has_a_row(self) -> None:
        holding = {row["id"] for row in rows() if row["state"] == "holds"}
        for path in (REPOSITORY / "tests" / "escape").glob("*_test.py"):
            match = re.fullmatch(r"([a-z]+)_(\d+)_test\.py", path.name)
            if match:
                self.assertIn(f"{match[1].upper()}-{match[2]}", holding, path.name)
            else:
                self.assertEqual(path.name, "cases_test.py")


if __name__ == "__main__":
    unittest.main(verbosity=2)
