"""PRC-02: read another process: ptrace, process_vm_readv, /proc/PID/mem and its neighbours, pidfd_getfd. Inside, the other
process is init, whose memory is a copy of belljar's, secrets included."""

import subprocess

from harness import PYTHON, EscapeTest, callers, main

# argv: the pid to look into. The canary's halves are joined only here.
PROBE = """
pid, canary = int(sys.argv[1]), (sys.argv[2] + sys.argv[3]).encode()
def read_memory():
    "Every readable area of the process."
    found = False
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            first, last = (int(edge, 16) for edge in line.split()[0].split("-"))
            if line.split()[1][0] == "r" and last - first < 1 << 28 and "[v" not in line:
                memory.seek(first)
                try:
                    found = found or canary in memory.read(last - first)
                except OSError:
                    pass
    if not found:
        raise OSError(errno.ENODATA, "no canary")
class iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
buffer = ctypes.create_string_buffer(8)
local, remote = iovec(ctypes.addressof(buffer), 8), iovec(0x400000, 8)
files = {name: attempt(lambda: open(f"/proc/{pid}/{name}", "rb").read(64)) for name in (
    "mem", "maps", "smaps", "environ", "auxv", "pagemap", "stack", "syscall", "io", "personality", "timers", "map_files/x", "numa_maps")}
links = {name: attempt(os.readlink, f"/proc/{pid}/{name}") for name in ("exe", "cwd", "root", "ns/mnt", "ns/user", "ns/net", "fd/0", "fd/1")}
answers = dict(
    memory=attempt(read_memory),
    vm_readv=syscall(310, pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0),
    vm_writev=syscall(311, pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0),
    write_mem=attempt(os.open, f"/proc/{pid}/mem", os.O_RDWR),
    listing=attempt(os.listdir, f"/proc/{pid}/fd"),
    kcmp=syscall(312, os.getpid(), pid, 1, 0, 0),
    pidfd_getfd=syscall(438, os.pidfd_open(pid), 0, 0),
    madvise=syscall(440, os.pidfd_open(pid), ctypes.byref(local), 1, 20, 0),
    setns=syscall(308, os.pidfd_open(pid), 0x20000000),
    seize=syscall(101, 0x4206, pid, 0, 0),
    attach=syscall(101, 16, pid, 0, 0))
report(answers=answers, files=files, links=links, strings=[line for line in content(f"/proc/{pid}/cmdline").split("\\0") if line])
"""

# What must be refused by permission; natively the same calls succeed, or fail for another reason.
REFUSED = {"EPERM", "EACCES", "ESRCH", "ENOENT"}


class Prc02(EscapeTest):
    def arguments(self, pid) -> list[str]:
        return [str(pid), self.canary[:15], self.canary[15:]]

    def test_positive_control(self) -> None:
        """Outside, a process of the same user is an open book."""
        keeper = f"""
import ctypes, time
secret = "canary-" + {self.canary.removeprefix("canary-")!r}
ctypes.CDLL(None).prctl(0x59616d61, -1, 0, 0, 0)  # PR_SET_PTRACER, for hosts with Yama
print("up", flush=True)
time.sleep(60)
"""
        for caller in callers():
            process = caller.popen([PYTHON, "-c", keeper], stdout=subprocess.PIPE)
            self.addCleanup(process.stdout.close)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            process.stdout.readline()
            findings = self.native(PROBE, caller, arguments=self.arguments(process.pid)).findings
            answers = findings["answers"]
            self.assertEqual((answers["memory"], answers["seize"], answers["pidfd_getfd"], answers["write_mem"]), ("ok",) * 4, answers)
            self.assertEqual(findings["files"]["environ"], "ok")
            self.assertEqual(findings["links"]["ns/mnt"], "ok")
            self.assertNotIn(answers["vm_readv"], REFUSED)

    def test_init(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                secrets = {"OPENAI_API_KEY": self.canary, "HIDDEN": self.canary}
                findings = self.sandbox(PROBE, caller=caller, env=secrets, arguments=self.arguments(1)).findings
                for name, answer in {**findings["answers"], **findings["files"], **findings["links"]}.items():
                    # auxv and the like open, but read as empty, where they are of an undumpable process.
                    self.assertIn(answer, REFUSED, name)
                self.assertEqual(findings["strings"], ["belljar-init"])

    def test_neighbours(self) -> None:
        """A child of the program's own is read by /proc only, not by the calls that are refused to all."""
        probe = """
import subprocess
child = subprocess.Popen(["sleep", "60"], env={"OWN": "environment"})
while "sleep" not in content(f"/proc/{child.pid}/cmdline"):
    pass
report(environment=content(f"/proc/{child.pid}/environ"), ptrace=syscall(101, 0x4206, child.pid, 0, 0),
       readv=syscall(310, child.pid, 0, 0, 0, 0, 0), getfd=syscall(438, os.pidfd_open(child.pid), 0, 0),
       own=len(open("/proc/self/maps").read()) > 100)
child.kill()
"""
        for caller in callers():
            findings = self.sandbox(probe, caller=caller).findings
            self.assertEqual(findings, {"environment": "OWN=environment\0", "ptrace": "EPERM", "readv": "EPERM", "getfd": "EPERM",
                                        "own": True})


if __name__ == "__main__":
    main()
