"""COL-09: files past the cap, all together past the cap, sparse giants, and small files without number."""

# ctest: timeout 300
import hashlib
import subprocess
import time

from collecting import CollectTest, WorkspaceTest, tree
from harness import callers, main
from outside import MIB, crowding, limits, memory_of

PROBE = """
os.makedirs("/out/d")
for number in range(5): open(f"/out/{number}", "wb").write(bytes([65 + number]) * (3 << 20))
open("/out/d/large", "wb").write(b"x" * ((4 << 20) + 1))
os.truncate(os.open("/out/sparse", os.O_CREAT | os.O_RDWR), 1 << 42)
open("/out/z", "w").write("small")
"""

MANY = "for number in range(200_000): os.close(os.open(f'/out/{number:06}', os.O_CREAT | os.O_WRONLY))"


class Col09(CollectTest):
    def test_caps(self):
        for caller in callers():
            with self.subTest(caller=caller):
                to = self.results(caller)
                result = self.fetch(PROBE, to, caller, ["--collect-file-size", "4M", "--collect-size", "10M"])
                found = tree(to)
                self.assertEqual(set(found), {b"0", b"1", b"2", b"d", b"z"})
                reasons = self.reasons(result)
                self.assertEqual(set(reasons), {"/out/3", "/out/4", "/out/d/large", "/out/sparse"})
                self.assertIn("--collect-size", reasons["/out/3"])
                self.assertIn("--collect-file-size", reasons["/out/d/large"])
                self.assertIn("--collect-file-size", reasons["/out/sparse"])
                self.assertTrue(result.record["files_truncated"])
                self.assertEqual(result.exit_status, 125)
                for row in result.record["files"]:
                    content = found[row["path"].removeprefix("/out/").encode()]
                    self.assertEqual((row["size"], row["sha256"]), (len(content), hashlib.sha256(content).hexdigest()))

    def test_small_files_without_number(self):
        for caller in callers():
            with self.subTest(caller=caller):
                to = self.results(caller, "many")
                start = time.monotonic()
                process = self.start(MANY, ["--collect", f"/out:{to}", "--collect-entries", "5000", "--tmp-inodes", "300000",
                                            "--timeout", "2m", *limits(caller, memory="1G")], caller)
                peak = 0
                while process.poll() is None:
                    peak = max(peak, memory_of(process.pid))
                    time.sleep(0.01)
                self.assertEqual(process.returncode, 125)
                self.assertEqual(len(list(to.iterdir())), 5000)
                self.assertLess(peak, 64 * MIB)
                self.assertLess(time.monotonic() - start, 60 * crowding())

    def test_natively_there_is_no_cap(self):
        """The positive control: a plain copy takes the sparse giant for what it says it is."""
        here = self.host_folder("native", callers()[0])
        with open(here / "sparse", "wb") as file:
            file.truncate(1 << 42)
        self.assertEqual((here / "sparse").stat().st_size, 1 << 42)
        read = 0
        start = time.monotonic()
        with open(here / "sparse", "rb") as file:
            while time.monotonic() - start < 0.5:
                read += len(file.read(1 << 20))
        self.assertGreater(read, 4 * MIB)


class Col09Workspace(WorkspaceTest):
    def test_caps(self):
        for caller in callers():
            with self.subTest(caller=caller):
                work = self.workspace(caller)
                result = self.change(PROBE.replace("/out/", "/workspace/"), work, caller, ["--collect-file-size", "4M", "--collect-size", "10M"])
                self.assertEqual(set(self.reasons(result)), {f"/workspace/{name}" for name in ("3", "4", "d/large", "sparse")})
                self.assertEqual((result.record["files_truncated"], result.exit_status), (True, 125))
                self.assertEqual(self.apply(result, caller), {})
                found = tree(work)
                self.assertEqual(set(found) - {b"file", b"folder", b"folder/inner"}, {b"0", b"1", b"2", b"d", b"z"})
                for row in result.record["files"]:
                    content = found[row["path"].removeprefix("/workspace/").encode()]
                    self.assertEqual((row["size"], row["sha256"]), (len(content), hashlib.sha256(content).hexdigest()))

    def test_small_files_without_number(self):
        for caller in callers():
            with self.subTest(caller=caller):
                work = self.workspace(caller, "many")
                start = time.monotonic()
                process = self.start(MANY.replace("/out/", "/workspace/"),
                                     ["--workspace", str(work), "--collect-entries", "5000", "--tmp-inodes", "300000", "--timeout", "2m",
                                      *limits(caller, memory="1G")], caller, stderr=subprocess.PIPE)
                peak = 0
                while process.poll() is None:
                    peak = max(peak, memory_of(process.pid))
                    time.sleep(0.01)
                said = process.stderr.read().decode()
                self.assertEqual(process.returncode, 125)
                self.assertIn("--collect-entries", said)
                self.assertLess(peak, 64 * MIB)
                self.assertLess(time.monotonic() - start, 60 * crowding())


if __name__ == "__main__":
    main()
