"""RES-07: fill the writable space by write, fallocate, truncate with mmap, and by files without number."""

from harness import callers, main
from outside import MIB, OutsideTest, free_bytes

FILL = """
import mmap, signal
kind, folder, most = sys.argv[1], sys.argv[2], int(sys.argv[3]) << 20
path = os.path.join(folder, "fill")
got, refused = 0, "ok"
try:
    if kind == "write":
        with open(path, "wb", buffering=0) as file:
            while got < most: got += file.write(bytes(1 << 20))
    elif kind == "fallocate":
        fd = os.open(path, os.O_CREAT | os.O_RDWR)
        while got < most:
            os.posix_fallocate(fd, got, 1 << 20); got += 1 << 20
    elif kind == "files":
        for number in range(most >> 20):
            os.close(os.open(f"{path}{number}", os.O_CREAT | os.O_WRONLY)); got += 1
    elif kind == "mmap":  # the end is a SIGBUS; a child takes it
        fd = os.open(path, os.O_CREAT | os.O_RDWR)
        os.ftruncate(fd, most)
        pid = os.fork()
        if pid == 0:
            area = mmap.mmap(fd, most)
            for at in range(0, most, 4096): area[at] = 1
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        got = os.fstat(fd).st_blocks * 512
        refused = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "ok"
except OSError as error:
    refused = name_of(error.errno)
report(got=got, refused=refused)
if sys.argv[4:] == ["fail"]: sys.exit(1)
"""

SPACE = 50 * MIB


class Res07(OutsideTest):
    def fill(self, kind: str, refusal: str) -> None:
        for caller in callers():
            here = self.host_folder(f"{kind}-{caller}", caller)
            control = self.native(FILL, caller, arguments=[kind, str(here), "60"])
            self.assertEqual(control.findings["refused"], "ok")
            self.assertGreaterEqual(control.findings["got"], 60 * MIB)
            for folder in ("/tmp", "/dev/shm", "/tmp/home"):
                with self.subTest(caller=caller, folder=folder):
                    before = free_bytes()
                    result = self.sandbox(FILL, caller=caller, arguments=[kind, folder, "10240"])
                    self.assertEqual(result.status, "ok", result)
                    self.assertEqual(result.findings["refused"], refusal)
                    self.assertLessEqual(result.findings["got"], SPACE)
                    self.assertGreater(result.findings["got"], SPACE - 2 * MIB)
                    self.assertLessEqual(result.record["usage"]["disk_written_bytes"], SPACE)
                    self.assertGreater(free_bytes(), before - 1024 * MIB)

    def test_write(self):
        self.fill("write", "ENOSPC")

    def test_fallocate(self):
        self.fill("fallocate", "ENOSPC")

    def test_mmap(self):
        self.fill("mmap", "SIGBUS")

    def test_files(self):
        for caller in callers():
            with self.subTest(caller=caller):
                here = self.host_folder(f"files-{caller}", caller)
                self.assertEqual(self.native(FILL, caller, arguments=["files", str(here), "2100"]).findings,
                                 {"got": 2100, "refused": "ok"})
                result = self.sandbox(FILL, ["--tmp-inodes", "2000"], caller, arguments=["files", "/tmp", "10000"])
                self.assertEqual(result.findings["refused"], "ENOSPC")
                self.assertLess(result.findings["got"], 2000)
                self.assertGreater(result.findings["got"], 1900)

    def test_the_result_says_so(self):
        for caller in callers():
            for arguments, flags in ((["write", "/tmp", "100", "fail"], []),
                                     (["files", "/tmp", "100", "fail"], ["--tmp-inodes", "64"])):
                with self.subTest(caller=caller, arguments=arguments):
                    result = self.sandbox(FILL, flags, caller, arguments=arguments)
                    self.assertEqual((result.status, result.exit_status), ("disk", 1), result)
                    self.assertEqual(result.findings["refused"], "ENOSPC")

    def test_elsewhere(self):
        probe = """
places = ["/", "/usr", "/etc", "/dev", "/var/tmp", "/var", "/run", "/proc", "/sys", "/app", "/home", "/root", "/opt"]
def write(place):
    with open(os.path.join(place, "fill"), "wb") as file: file.write(b"x")
report(**{place: attempt(write, place) for place in places})
"""
        for caller in callers():
            with self.subTest(caller=caller):
                findings = self.sandbox(probe, caller=caller).findings
                self.assertEqual([place for place, answer in findings.items() if answer == "ok"], [])

    def test_a_legal_amount(self):
        for caller in callers():
            with self.subTest(caller=caller):
                self.assertEqual(self.sandbox(FILL, caller=caller, arguments=["write", "/tmp", "45"]).findings,
                                 {"got": 45 * MIB, "refused": "ok"})
                self.assertEqual(self.sandbox(FILL, ["--tmp-size", "70M"], caller,
                                              arguments=["write", "/tmp", "60"]).findings["got"], 60 * MIB)


if __name__ == "__main__":
    main()
