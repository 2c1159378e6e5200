"""RES-09: use up descriptors, watches, timers and waiting sets, in one process and in its children."""

from pathlib import Path

from harness import callers, main
from outside import OutsideTest

PROBE = """
import select, socket
most = int(sys.argv[1])
class event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int),
                ("pad", ctypes.c_char * 64)]
def check(result):
    if result < 0: raise OSError(ctypes.get_errno(), "")
    return result
def timer():
    what = event(); what.signal = 10
    check(_libc.timer_create(1, ctypes.byref(what), ctypes.byref(ctypes.c_void_p())))
makers = {
    "files": lambda: os.open("/dev/null", os.O_RDONLY),
    "pipes": os.pipe,
    "sockets": lambda: os.dup(socket.socket().detach()),
    "epoll": lambda: keep.append(select.epoll()),
    "eventfd": lambda: check(_libc.eventfd(0, 0)),
    "timerfd": lambda: check(_libc.timerfd_create(1, 0)),
    "signalfd": lambda: check(_libc.signalfd(-1, bytes(128), 0)),
    "inotify": lambda: check(_libc.inotify_init1(0)),
    "timers": timer,
}
keep = []
def exhaust(make):
    made = 0
    try:
        while made < most: make(); made += 1
        answer = "ok"
    except OSError as error:
        answer = error.errno
    return made, answer
found = {}
for name, make in makers.items():
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:  # then its child does the same on top
        made, answer = exhaust(make)
        child = os.fork()
        if child == 0:
            exhaust(make)
            os._exit(0)
        os.waitpid(child, 0)
        os.write(w, b"%d %s" % (made, str(answer).encode()))
        os._exit(0)
    os.close(w)
    os.waitpid(pid, 0)
    made, answer = os.read(r, 100).decode().split()
    os.close(r)
    found[name] = [int(made), answer if answer == "ok" else name_of(int(answer))]
report(**found)
"""


def open_files_of_the_host() -> int:
    return int(Path("/proc/sys/fs/file-nr").read_text().split()[0])


class Res09(OutsideTest):
    def test_everything(self):
        for caller in callers():
            with self.subTest(caller=caller):
                before = open_files_of_the_host()
                result = self.sandbox(PROBE, ["--open-files", "256"], caller, arguments=["200000"])
                self.assertEqual(result.status, "ok", result)
                for name, (made, answer) in result.findings.items():
                    self.assertIn(answer, ("EAGAIN",) if name == "timers" else ("EMFILE", "ENFILE"), name)
                    self.assertLess(made, 200000 if name == "timers" else 256, name)
                self.assertLess(open_files_of_the_host(), before + 5000)
                self.assert_peer_works(caller)

    def test_many_children(self):
        probe = """
import time
children = []
for _ in range(40):
    r, w = os.pipe()
    if os.fork() == 0:
        try:
            while True: os.open("/dev/null", os.O_RDONLY)
        except OSError: pass
        os.write(w, b"x"); time.sleep(60)
    os.read(r, 1)
    os.close(r); os.close(w)
print("full", flush=True)
time.sleep(60)
"""
        for caller in callers():
            with self.subTest(caller=caller):
                before = open_files_of_the_host()
                process = self.start(probe, ["--timeout", "60s"], caller, stdout=-1)
                self.assertEqual(process.stdout.readline(), b"full\n")
                self.assertLess(open_files_of_the_host(), before + 40 * 1024 + 8192)
                with open("/dev/null"):
                    self.assert_peer_works(caller)

    def test_the_limit_can_not_be_raised(self):
        probe = """
import resource
def to(soft, hard): resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
def tried(*limits):
    try: to(*limits); return "ok"
    except (ValueError, OSError): return "refused"
report(more=tried(1025, 4096), less=tried(100, 200))
"""
        for caller in callers():
            with self.subTest(caller=caller):
                self.assertEqual(self.sandbox(probe, caller=caller).findings, {"more": "refused", "less": "ok"})

    def test_native_and_legal(self):
        for caller in callers():
            with self.subTest(caller=caller):
                raised = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))\n"
                control = self.native(raised + PROBE, caller, arguments=["600"]).findings
                self.assertEqual(control["files"], [600, "ok"])
                self.assertEqual(self.sandbox(PROBE, caller=caller, arguments=["100"]).findings,
                                 {name: [100, "ok"] for name in control})


if __name__ == "__main__":
    main()
