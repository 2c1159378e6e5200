"""COL-14: trees that are very deep, very wide, or loop."""

# ctest: timeout 300
import time

from collecting import CollectTest, WorkspaceTest, tree
from harness import callers, main
from outside import MIB, crowding, limits, memory_of

DEEP = """
os.chdir(sys.argv[1])
for _ in range(5000):
    os.mkdir("d" * 200); os.chdir("d" * 200)
open("bottom", "w").write("x")
"""

WIDE = "for number in range(100_000): os.close(os.open(f'/out/{number:06}', os.O_CREAT | os.O_WRONLY))"

LOOPS = """
os.symlink(".", "/out/x"); os.symlink("b", "/out/a"); os.symlink("a", "/out/b"); os.symlink("/out", "/out/abs")
os.makedirs("/out/d/e"); os.symlink("../..", "/out/d/e/up"); open("/out/d/f", "w").write("x")
"""


class Col14(CollectTest):
    def fetch_watched(self, probe: str, to, caller, flags: list[str]) -> tuple[int, int, float]:
        """Exit status, the supervisor's peak memory, and the time."""
        start = time.monotonic()
        process = self.start(probe, ["--collect", f"/out:{to}", *flags], caller)
        peak = 0
        while process.poll() is None:
            peak = max(peak, memory_of(process.pid))
            time.sleep(0.005)
        return process.returncode, peak, time.monotonic() - start

    def test_deep(self):
        for caller in callers():
            with self.subTest(caller=caller):
                to = self.results(caller)
                result = self.fetch(f"sys.argv[1:] = ['/out']\n{DEEP}", to, caller)
                self.assertEqual(result.status, "ok", result)
                reasons = self.reasons(result)
                self.assertEqual(list(reasons.values()), ["more than 100 folders deep"])
                self.assertEqual(len(next(iter(reasons))), len("/out") + 101 * 201)
                self.assertEqual(result.exit_status, 125)

    def test_wide(self):
        for caller in callers():
            with self.subTest(caller=caller):
                to = self.results(caller, "wide")
                status, peak, seconds = self.fetch_watched(WIDE, to, caller, ["--tmp-inodes", "200000", "--collect-entries", "3000", "--timeout", "2m",
                                                                              *limits(caller, memory="1G")])
                self.assertEqual(status, 125)
                self.assertEqual(len(list(to.iterdir())), 3000)
                self.assertLess(peak, 64 * MIB)
                self.assertLess(seconds, 60 * crowding())

    def test_loops(self):
        for caller in callers():
            with self.subTest(caller=caller):
                to = self.results(caller, "loops")
                result = self.fetch(LOOPS, to, caller)
                self.assertEqual(tree(to), {b"d": "folder", b"d/e": "folder", b"d/f": b"x"})
                self.assertEqual(set(self.reasons(result).values()), {"a symbolic link"})

    def test_natively_a_walk_by_name_fails(self):
        """The positive control: who goes by whole paths comes to PATH_MAX."""
        caller = callers()[0]
        here = self.host_folder("native", caller)
        self.assertEqual(self.native(DEEP.replace("5000", "60"), caller, arguments=[str(here)]).exit_status, 0)
        path = str(here) + ("/" + "d" * 200) * 60 + "/bottom"
        with self.assertRaises(OSError):
            open(path)


class Col14Workspace(WorkspaceTest):
    def test_deep(self):
        for caller in callers():
            with self.subTest(caller=caller):
                work = self.workspace(caller)
                result = self.change(f"sys.argv[1:] = ['/workspace']\n{DEEP}", work, caller)
                self.assertEqual(result.status, "ok", result)
                self.assertEqual(len(self.reasons(result)), 1)
                self.assertIn("bytes", next(iter(self.reasons(result).values())))
                shallow = DEEP.replace('"d" * 200', '"d"')
                result = self.change(f"sys.argv[1:] = ['/workspace']\n{shallow}", work, caller)
                self.assertEqual(list(self.reasons(result).values()), ["more than 100 folders deep"])
                self.assertEqual(self.apply(result, caller), {})
                self.assertEqual(caller.run(["rm", "-r", str(work / "d")]).returncode, 0)

    def test_a_workspace_that_is_too_deep(self):
        for caller in callers():
            with self.subTest(caller=caller):
                work = self.workspace(caller, "deep")
                self.native(DEEP.replace("5000", "120").replace('"d" * 200', '"d"'), caller, arguments=[str(work)])
                result = self.change(["true"], work, caller)
                self.assertEqual((result.status, result.exit_status), ("denied", 125))
                self.assertIn("100 deep", result.record["reason"])

    def test_loops(self):
        for caller in callers():
            with self.subTest(caller=caller):
                work = self.workspace(caller, "loops")
                result = self.change(LOOPS.replace('"/out/', '"/workspace/').replace('"/out"', '"/workspace"'), work, caller)
                self.assertEqual(self.apply(result, caller).keys(), {"x", "a", "b", "abs", "d/e/up"})
                self.assertNotIn("link", tree(work).values())


if __name__ == "__main__":
    main()
