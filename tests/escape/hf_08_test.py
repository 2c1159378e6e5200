"""HF-08: a part of a mount's source is exchanged for a link while the sandbox starts (CVE-2021-30465, CVE-2021-25741). The
folder above it may be one that an earlier sandbox was given to write in, so the link is the attacker's word."""

import os
import subprocess

from harness import PYTHON, EscapeTest, callers, main

STARTS = 120  # for each caller

# Exchanges two names for as long as it runs (renameat2 with RENAME_EXCHANGE).
SWAPPER = """
import ctypes, sys
libc = ctypes.CDLL(None)
a, b = (name.encode() for name in sys.argv[1:])
print("swapping", flush=True)
while True:
    libc.renameat2(-100, a, -100, b, 2)
"""


class Hf08(EscapeTest):
    def make_tree(self, caller):
        """work/real/data/file is what the caller means; work/link leads to a folder of the same form with the secret."""
        work = self.host_folder(f"work-{caller}", caller)
        secret = self.host_folder(f"secret-{caller}", caller)
        for folder, text in (work / "real", "meant"), (secret, self.canary):
            (folder / "data").mkdir(parents=True)
            (folder / "data" / "file").write_text(text)
        (work / "link").symlink_to(secret)
        return work

    def test_swapped_while_starting(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                work = self.make_tree(caller)
                swapper = subprocess.Popen([PYTHON, "-c", SWAPPER, work / "real", work / "link"], stdout=subprocess.PIPE)
                self.addCleanup(swapper.stdout.close)
                self.addCleanup(swapper.wait)
                self.addCleanup(swapper.kill)
                swapper.stdout.readline()
                # The control: who follows the name plainly comes to both places.
                plainly = set()
                for _ in range(2000):
                    try:
                        plainly.add((work / "real" / "data" / "file").read_text())
                    except OSError:
                        pass
                self.assertEqual(plainly, {"meant", self.canary})
                started = 0
                for _ in range(STARTS):
                    run = caller.run([caller.belljar, "run", "--mount", f"{work}/real/data:/data", "--", "cat", "/data/file"])
                    self.assertNotIn(self.canary.encode(), run.stdout + run.stderr)
                    if run.returncode == 0:
                        self.assertEqual(run.stdout, b"meant")
                        started += 1
                    else:
                        self.assertEqual(run.returncode, 125, run)
                self.assertGreater(started, 0, "no start met the folder that was meant")

    def test_a_workspace_swapped_while_starting(self) -> None:
        """Whatever is seen and kept is of the folder that was meant, also where another folder took its place."""
        for caller in callers():
            for other in "link", "secret":
                with self.subTest(caller=caller.name, other=other):
                    subprocess.run(["rm", "-rf", self.folder / f"work-{caller}", self.folder / f"secret-{caller}"], check=True)
                    work = self.make_tree(caller)
                    if other == "secret":
                        (work / "link").unlink()
                        (self.folder / f"secret-{caller}").rename(work / "link")
                    for path in work.rglob("*"):
                        os.chown(path, caller.uid, caller.uid, follow_symlinks=False)
                    swapper = subprocess.Popen([PYTHON, "-c", SWAPPER, work / "real", work / "link"], stdout=subprocess.PIPE)
                    self.addCleanup(swapper.wait)
                    self.addCleanup(swapper.kill)
                    swapper.stdout.readline()
                    ended = []
                    for _ in range(STARTS // 3):
                        result = self.sandbox(["sh", "-c", "cat data/file; echo x > data/new"], ["--workspace", f"{work}/real"], caller)
                        ended.append(result.exit_status)
                        if other == "link":
                            self.assertNotIn(self.canary, str(result))
                        if result.exit_status == 0:
                            files = [(row["path"], row["change"]) for row in result.record["files"]]
                            self.assertEqual(files, [("/workspace/data/new", "added")])
                        else:
                            self.assertEqual(result.exit_status, 125, result)
                    swapper.kill()
                    swapper.wait()
                    swapper.stdout.close()
                    self.assertIn(0, ended)
                    self.assertEqual(list(self.folder.rglob("new")), [])

    def test_a_link_that_stands_there_already(self) -> None:
        for caller in callers():
            work = self.make_tree(caller)
            for source in work / "link", work / "link" / "data", work / "real" / ".." / "link" / "data":
                with self.subTest(caller=caller.name, source=source):
                    result = self.sandbox(["cat", "/data/file", "/data/data/file"], ["--mount", f"{source}:/data"], caller)
                    self.assertEqual((result.exit_status, result.record["error"]["code"]), (125, "bad_mount"))
                    self.assertNotIn(self.canary, str(result))

    def test_links_inside_lead_nowhere(self) -> None:
        """A link in a mounted folder is followed inside, where its target is not."""
        for caller in callers():
            work = self.make_tree(caller)
            result = self.sandbox(["cat", "/work/link/data/file"], ["--mount", f"{work}:/work"], caller)
            self.assertNotIn(self.canary, result.stdout)
            self.assertEqual(result.status, "error")

    def test_plain_sources(self) -> None:
        for caller in callers():
            work = self.make_tree(caller)
            for source in f"{work}/real/data", f"{work}/./real//data/", "real/data":
                with self.subTest(caller=caller.name, source=source):
                    result = self.sandbox(["cat", "/data/file"], ["--mount", f"{source}:/data"], caller, cwd=work)
                    self.assertEqual(result.stdout, "meant", result)


if __name__ == "__main__":
    main()
