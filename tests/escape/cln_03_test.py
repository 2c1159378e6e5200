"""CLN-03: trees that are slow or impossible to walk: deep, long names, many files. The end is quick all the same."""

import time

from harness import callers, main
from outside import OutsideTest

DEEP = """
name = "d" * 255
os.chdir("/tmp")
depth = 0
try:
    while depth < 3000: os.mkdir(name); os.chdir(name); depth += 1
except OSError as error: pass
os.chdir("/tmp")
report(depth=depth)
"""

MANY = """
made = 0
try:
    while made < 60000:
        os.close(os.open(f"/tmp/{made}-" + "n" * 200, os.O_CREAT | os.O_WRONLY)); made += 1
except OSError: pass
os.symlink(".", "/tmp/loop")
report(made=made)
"""


class Cln03(OutsideTest):
    def ends_quickly(self, probe: str, caller, key: str, least: int) -> None:
        """The end is measured from the last thing that the probe does, on the host's clock, to belljar's return."""
        out = self.host_folder(f"out-{key}-{caller}", caller)
        probe += "\nimport time\nopen('/out/end', 'w').write(str(time.monotonic()))\n"
        result = self.sandbox(probe, ["--mount", f"{out}:/out:rw", "--timeout", "60s"], caller)
        ended = time.monotonic()
        self.assertEqual(result.status, "ok", result)
        self.assertGreaterEqual(result.findings[key], least)
        self.assertLess(ended - float((out / "end").read_text()), 5)
        self.assert_nothing_left()

    def test_deep(self):
        for caller in callers():
            with self.subTest(caller=caller):
                self.ends_quickly(DEEP, caller, "depth", 1000)

    def test_many(self):
        for caller in callers():
            with self.subTest(caller=caller):
                self.ends_quickly(MANY, caller, "made", 20000)

    def test_natively_it_is_past_every_path(self):
        here = self.host_folder("native", callers()[0])
        self.assertEqual(self.native(DEEP.replace('os.chdir("/tmp")', f"os.chdir({str(here)!r})").replace("3000", "40"),
                                     callers()[0]).findings["depth"], 40)


if __name__ == "__main__":
    main()
