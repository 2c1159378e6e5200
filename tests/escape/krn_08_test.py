"""KRN-08: open devices: only null, zero, full, random, urandom, tty, ptmx, pts and shm are there."""


from harness import EscapeTest, callers, main, not_covered, root

NAMES = ["mem", "kmem", "port", "kmsg", "fuse", "kvm", "net/tun", "loop-control", "loop0", "mapper/control", "vhost-net", "vhost-vsock",
         "vsock", "dri/card0", "dri/renderD128", "snd/seq", "snd/timer", "hidraw0", "uinput", "uhid", "input/event0", "cpu/0/msr",
         "cpu_dma_latency", "hwrng", "nvram", "rtc0", "tty0", "tty1", "ttyS0", "console", "vcs", "sda", "vda", "nvme0", "dm-0", "btrfs-control",
         "autofs", "hpet", "userfaultfd", "vfio/vfio", "mei0", "nvidia0", "kfd", "udmabuf", "dma_heap/system", "snapshot", "watchdog", "ppp"]

PROBE = f"names = {NAMES!r}\n" + """
import stat
def describe(path):
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return "link to " + os.readlink(path)
    kind = "folder" if stat.S_ISDIR(status.st_mode) else "char" if stat.S_ISCHR(status.st_mode) else "other"
    return f"{kind} {os.major(status.st_rdev)}:{os.minor(status.st_rdev)} {stat.S_IMODE(status.st_mode):o}"
listing = {name: describe("/dev/" + name) for name in sorted(os.listdir("/dev"))}
report(listing=listing, opened={name: attempt(os.open, "/dev/" + name, os.O_RDONLY) for name in names}, pts=os.listdir("/dev/pts"),
       shm=os.listdir("/dev/shm"))
"""

GOLDEN = {
    "fd": "link to /proc/self/fd", "full": "char 1:7 666", "null": "char 1:3 666", "ptmx": "link to pts/ptmx", "pts": "folder 0:0 755",
    "mqueue": "folder 0:0 1777", "random": "char 1:8 666", "shm": "folder 0:0 1777", "stderr": "link to /proc/self/fd/2", "stdin": "link to /proc/self/fd/0",
    "stdout": "link to /proc/self/fd/1", "tty": "char 5:0 666", "urandom": "char 1:9 666", "zero": "char 1:5 666",
}


class Krn08(EscapeTest):
    def test_positive_control(self) -> None:
        """The host has some that the probe would open."""
        if caller := root():
            opened = [name for name, answer in self.native(PROBE, caller).findings["opened"].items() if answer == "ok"]
            if not opened:
                not_covered("KRN-08's positive control", "this host has no such device")

    def test_listing(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                findings = self.sandbox(PROBE, caller=caller).findings
                self.assertEqual(findings["listing"], GOLDEN)
                self.assertEqual(set(findings["opened"].values()), {"ENOENT"})
                self.assertEqual((findings["pts"], findings["shm"]), (["ptmx"], []))

    def test_no_controlling_terminal(self) -> None:
        """/dev/tty is whatever terminal the process has: none."""
        for caller in callers():
            answer = self.sandbox("report(tty=attempt(os.open, '/dev/tty', os.O_RDWR))", caller=caller).findings
            self.assertEqual(answer, {"tty": "ENXIO"})

    def test_the_others_work(self) -> None:
        probe = """
open("/dev/null", "wb").write(b"x")
report(zero=open("/dev/zero", "rb").read(2).hex(), random=len(open("/dev/random", "rb").read(16)), full=attempt(os.write, os.open(
       "/dev/full", os.O_WRONLY), b"x"), urandom=len(open("/dev/urandom", "rb").read(16)), stdin=os.path.exists("/dev/stdin"))
"""
        for caller in callers():
            self.assertEqual(self.sandbox(probe, caller=caller).findings,
                             {"zero": "0000", "random": 16, "full": "ENOSPC", "urandom": 16, "stdin": True})


if __name__ == "__main__":
    main()
