"""RES-04: memory that the kernel holds for a program: pipes, socket buffers, page tables, descriptors in flight."""

from harness import callers, main, user, root
from outside import MIB, OutsideTest, available_memory, limits

LIMIT = 64 * MIB

# Each probe takes up to arguments[1] MiB, then reports how much it got. A limit may kill it, or refuse it more.
PROBES = {
    "pipes": """
import fcntl
def one():
    r, w = os.pipe()
    try: fcntl.fcntl(w, 1031, 1 << 20)
    except OSError: pass
    os.set_blocking(w, False)
    got = 0
    try:
        while True: got += os.write(w, bytes(65536))
    except BlockingIOError: pass
    return got
""",
    "unix sockets": """
import socket
keep = []
def one():
    a, b = socket.socketpair()
    keep.extend([a, b])
    a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    a.setblocking(False)
    got = 0
    try:
        while True: got += a.send(bytes(32768))
    except BlockingIOError: pass
    return got
""",
    "tcp sockets": """
import socket
keep = []
server = socket.create_server(("127.0.0.1", 0))
def one():
    a = socket.socket(); b = None
    a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    a.connect(server.getsockname()); b = server.accept()[0]
    keep.extend([a, b])
    a.setblocking(False)
    got = 0
    try:
        while True: got += a.send(bytes(65536))
    except BlockingIOError: pass
    return got
""",
    "udp sockets": """
import socket
keep = []
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def one():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    keep.append(s)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    s.bind(("127.0.0.1", 0))
    for _ in range(20): sender.sendto(bytes(32768), s.getsockname())
    return queued(s.getsockname()[1])
def queued(port):
    for line in open("/proc/net/udp"):
        fields = line.split()
        if fields[1].endswith(":%04X" % port): return int(fields[4].split(":")[1], 16)
    return 0
""",
    "page tables": """
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
def one():
    size = 1 << 30
    where = libc.mmap(None, size, 1, 0x4022, -1, 0)  # PROT_READ, private, anonymous, no reserve
    if where == ctypes.c_void_p(-1).value: raise OSError(ctypes.get_errno(), "mmap")
    libc.madvise(ctypes.c_void_p(where), ctypes.c_size_t(size), 15)  # no huge pages
    for offset in range(0, size, 2 << 20): ctypes.c_char.from_address(where + offset).value
    return (size >> 21) * 4096
""",
}
COMMON = """
import time, threading
goal = int(sys.argv[1]) << 20
got = 0
try:
    while got < goal:
        more = one()
        if more == 0: raise OSError(errno.ENOBUFS, "nothing fits any more")
        got += more
        print("got", got, flush=True)
    report(got=got, error="ok")
except OSError as error:
    report(got=got, error=name_of(error.errno))
except MemoryError:
    report(got=got, error="ENOMEM")
time.sleep(0.3)
"""


class Res04(OutsideTest):
    def last_got(self, result) -> int:
        lines = [line for line in result.stdout.splitlines() if line.startswith("got ")]
        return int(lines[-1].split()[1]) if lines else 0

    def hold(self, kind: str, most_uncounted: int) -> None:
        probe = PROBES[kind] + COMMON
        caller = root() or user()
        control = self.native(probe, caller, arguments=["80"])
        self.assertGreaterEqual(control.findings["got"], 80 * MIB, control)
        before = available_memory()
        result = self.sandbox(probe, [*limits(caller, memory="64M"), "--timeout", "10s"], caller, arguments=["2000"])
        if caller.uid != 0:
            return  # without control groups there is no limit to name; the others are tried below
        self.assertLessEqual(self.last_got(result), most_uncounted, result)
        if result.status != "memory":
            self.assertIn(result.findings["error"], ("EMFILE", "ENOBUFS", "ENOMEM", "EAGAIN"), result)
        self.assertLessEqual(result.record["usage"]["memory_peak_bytes"], LIMIT)
        self.assertGreater(available_memory(), before - 2048 * MIB)
        self.assert_peer_works(caller)

    def test_pipes(self):
        self.hold("pipes", LIMIT)

    def test_unix_sockets(self):
        self.hold("unix sockets", LIMIT)

    def test_tcp_sockets(self):
        # On cgroup v1 these are counted apart and stop at a share of the limit, give or take one socket's buffers.
        self.hold("tcp sockets", LIMIT)

    def test_udp_sockets(self):
        self.hold("udp sockets", LIMIT)

    def test_page_tables(self):
        self.hold("page tables", LIMIT)

    def test_page_tables_are_sampled(self):
        caller = user()
        result = self.sandbox(PROBES["page tables"] + COMMON, ["--timeout", "20s"], caller, arguments=["2000"])
        self.assertEqual(result.status, "memory", result)
        self.assertLess(self.last_got(result), 512 * MIB)

    def test_descriptors_in_flight(self):
        probe = """
import array, socket
most = int(sys.argv[1])
keep, sent, refused = [], 0, None
files = [os.open("/dev/null", os.O_RDONLY) for _ in range(100)]
data = array.array("i", files)
try:
    while sent < most:
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        keep.append((a, b)); a.setblocking(False)
        try:
            for _ in range(8):
                a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, data)]); sent += 100
        except BlockingIOError: pass
except OSError as error:
    refused = name_of(error.errno)
report(sent=sent, refused=refused)
"""
        for caller in callers():
            with self.subTest(caller=caller):
                raised = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))\n"
                control = self.native(raised + probe, caller, arguments=["5000"])
                self.assertGreaterEqual(control.findings["sent"], 5000)
                result = self.sandbox(probe, caller=caller, arguments=["5000"])
                self.assertEqual(result.findings["refused"], "ETOOMANYREFS")
                self.assertLessEqual(result.findings["sent"], 1300)

    def test_failed_lookups(self):
        probe = """
for i in range(300000):
    try: os.stat("/tmp/%d" % i)
    except OSError: pass
report(looked=i + 1)
"""
        for caller in callers():
            with self.subTest(caller=caller):
                result = self.sandbox(probe, limits(caller, memory="64M"), caller)
                self.assertIn(result.status, ("ok", "memory"))
                if caller.uid == 0:
                    self.assertLessEqual(result.record["usage"]["memory_peak_bytes"], LIMIT)

    def test_a_legal_use(self):
        probe = """
import socket
r, w = os.pipe(); a, b = socket.socketpair()
server = socket.create_server(("127.0.0.1", 0))
c = socket.create_connection(server.getsockname()); d = server.accept()[0]
moved = 0
import threading
def send(s):
    for _ in range(200): s.sendall(bytes(65536))
    s.shutdown(socket.SHUT_WR)
for x, y in ((a, b), (c, d)):
    t = threading.Thread(target=send, args=(x,)); t.start()
    while (chunk := y.recv(1 << 20)): moved += len(chunk)
    t.join()
report(moved=moved)
"""
        for caller in callers():
            with self.subTest(caller=caller):
                result = self.sandbox(probe, limits(caller, memory="64M"), caller)
                self.assertEqual((result.status, result.findings["moved"]), ("ok", 2 * 200 * 65536))


if __name__ == "__main__":
    main()
