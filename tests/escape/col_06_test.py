"""COL-06: pipes without a writer (and without a reader) in what is collected, at names given explicitly, and where files go."""

import subprocess
import time

from collecting import CollectTest, tree
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


if __name__ == "__main__":
    main()
