"""What comes back with --collect: contents, names, owners, limits, and what holds however the program ended."""

import hashlib
import os
import signal
import subprocess
import time
from pathlib import Path

from harness import USER_ID, Case, both_callers, main, root_only


def tree(folder: Path) -> dict[str, bytes | None]:
    """What is below the folder: content of files, None for folders."""
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in sorted(folder.rglob("*"))}


@both_callers
class Collect(Case):
    tier: tuple[str, ...] = ()

    def run_in(self, *arguments, **options):
        return super().run_in(*self.tier, *arguments, **options)

    def make(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir()
        self.own(path)
        return path

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def collect(self, code: str, *options, source: str = "/out") -> None:
        self.sh(code, "--collect", f"{source}:./results", *options)

    def test_a_folder(self):
        self.collect("mkdir -p /out/a/b /out/empty; echo 1 > /out/a/b/f; echo 2 > /out/g; : > /out/nothing")
        self.assertEqual(tree(self.results), {"a": None, "a/b": None, "a/b/f": b"1\n", "empty": None, "g": b"2\n", "nothing": b""})

    def test_wildcards_and_single_files(self):
        self.sh("cd /tmp; echo 1 > a.png; echo 2 > b.png; echo 3 > c.txt; mkdir -p r/1 r/2; echo 4 > r/1/o; echo 5 > r/2/o; echo 6 > ~/h",
                "--collect", "/tmp/*.png:./plots", "--collect", "/tmp/c.txt:./one", "--collect", "/tmp/r/*/o:./runs",
                "--collect", "/tmp/home/h:./one")
        self.assertEqual(tree(self.folder / "plots"), {"a.png": b"1\n", "b.png": b"2\n"})
        self.assertEqual(tree(self.folder / "one"), {"c.txt": b"3\n", "h": b"6\n"})
        self.assertEqual(tree(self.folder / "runs"), {"1": None, "1/o": b"4\n", "2": None, "2/o": b"5\n"})

    def test_files_belong_to_the_caller(self):
        old = os.umask(0o027)
        try:
            self.collect("echo x > /out/f; mkdir /out/d; cp /bin/true /out/p; chmod 6777 /out/p; chmod 777 /out/f; chmod 666 /out/f")
        finally:
            os.umask(old)
        for name, mode in (("f", 0o640), ("d", 0o750), ("p", 0o750), ("", 0o750)):
            status = (self.results / name).lstat()
            self.assertEqual((status.st_uid, oct(status.st_mode & 0o7777)), (self.caller_id, oct(mode)), name)

    def test_the_record(self):
        content = os.urandom(300_000)
        self.write("data", content)
        record = self.record("--mount", ".:/data", "--collect", "/out:./results", "--", "sh", "-c",
                             "cp /data/data /out/d; ln -s d /out/l; echo x > /out/e")
        self.assertEqual(record["files"][0], {"path": "/out/d", "saved_as": "./results/d", "size": len(content),
                                              "sha256": hashlib.sha256(content).hexdigest(), "change": "added"})
        self.assertEqual([row["path"] for row in record["files"]], ["/out/d", "/out/e"])
        self.assertEqual(record["files_skipped"], [{"path": "/out/l", "reason": "a symbolic link"}])
        self.assertEqual((record["files_truncated"], record.exit_status), (False, 0))
        self.assertEqual((self.results / "d").read_bytes(), content)

    def test_without_the_flag(self):
        record = self.record("--", "sh", "-c", "ls -d /out")
        self.assertEqual((record["status"], record["files"], record["files_skipped"]), ("error", [], []))

    def test_fn_14_every_byte_survives(self):
        content = bytes(range(256)) * 1000
        self.collect("python3 -c 'open(\"/out/all\", \"wb\").write(bytes(range(256)) * 1000)'")
        self.assertEqual((self.results / "all").read_bytes(), content)

    def test_holes_stay_holes(self):
        self.collect("truncate -s 100M /out/f; printf x | dd of=/out/f bs=1 seek=50000000 conv=notrunc 2>/dev/null")
        status = (self.results / "f").stat()
        self.assertEqual(status.st_size, 100 << 20)
        self.assertLess(status.st_blocks * 512, 1 << 20)
        self.assertEqual((self.results / "f").read_bytes().rstrip(b"\0"), bytes(50000000) + b"x")

    def test_the_folder_is_part_of_the_writable_space(self):
        out = self.sh("df -k --output=size /out /tmp | tail -2; head -c 20M /dev/zero > /tmp/a; head -c 20M /dev/zero > /out/b 2>&-; "
                      "wc -c < /out/b; rm /tmp/a; stat -c '%U %a' /out", "--collect", "/out:./results", "--tmp-size", "30M")
        lines = out.splitlines()
        self.assertEqual(lines[0].strip(), str(30 << 10))
        self.assertEqual(lines[1].strip(), str(30 << 10))
        self.assertLessEqual(int(lines[2]), 10 << 20)
        self.assertEqual(lines[3], "sandbox 755")

    def test_as_working_folder_and_for_programs(self):
        self.assertEqual(self.sh("pwd; cp /bin/echo e; ./e runs; mkdir deep", "--collect", "/out/deep:./results", "--workdir", "/out"), "/out\nruns\n")

    def test_existing_files(self):
        self.make("results")
        self.write("results/f", "mine")
        ended = self.run_in("--collect", "/out:./results", "--", "sh", "-c", "echo new > /out/f; echo g > /out/g")
        self.assertEqual(ended.status, 125, str(ended))
        self.assertEqual(ended.own_lines(), ['belljar: not collected: "/out/f": a file of that name is there already '
                                             '(--collect-overwrite replaces it)'])
        self.assertEqual(tree(self.results), {"f": b"mine", "g": b"g\n"})
        record = self.record("--collect", "/out:./results", "--collect-overwrite", "--", "sh", "-c", "echo new > /out/f")
        self.assertEqual((record["files"][0]["change"], record.exit_status), ("modified", 0))
        self.assertEqual((self.results / "f").read_text(), "new\n")

    def test_the_status_of_the_program_stays(self):
        for code, status in (("exit 7", 7), ("kill -SEGV $$", 139)):
            ended = self.run_in("--collect", "/out:./results", "--collect-overwrite", "--collect-file-size", "1", "--", "sh", "-c",
                                f"echo large > /out/f; {code}")
            self.assertEqual(ended.status, status, str(ended))
            self.assertIn("--collect-file-size", str(ended))

    def test_after_every_end(self):
        endings = {"timeout": ["--timeout", "1s"], "output": ["--output-limit", "10", "--on-output-limit", "kill"], "error": []}
        for status, options in endings.items():
            code = {"timeout": "sleep 60", "output": "yes", "error": "exit 3"}[status]
            record = self.record(*options, "--collect", f"/out:./{status}", "--", "sh", "-c", f"echo kept > /out/f; {code}")
            self.assertEqual(record["status"], status)
            self.assertEqual((self.folder / status / "f").read_text(), "kept\n", status)

    def test_after_ctrl_c(self):
        process = self.start("run", *self.tier, "--collect", "/out:./results", "--", "sh", "-c", "echo kept > /out/f; echo ready; sleep 60")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertEqual((self.results / "f").read_text(), "kept\n")

    def test_processes_that_stay_behind_change_nothing_any_more(self):
        self.collect("(while :; do echo more >> /out/f; done) & sleep 0.3")
        size = (self.results / "f").stat().st_size
        time.sleep(0.3)
        self.assertGreater(size, 0)
        self.assertEqual((self.results / "f").stat().st_size, size)

    def test_a_program_that_never_started(self):
        self.assert_refused(self.run_in("--collect", "/out:./results", "--", "no-such-program"), 127, "no-such-program")
        self.assertFalse(self.results.exists())

    def test_limits(self):
        ended = self.run_in("--collect", "/out:./results", "--collect-file-size", "1K", "--collect-size", "1500", "--", "sh", "-c",
                            "cd /out; head -c 1024 /dev/zero > a; head -c 1025 /dev/zero > b; head -c 500 /dev/zero > c; : > d")
        self.assertEqual(ended.status, 125)
        self.assertEqual([line.split(": ")[2] for line in ended.own_lines()], ['"/out/b"', '"/out/c"'])
        self.assertEqual(sorted(tree(self.results)), ["a", "d"])

    def test_many_skipped_are_summed_up(self):
        ended = self.run_in("--collect", "/out:./results", "--", "sh", "-c", "for i in $(seq 100); do ln -s x /out/$i; done")
        self.assertEqual((ended.status, len(ended.own_lines())), (0, 21))
        self.assertIn("80 more were left behind", ended.own_lines()[-1])

    def test_from_a_policy_file(self):
        policy = self.write("p.toml", 'collect = ["/out:./results"]\n')
        self.sh("echo x > /out/f", "--policy", policy)
        self.assertEqual(tree(self.results), {"f": b"x\n"})

    def test_refusals(self):
        (self.folder / "real").mkdir()
        (self.folder / "link").symlink_to("real")
        self.own(self.folder / "real")
        self.write("file", "x")
        for value, *words in (("/usr/share:./r", "read-only image"), ("/bin:./r", "read-only image"), ("/app/x:./r", "read-only image"),
                              ("/data/x:./r", "mounted from the host"), ("/proc/1:./r", "/proc"), ("/dev/shm:./r", "/dev"),
                              ("/out", "names no folder", "SRC:DST"), ("/out:", "names no folder"), (":./r", "names no files"), ("/*/x:./r", "/tmp/*.png"), ("/out:./link", "symbolic link"),
                              ("/out:./link/x", "symbolic link"), ("/out:./file", "not a folder"), ("/out:./a/b", "missing")):
            with self.subTest(value=value):
                ended = self.run_in("--mount", f"{self.folder}:/data", "--collect", value, "--", "true")
                self.assert_refused(ended, 125, "--collect", *words)
        many = [option for number in range(11) for option in ("--collect", f"/o{number}:./r")]
        self.assert_refused(self.run_in(*many, "--", "true"), 125, "at most 10")
        self.assertFalse((self.folder / "r").exists())

    def test_beside_mounts(self):
        data = self.make("data")
        self.write("data/f", "host")
        ended = self.run_in("--mount", f"{data}:/out/data:rw", "--collect", "/out:./results", "--", "sh", "-c",
                            "echo x > /out/mine; echo y > /out/data/g")
        self.assertEqual((ended.status, ended.own_lines()), (0, ['belljar: not collected: "/out/data": mounted from the host']))
        self.assertEqual(tree(self.results), {"mine": b"x\n"})
        self.assertEqual(tree(data), {"f": b"host", "g": b"y\n"})

    def test_into_a_mounted_folder(self):
        """The program may write there too: its file is there already, and stays."""
        results = self.make("results")
        ended = self.run_in("--mount", f"{results}:/r:rw", "--collect", "/out:./results", "--", "sh", "-c", "echo 1 > /r/f; echo 2 > /out/f; echo 3 > /out/g")
        self.assertEqual(ended.status, 125)
        self.assertEqual(tree(results), {"f": b"1\n", "g": b"3\n"})

    def test_a_thousand_files(self):
        self.collect("cd /out; for i in $(seq 1000); do echo $i > f$i; done")
        self.assertEqual(tree(self.results), {f"f{number}": f"{number}\n".encode() for number in range(1, 1001)})


@both_callers
class CollectFromKernel(Collect):
    """The same from the memory of a user-space kernel."""

    tier = ("--isolation", "kernel")

    # Mounts that can be written to are not there yet.
    def test_beside_mounts(self):
        data = self.make("data")
        self.write("data/f", "host")
        ended = self.run_in("--mount", f"{data}:/out/data", "--collect", "/out:./results", "--", "sh", "-c", "echo x > /out/mine; cat /out/data/f")
        self.assertEqual((ended.status, ended.text, ended.own_lines()), (0, "host", ['belljar: not collected: "/out/data": mounted from the host']))
        self.assertEqual(tree(self.results), {"mine": b"x\n"})

    def test_into_a_mounted_folder(self):
        results = self.make("results")
        self.write("results/f", "1\n")
        ended = self.run_in("--mount", f"{results}:/r", "--collect", "/out:./results", "--", "sh", "-c", "cat /r/f > /out/f; echo 3 > /out/g")
        self.assertEqual(ended.status, 125)
        self.assertEqual(tree(results), {"f": b"1\n", "g": b"3\n"})

    def test_all_kinds_of_files(self):
        ended = self.run_in("--collect", "/out:./results", "--", "sh", "-c",
                            "cd /out; mkfifo p; ln -s x l; echo 1 > a; ln a b; mkdir d; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'; "
                            "head -c 300000 /dev/urandom > r; cp r d/r; rm -rf ~; cmp r d/r")
        self.assertEqual(ended.status, 0, str(ended))
        self.assertEqual(sorted(line.split(": ", 2)[2] for line in ended.own_lines()),
                         ['"/out/l": a symbolic link', '"/out/p": a named pipe', '"/out/s": a socket'])
        found = tree(self.results)
        self.assertEqual((sorted(found), found["a"], found["b"]), (["a", "b", "d", "d/r", "r"], b"1\n", b"1\n"))
        self.assertEqual((len(found["r"]), found["r"]), (300_000, found["d/r"]))

    def test_mapped_files(self):
        self.collect("python3 -c 'import mmap; f = open(\"/out/m\", \"w+b\"); f.truncate(20000); m = mmap.mmap(f.fileno(), 20000); m[9000:9005] = b\"mapped\"[:5]'")
        self.assertEqual((self.results / "m").read_bytes(), bytes(9000) + b"mappe" + bytes(20000 - 9005))


@root_only
class CollectAsRoot(Case):
    """What a user may not do, root can't be stopped from: files of mode 000."""

    def test_files_without_permissions(self):
        self.sh("mkdir /out/d; echo x > /out/d/f; chmod 000 /out/d/f; chmod 000 /out/d", "--collect", "/out:./results")
        self.assertEqual(tree(self.folder / "results"), {"d": None, "d/f": b"x\n"})

    def test_a_user_can_not_write_to_folders_of_others(self):
        (self.folder / "roots").mkdir(mode=0o755)
        case = type("AsUser", (Case,), {"as_user": True, "runTest": lambda self: None})()
        case.folder = self.folder
        ended = case.run_in("--collect", "/out:./roots", "--", "true")
        self.assert_refused(ended, 125, "--collect", "can't be written to")
        self.assertEqual(USER_ID, case.caller_id)


@root_only
class FullDisk(Case):
    """A disk that fills up while files are saved needs a file system of its own."""

    def test_a_full_disk(self):
        small = self.folder / "small"
        small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], check=True)
        self.addCleanup(subprocess.run, ["umount", small], check=True)
        ended = self.run_in("--collect", f"/out:{small}", "--", "sh", "-c", "cd /out; echo x > a; head -c 3M /dev/zero | tr '\\0' x > b; echo y > c")
        self.assertEqual(ended.status, 125)
        self.assertEqual(len(ended.own_lines()), 1, str(ended))
        self.assertIn("No space left on device; collecting ended here", ended.own_lines()[0])
        self.assertEqual(tree(small), {"a": b"x\n"})


if __name__ == "__main__":
    main()
