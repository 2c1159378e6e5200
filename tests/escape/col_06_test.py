"""COL-06: pipes without a writer (and without a reader) in what is collected, at names given explicitly, and where files go."""

import os
import subprocess
import time

from collecting import CollectTest, WorkspaceTest, tree
from harness import callers, main
from outside import crowding

PROBE = ["sh", "-c", "mkdir -p /out/d; mkfifo /out/a /out/d/b /tmp/c; echo x > /out/d/file"]


class Col06(CollectTest):
    def test_pipes(self):
        for caller in callers():
            with self.subTest(caller=caller):
                to = self.results(caller)
                start = time.monotonic()
                result = self.sandbox(PROBE, ["--collect", f"/out:{to}", "--collect", f"/tmp/c:{to}", "--collect", f"/out/a:{to}",
                                              "--collect", f"/out/d/*:{to}", "--collect-overwrite"], caller)
                self.assertLess(time.monotonic() - start, 1 * crowding())
                self.assertEqual(tree(to), {b"d": "folder", b"d/file": b"x\n", b"file": b"x\n"})
                self.assertEqual(set(self.reasons(result)), {"/out/a", "/out/d/b", "/tmp/c"})
                self.assertEqual(set(self.reasons(result).values()), {"a named pipe"})
                self.assertEqual((result.exit_status, result.record["files_truncated"]), (0, False))

    def test_a_pipe_where_the_file_goes(self):
        for caller in callers():
            with self.subTest(caller=caller):
                to = self.results(caller, "taken")
                caller.run(["mkfifo", str(to / "f")])
                start = time.monotonic()
                result = self.fetch(["sh", "-c", "echo x > /out/f"], to, caller, ["--collect-overwrite"])
                self.assertLess(time.monotonic() - start, 1 * crowding())
                self.assertIn("a named pipe is in its place", self.reasons(result)["/out/f"])

    def test_natively_reading_one_blocks(self):
        here = self.host_folder("native", callers()[0])
        subprocess.run(["mkfifo", here / "pipe"], check=True)
        with self.assertRaises(subprocess.TimeoutExpired):
            subprocess.run(["cp", "--copy-contents", here / "pipe", here / "copy"], timeout=0.5)


class Col06Workspace(WorkspaceTest):
    def test_pipes(self):
        """In the workspace before, made by the program, in place of a file, and on the host when changes are applied."""
        for caller in callers():
            with self.subTest(caller=caller):
                work = self.workspace(caller)
                caller.run(["mkfifo", str(work / "there")])
                start = time.monotonic()
                result = self.change(["sh", "-c", "mkfifo new folder/new; rm file; mkfifo file; echo x > good; rm there; echo x > there"], work, caller)
                self.assertEqual(self.reasons(result), {f"/workspace/{name}": "a named pipe" for name in ("new", "folder/new", "file")})
                self.assertEqual({path: row["change"] for path, row in self.kept(caller, result.record["changes_id"]).items()},
                                 {"good": "added", "file": "deleted", "there": "added"})
                (work / "file").unlink()
                caller.run(["mkfifo", str(work / "file"), str(work / "good")])
                self.assertEqual(self.changes(caller, "diff", result.record["changes_id"]).returncode, 0)
                self.assertEqual(self.changes(caller, "apply", result.record["changes_id"]).returncode, 125)
                self.assertLess(time.monotonic() - start, 1 * crowding())
                self.assertEqual(set(tree(work).values()), {"special", "folder", b"host's\n"})

    def test_a_pipe_of_the_host_leads_nowhere(self):
        """A pipe in the workspace is another one inside: nobody on the host reads what is written there."""
        for caller in callers():
            with self.subTest(caller=caller):
                work = self.workspace(caller, "pipe")
                caller.run(["mkfifo", str(work / "pipe")])
                reader = os.open(work / "pipe", os.O_RDONLY | os.O_NONBLOCK)
                self.addCleanup(os.close, reader)
                self.change(["timeout", "0.5", "sh", "-c", "echo out > pipe"], work, caller)
                self.assertEqual(os.read(reader, 10), b"")
                caller.run(["sh", "-c", f"echo out > {work}/pipe"])  # the control
                self.assertEqual(os.read(reader, 10), b"out\n")


if __name__ == "__main__":
    main()
