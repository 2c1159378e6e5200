"""HF-06: links in place of /dev/console, /dev/pts, /dev/ptmx, /dev/shm and mount targets, so that what set-up mounts, makes or
changes lands elsewhere (CVE-2025-52565)."""

import os
import subprocess

from harness import EscapeTest, callers, main, not_covered

PROBE = """
import stat
tries = {}
for name in ("null", "console", "pts", "pts/0", "ptmx", "shm", "tty", "new"):
    path = "/dev/" + name
    tries["unlink " + name] = attempt(os.unlink, path)
    tries["rename " + name] = attempt(os.rename, path, "/dev/moved")
    tries["link " + name] = attempt(os.symlink, sys.argv[1], path)
    tries["chmod " + name] = attempt(os.chmod, path, 0o777)
mounts = [line.split()[4] for line in open("/proc/self/mountinfo")]
report(tries=tries, mounts=mounts)
"""

# What fills /dev and /dev/shm; nothing else may be mounted there.
DEV_MOUNTS = {"/dev", "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/pts", "/dev/shm",
              "/dev/mqueue"}


def host_nodes() -> dict:
    nodes = {}
    for name in sorted(os.listdir("/dev")):
        status = os.lstat(f"/dev/{name}")
        nodes[name] = (status.st_mode, status.st_uid, status.st_gid, status.st_rdev)
    return nodes


class Hf06(EscapeTest):
    def test_positive_control(self) -> None:
        """A naive mount over a node that is a link lands at the link's target."""
        target = self.host_file("target")
        dev = self.folder / "dev"
        dev.mkdir()
        (dev / "console").symlink_to(target)
        script = f'mount --bind /dev/null {dev}/console && stat -c %F {target}'
        run = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script], capture_output=True, text=True)
        if run.returncode != 0:
            return not_covered("HF-06's positive control", run.stderr.strip())
        self.assertEqual(run.stdout.strip(), "character special file")

    def test_dev_can_not_be_changed(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                before = host_nodes()
                result = self.sandbox(PROBE, caller=caller, arguments=[self.host_file("target")])
                changed = {name for name, answer in result.findings["tries"].items() if answer == "ok"}
                # Without a range of ids the program's id owns these two of the sandbox's own.
                self.assertLessEqual(changed, set() if caller.uid == 0 else {"chmod ptmx", "chmod shm"})
                below_dev = {mount for mount in result.findings["mounts"] if mount.startswith("/dev")}
                self.assertLessEqual(below_dev, DEV_MOUNTS)
                self.assertEqual(host_nodes(), before)
                self.assertEqual(self.sandbox(["true"], caller=caller).status, "ok")

    def test_targets_below_a_link(self) -> None:
        """Run 1 leaves a link in its folder; run 2 has that folder mounted, and another mount below the link."""
        for caller in callers():
            out = self.host_folder(f"out-{caller}", caller)
            inner = self.host_folder(f"inner-{caller}", caller)
            (inner / "mark").write_text(self.canary)
            outside = self.host_folder(f"outside-{caller}", caller)
            for target in "/dev", "/dev/shm", "/proc", "/proc/1/root", "/etc", "/", "../../../..", str(outside):
                with self.subTest(caller=caller.name, link=target):
                    link = "import os\nos.path.islink('/out/l') and os.unlink('/out/l')\nos.symlink(" + repr(target) + ", '/out/l')"
                    made = self.sandbox(link, ["--mount", f"{out}:/out:rw"], caller)
                    self.assertEqual(made.status, "ok", made)
                    before = host_nodes()
                    see = ["cat", "/proc/self/mountinfo"]
                    flags = ["--mount", f"{out}:/out:rw", "--mount", f"{inner}:/out/l/x:rw"]
                    result = self.sandbox(see, flags, caller)
                    self.assertEqual(host_nodes(), before)
                    self.assertEqual(os.listdir(outside), [])
                    self.assertEqual((result.exit_status, result.record["error"]["code"]), (125, "bad_mount"), result)

    def test_targets_below_a_mounted_folder(self) -> None:
        for caller in callers():
            out = self.host_folder(f"out-{caller}", caller)
            inner = self.host_folder(f"inner-{caller}", caller)
            (inner / "mark").write_text(self.canary)
            (out / "there").mkdir()
            if os.geteuid() == 0:
                os.chown(out / "there", caller.uid, caller.uid)
            flags = ["--mount", f"{out}:/out:rw", "--mount", f"{inner}:/out/there", "--mount", f"{inner}/mark:/deep/er/mark"]
            result = self.sandbox(["cat", "/out/there/mark", "/deep/er/mark"], flags, caller)
            self.assertEqual(result.stdout, self.canary * 2, result)

    def test_mounts_over_dev_are_refused(self) -> None:
        for caller in callers():
            data = self.host_folder(f"data-{caller}", caller)
            for target in "/dev", "/dev/pts", "/dev/shm/x", "/dev/console", "/proc/sys", "/dev/../dev/x":
                result = self.sandbox(["true"], ["--mount", f"{data}:{target}"], caller)
                self.assertEqual((result.exit_status, result.status), (125, "denied"), target)

    def test_dev_works(self) -> None:
        probe = """
import pty, multiprocessing.shared_memory as shared_memory
leader, follower = pty.openpty()
block = shared_memory.SharedMemory(create=True, size=4096)
block.close(); block.unlink()
open("/dev/null", "w").write("x")
report(random=len(open("/dev/urandom", "rb").read(8)), tty=os.ttyname(follower))
"""
        for caller in callers():
            findings = self.sandbox(probe, caller=caller).findings
            self.assertEqual((findings["random"], findings["tty"]), (8, "/dev/pts/0"))


if __name__ == "__main__":
    main()
