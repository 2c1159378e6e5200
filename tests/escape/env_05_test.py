"""ENV-05: find what an earlier run left behind. Run 1 writes a canary wherever it can and is killed; run 2 looks everywhere."""

import os
import signal
import subprocess

from harness import EscapeTest, callers, descendants, main

# Leaves the canary (argv[1]) in files, deleted files, shared memory, queues, sockets, and names; then waits to be killed.
WRITE = """
import itertools, mmap, socket, time
canary = sys.argv[1]
kept = []
for folder, folders, files in itertools.chain(os.walk("/dev/shm"), os.walk("/")):
    folders[:] = [name for name in folders if os.path.join(folder, name) not in ("/proc", "/sys", "/usr", "/dev")]
    for path in (os.path.join(folder, canary), os.path.join(folder, "." + canary), *(os.path.join(folder, name) for name in files)):
        try:
            with open(path, "ab") as file:
                file.write(canary.encode())
            kept.append(path)
        except OSError:
            pass
open_file = open("/tmp/deleted", "w+"); open_file.write(canary); open_file.flush(); os.unlink("/tmp/deleted")
listener = socket.socket(socket.AF_UNIX); listener.bind("\\0" + canary); listener.listen()
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
segment = libc.shmget(0x7e57, 4096, 0o1666)
ctypes.memmove(libc.shmat(segment, None, 0), canary.encode(), len(canary))
queue = libc.msgget(0x7e57, 0o1666)
libc.msgsnd(queue, (ctypes.c_long * 8)(*[1] * 8), 56, 0)
mapped = mmap.mmap(-1, 1 << 20); mapped.write(canary.encode() * 1000)
report(kept=kept, segment=segment, queue=queue)
"""

LOOK = """
canary = sys.argv[1].encode()
hits = []
for folder, folders, files in os.walk("/", followlinks=False):
    folders[:] = [name for name in folders if os.path.join(folder, name) not in ("/proc", "/sys", "/usr")]
    if canary.decode() in folder:
        hits.append(folder)
    for name in files:
        path = os.path.join(folder, name)
        try:
            if canary.decode() in name or (os.path.isfile(path) and canary in open(path, "rb").read()):
                hits.append(path)
        except OSError:
            pass
ipc = {name: len(open("/proc/sysvipc/" + name).readlines()) - 1 for name in ("shm", "msg", "sem")}
sockets = [line for line in open("/proc/net/unix") if canary.decode() in line]
processes = [pid for pid in os.listdir("/proc") if pid.isdigit() and canary in content(f"/proc/{pid}/cmdline").encode()
             and int(pid) != os.getpid()]
report(hits=hits, ipc=ipc, sockets=sockets, processes=processes, home=os.listdir(os.environ["HOME"]),
       shm=os.listdir("/dev/shm"), tmp=sorted(os.listdir("/tmp")))
"""


class Env05(EscapeTest):
    def test_positive_control(self) -> None:
        """Run 1 itself, looking where run 2 looks, finds what it wrote."""
        for caller in callers():
            findings = self.sandbox(WRITE + LOOK, caller=caller, arguments=[self.canary]).findings
            self.assertTrue([path for path in findings["hits"] if path.startswith("/tmp/home/")], findings)
            self.assertTrue([path for path in findings["hits"] if path.startswith("/dev/shm/")], findings)
            queues = 1 if caller.uid == 0 else 0  # where memory is sampled there are no System V queues
            self.assertEqual((findings["ipc"]["shm"], findings["ipc"]["msg"], len(findings["sockets"])), (1, queues, 1), findings)

    def killed_run(self, caller, how: str) -> None:
        """Run 1, ended by its deadline, by SIGTERM, or with belljar itself killed."""
        flags = ["--timeout", "5s"] if how == "deadline" else []
        probe = WRITE + "time.sleep(60)\n"
        argv = self.command_line(probe, flags, caller, [self.canary])
        argv.remove("--json")
        process = caller.popen(argv, stdout=subprocess.PIPE)
        self.assertIn(b"/tmp/home/", process.stdout.readline())
        below = descendants(process.pid)
        if how != "deadline":
            process.send_signal(signal.SIGKILL if how == "killed" else signal.SIGTERM)
        process.wait(timeout=20)
        process.stdout.close()
        self.wait_for(lambda: not [pid for pid in below if os.path.exists(f"/proc/{pid}")], "the end of run 1")

    def test_after_a_run_that_was_killed(self) -> None:
        for caller in callers():
            for how in "deadline", "terminated", "killed":
                with self.subTest(caller=caller.name, how=how):
                    self.killed_run(caller, how)
                    findings = self.sandbox(LOOK, caller=caller, arguments=[self.canary]).findings
                    self.assertEqual((findings["hits"], findings["sockets"], findings["processes"]), ([], [], []))
                    self.assertEqual(findings["ipc"], {"shm": 0, "msg": 0, "sem": 0})
                    self.assertEqual((findings["home"], findings["shm"], findings["tmp"]), ([], [], ["home"]))
                    self.assert_not_on_host(caller)

    def assert_not_on_host(self, caller) -> None:
        """Nor did run 1 leave it in a place of the host's that a later run could be given."""
        places = ["/run/belljar", "/var/cache/belljar", "/dev/shm", "/var/tmp", str(caller.home)]
        grep = subprocess.run(["grep", "-rlsa", "--exclude=probe.py", self.canary, *places], capture_output=True, text=True)
        self.assertEqual(grep.stdout, "")
        for place in places:
            for folder, folders, files in os.walk(place):
                self.assertFalse([name for name in folders + files if self.canary in name], folder)

    def test_what_was_handed_over_stays(self) -> None:
        """A folder mounted rw is the way to keep something."""
        for caller in callers():
            keep = self.host_folder(f"keep-{caller}", caller)
            flags = ["--mount", f"{keep}:/keep:rw"]
            self.sandbox("open('/keep/file', 'w').write('kept')", flags, caller)
            self.assertEqual((keep / "file").read_text(), "kept")
            self.assertEqual(self.sandbox(["cat", "/keep/file"], flags, caller).stdout, "kept")


if __name__ == "__main__":
    main()
