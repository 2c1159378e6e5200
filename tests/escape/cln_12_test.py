"""CLN-12: a full or read-only disk under Belljar's own folders, or where the result goes."""

import json
import os
import resource
import subprocess
from pathlib import Path

from harness import Caller, callers, main, not_covered, root, user
from outside import OutsideTest

# Runs its arguments after making a place full or read-only, in a mount namespace of its own.
ON_A_SMALL_DISK = """
set -e
mount -t tmpfs -o size=64k,mode=0755 belljar-test "$1"
case $2 in
  full) chmod 1777 "$1"; head -c 1000000 /dev/zero > "$1/filler" 2>/dev/null || true ;;
  no-inodes) mount -o remount,nr_inodes=2 "$1"; chmod 1777 "$1" ;;
  read-only) mount -o remount,ro "$1" ;;
esac
shift 2
exec "$@"
"""


class Cln12(OutsideTest):
    def on_a_disk(self, place: Path, state: str, caller: Caller, argv: list[str],
                  env: dict[str, str] | None = None) -> subprocess.CompletedProcess:
        line = ["unshare", "--mount", "--propagation", "private", "sh", "-c", ON_A_SMALL_DISK, "sh", str(place), state,
                *caller.argv(argv)]
        return subprocess.run(line, capture_output=True, timeout=60, env=caller.environment(env), cwd="/")

    def may_mount(self) -> bool:
        if root() is not None:
            return True
        not_covered("full and read-only disks", "only root can mount one")
        return False

    def outcome(self, run: subprocess.CompletedProcess) -> str:
        """ok, or Belljar's own refusal; nothing in between, and no crash."""
        record = json.loads(run.stdout)
        if run.returncode == 0:
            self.assertEqual((record["status"], record["stdout"]), ("ok", "works\n"))
            return "ok"
        self.assertEqual((run.returncode, record["status"]), (125, "denied"), run)
        self.assertGreater(len(record["error"]["message"]), 20)
        self.assertEqual(run.stderr.count(b"\n"), 1)
        return record["error"]["message"]

    def test_own_folders(self):
        if not self.may_mount():
            return
        for caller in callers():
            caller.run([caller.belljar, "run", "--", "true"])  # makes its folders
            if caller.uid == 0:
                places = [Path("/run/belljar"), Path("/var/cache/belljar")]
            else:
                places = [caller.home / "run", caller.home / "cache"]
            for place in places:
                for state in ("full", "no-inodes", "read-only"):
                    with self.subTest(caller=caller, place=place.name, state=state):
                        argv = [caller.belljar, "run", "--json", "--", "echo", "works"]
                        run = self.on_a_disk(place, state, caller, argv)
                        message = self.outcome(run)
                        if message != "ok":  # it names the place, so that one can make room
                            self.assertIn("belljar" if caller.uid == 0 else place.name, message)
                        self.assert_nothing_left()
            with self.subTest(caller=caller, state="as before"):
                self.assertEqual(self.sandbox(["echo", "works"], caller=caller).status, "ok")

    def test_a_full_disk_under_the_result(self):
        for caller in callers():
            for flags, stream in (([], "stdout"), (["--json"], "stdout"), (["--status-fd", "2"], "stderr")):
                with self.subTest(caller=caller, flags=flags):
                    with open("/dev/full", "wb", buffering=0) as full:
                        streams = {"stdout": -1, "stderr": -1, stream: full}
                        process = caller.popen([caller.belljar, "run", *flags, "--", "sh", "-c", "echo works; exit 3"],
                                               **streams)
                        out, err = process.communicate(timeout=30)
                    self.assertEqual(process.returncode, 125, (out, err))
                    if stream == "stdout" and flags:
                        self.assertIn(b"result record can't be written", err)
                    self.assert_nothing_left()

    def test_a_file_size_limit_under_the_result(self):
        """Another way for writing to fail (RLIMIT_FSIZE), whose signal would kill the writer."""
        for caller in callers():
            with self.subTest(caller=caller):
                out = self.host_file("", f"out-{caller}", caller, 0o666)
                with open(out, "wb") as file:
                    process = caller.popen(
                        [caller.belljar, "run", "--", "sh", "-c", "head -c 1000000 /dev/zero; sleep 60"], stdout=file,
                        stderr=-1,
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000)))
                    process.communicate(timeout=30)
                self.assertNotEqual(process.returncode, 0)
                self.assertLessEqual(os.path.getsize(out), 100000)
                self.assert_nothing_left(2)

    def test_a_full_disk_in_a_mount(self):
        """A caller's own folder without room: the program's problem, told to the program."""
        if not self.may_mount():
            return
        for caller in callers():
            with self.subTest(caller=caller):
                here = self.host_folder(f"here-{caller}", caller)
                probe = self.script("def write():\n    with open('/out/x', 'wb', buffering=0) as f:\n"
                                    "        for _ in range(100): f.write(bytes(4096))\nreport(write=attempt(write))")
                run = self.on_a_disk(here, "full", caller,
                                     [caller.belljar, "run", "--json", "--mount", f"{here}:/out:rw", probe])
                record = json.loads(run.stdout)
                self.assertEqual(record["status"], "ok", record)
                self.assertRegex(record["stdout"], '"write": "(ENOSPC|EACCES)"')

    def test_natively_the_disk_is_full(self):
        if self.may_mount():
            here = self.host_folder("here", user())
            run = self.on_a_disk(here, "full", root(), ["cp", "/etc/passwd", f"{here}/y"])
            self.assertNotEqual(run.returncode, 0)
            self.assertIn(b"No space left", run.stderr)


if __name__ == "__main__":
    main()
