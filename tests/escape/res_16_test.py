"""RES-16: use up the quotas that the kernel keeps for each user. Another sandbox, and the host, don't feel it."""

import json

from harness import callers, main, not_covered, root, user
from outside import OutsideTest, with_arguments

QUOTAS = """
import fcntl, signal, time
class event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int),
                ("pad", ctypes.c_char * 64)]
class queue(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("flags", "most", "size", "now")] + [("pad", ctypes.c_long * 4)]
def check(result):
    if result < 0: raise OSError(ctypes.get_errno(), "")
    return result
def timer():
    what = event(); what.signal = 10
    check(_libc.timer_create(1, ctypes.byref(what), ctypes.byref(ctypes.c_void_p())))
number = 0
def message_queue():
    global number
    number += 1
    check(_libc.syscall(240, b"queue%d" % number, os.O_CREAT | os.O_RDONLY, 0o600, ctypes.byref(queue(0, 10, 8192, 0))))
def watch(): check(_libc.inotify_add_watch(watcher, b"/tmp", 2))
watcher = None
def pseudo_terminal(): os.open("/dev/ptmx", os.O_RDWR)
def big_pipe():
    r, w = os.pipe()
    if fcntl.fcntl(w, 1031, 1 << 20) < 1 << 20: raise OSError(errno.EPERM, "")
makers = {"inotify": (lambda: check(_libc.inotify_init1(0)), 1000), "timers": (timer, 200000),
          "queues": (message_queue, 900), "pseudo terminals": (pseudo_terminal, 900)}
def exhaust(name, most):
    make, _ = makers[name]
    made = 0
    try:
        while made < most: make(); made += 1
        return [made, "ok"]
    except OSError as error:
        return [made, name_of(error.errno)]
"""

HOG = QUOTAS + """
found = {}
for name, (_, most) in makers.items(): found[name] = exhaust(name, most)
signal.pthread_sigmask(signal.SIG_BLOCK, {40})
pending = 0
while pending < 200000:
    try: check(_libc.sigqueue(os.getpid(), 40, 0)); pending += 1
    except OSError: break
report(**found, pending=pending)
time.sleep(60)
"""

ONE_OF_EACH = QUOTAS + """
signal.pthread_sigmask(signal.SIG_BLOCK, {40})
watcher = _libc.inotify_init1(0)
report(**{name: exhaust(name, 3)[1] for name in makers}, watch=attempt(watch),
       pending=attempt(lambda: check(_libc.sigqueue(os.getpid(), 40, 0))))
"""

REFUSED = """
report(
    add_key=syscall(248, b"user", b"name", b"secret", 6, -3),
    keyctl=syscall(250, 0, -3, 1),
    request_key=syscall(249, b"user", b"name", None, -3),
    new_user_namespace=syscall(272, 0x10000000),
    io_setup_many=[syscall(206, 60000, ctypes.byref(ctypes.c_ulong())) for _ in range(3)][-1],
)
"""


class Res16(OutsideTest):
    def test_neighbours(self):
        caller = root()
        if caller is None:
            return not_covered("quotas of each sandbox's own", "only root gives each sandbox users of its own")
        alone = self.sandbox(ONE_OF_EACH, caller=caller).findings
        for name in ("inotify", "timers", "pseudo terminals", "watch", "pending"):
            self.assertEqual(alone[name], "ok", name)
        alone_as_user = self.sandbox(ONE_OF_EACH, caller=user()).findings
        alone_natively = self.native(ONE_OF_EACH, caller).findings
        process = self.start(HOG, ["--timeout", "100s"], caller, stdout=-1)
        line = process.stdout.readline().decode()
        self.assertIn("findings:", line)
        found = json.loads(line.removeprefix("findings:"))
        for name, answer in (("inotify", "EMFILE"), ("timers", "EAGAIN")):
            self.assertEqual(found[name][1], answer, f"the hog reached its quota of {name}")
        self.assertEqual(self.assert_peer_works(caller, ONE_OF_EACH).findings, alone)
        self.assertEqual(self.assert_peer_works(user(), ONE_OF_EACH).findings, alone_as_user)
        self.assertEqual(self.native(ONE_OF_EACH, caller).findings, alone_natively, "root's own")

    def test_natively_it_is_felt(self):
        """The positive control: two programs of one user do take each other's quota."""
        caller = user()
        hog = caller.popen(["/usr/bin/python3", self.script(HOG)], stdout=-1)
        try:
            self.assertIn(b"findings:", hog.stdout.readline())
            self.assertEqual(self.native(ONE_OF_EACH, caller).findings["inotify"], "EMFILE")
        finally:
            hog.kill()
            hog.communicate()

    def test_what_is_no_sandbox_s_at_all(self):
        for caller in callers():
            with self.subTest(caller=caller):
                findings = self.sandbox(REFUSED, caller=caller).findings
                for name in ("add_key", "keyctl", "request_key", "new_user_namespace"):
                    self.assertEqual(findings[name], "EPERM", name)
                self.assertEqual(findings["io_setup_many"], "ENOSYS")  # all of fs.aio-max-nr, otherwise

    def test_each_in_turn(self):
        """What one sandbox used up is there for the next: as a user too, who has one quota for all."""
        for caller in callers():
            with self.subTest(caller=caller):
                short = with_arguments(HOG.replace("time.sleep(60)", ""))
                for _ in range(2):
                    findings = self.sandbox(short, caller=caller).findings
                    self.assertGreater(findings["inotify"][0], 50)
                    self.assertGreater(findings["timers"][0], 1000)


if __name__ == "__main__":
    main()
