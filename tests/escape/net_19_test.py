"""NET-19: use up the way out: connections without number, slow and huge heads, endless bodies, clients that never read."""
# ctest: serial
# ctest: timeout 240

import json
import subprocess
import time
from pathlib import Path

from allowed import AllowedTest
from harness import callers, main
from internet import PROBE, Server

FLOOD = PROBE + """
import time
sockets = []
def flood(port, data, count):
    for _ in range(count):
        try:
            client = socket.socket(); client.settimeout(0.2); client.connect(("allowed.example", port) if port != 888 else PROXY)
            client.setblocking(False); sockets.append(client)
            client.send(data)
        except OSError:
            pass
print("ready", flush=True)
end = time.monotonic() + 8
while time.monotonic() < end:
    flood(80, b"GET / HTTP/1.1\\r\\nX: ", 100)              # slow heads
    flood(888, b"CONNECT allowed.example:80 HTTP/1.1\\r\\n", 100)
    flood(888, b"\\x05", 100)
    for client in sockets[-200:]:
        try: client.send(b"x" * 65536)                      # huge heads
        except OSError: pass
    if len(sockets) > 800:
        for client in sockets: client.close()
        sockets.clear()
    for _ in range(200):
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(os.urandom(40), ("127.0.0.1", 53))
"""


class Net19(AllowedTest):
    @classmethod
    def serve(cls) -> None:
        cls.server = Server(80)
        cls.keeping = Server(81, keeps=True)
        cls.endless = Server(82, reply=b"x" * (8 << 20))
        cls.patient = Server(83, ending=b"\r\n0\r\n\r\n")

    def test_neighbours_are_unharmed(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                attacker = self.start(FLOOD, ["--allow", "allowed.example", "--timeout", "60"], caller, stdout=subprocess.PIPE)
                attacker.stdout.readline()
                pid = subprocess.run(["pgrep", "-P", str(attacker.pid), "-f", "^belljar-egress$"], capture_output=True, text=True).stdout.strip()
                largest = files = 0
                fetched = 0
                while attacker.poll() is None:
                    peer = self.sandbox(PROBE + "report(answer=get('allowed.example'))", ["--allow", "allowed.example"], caller)
                    self.assertTrue(peer.findings["answer"].endswith("welcome"), peer.findings)
                    fetched += 1
                    try:
                        status = Path(f"/proc/{pid}/status").read_text()
                        largest = max(largest, int(status.split("VmRSS:")[1].split()[0]))
                        files = max(files, len(list(Path(f"/proc/{pid}/fd").iterdir())))
                    except (OSError, IndexError):
                        pass
                self.assertGreater(fetched, 3)
                self.assertGreater(largest, 0)
                self.assertLess(largest, 100 << 10)
                self.assertLess(files, 256 * 6 + 256)
                self.assertEqual(attacker.wait(30), 0)

    def test_memory_of_a_thousand_connections(self) -> None:
        """What all connections together have in memory is bounded: those that hold most go, and the others go on."""
        probe = PROBE + """
import sys, time
size, held = int(sys.argv[1]), []
for n in range(1000):
    held.append(socket.create_connection(PROXY if n % 2 else ("allowed.example", 80), 20))
    try: held[-1].sendall(b"GET http://allowed.example/ HTTP/1.1\\r\\nHost: allowed.example\\r\\nX: " + b"x" * size)
    except OSError: pass   # ended by now
time.sleep(3)
def is_open(client):
    client.setblocking(False)
    try: return client.recv(1) != b""
    except BlockingIOError: return True
    except OSError: return False
report(open=sum(is_open(client) for client in held), neighbour=get("allowed.example"))
"""
        flags = ["--allow", "allowed.example", "--net-connections", "2000", "--net-rate", "100000", "--open-files", "4096", "--timeout", "60"]
        for caller in callers():
            for size in 100, 60000:
                with self.subTest(caller=caller.name, size=size):
                    run = caller.popen(self.command_line(probe, flags, caller, [str(size)]), stdout=subprocess.PIPE)
                    largest = 0
                    while run.poll() is None:
                        pid = subprocess.run(["pgrep", "-P", str(run.pid), "-f", "^belljar-egress$"], capture_output=True, text=True).stdout.strip()
                        try:
                            largest = max(largest, int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]))
                        except (OSError, IndexError):
                            pass
                        time.sleep(0.05)
                    record = json.loads(run.communicate()[0])
                    found = json.loads(record["stdout"].removeprefix("findings:"))
                    self.assertTrue(found["neighbour"].endswith("welcome"), found)
                    self.assertGreater(largest, 0)
                    self.assertLess(largest, 30 << 10)
                    denials = {(denial["target"], denial["rule"]): denial["count"] for denial in record["denials"]}
                    if size == 100:
                        self.assertEqual((found["open"], denials), (1000, {}))
                        continue
                    self.assertGreater(found["open"], 100)
                    why = "the memory of all connections together is used up"
                    self.assertEqual(set(denials), {("allowed.example:80", why), ("the proxy", why)})
                    self.assertEqual(sum(denials.values()), 1000 - found["open"])

    def test_large_request_beside_many_connections(self) -> None:
        """Each has little room then, and what waits for it goes on by itself."""
        probe = PROBE + """
held = [socket.create_connection(("allowed.example", 81), 20) for _ in range(300)]
body = b"1\\r\\nx\\r\\n" * 15000 + b"0\\r\\n\\r\\n"
head = b"POST / HTTP/1.1\\r\\nHost: allowed.example:83\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"
report(answer=talk(("allowed.example", 83), head + body))
"""
        flags = ["--allow", "allowed.example:81,83", "--net-connections", "2000", "--net-rate", "100000"]
        for caller in callers():
            with self.subTest(caller=caller.name):
                self.assertTrue(self.sandbox(probe, flags, caller).findings["answer"].endswith("welcome"))

    def test_connections_that_the_kernel_remembers(self) -> None:
        """Of those that a program begins and drops, only some a second take up its memory."""
        probe = PROBE + """
import time
target, start = (socket.gethostbyname("allowed.example"), 80), time.monotonic()
for begun in range(1, 20001):
    with socket.socket() as client:
        client.setblocking(False)
        client.connect_ex(target)
    if begun >= 1000 and time.monotonic() - start > 2: break
report(begun=begun, kept=int(content("/proc/sys/net/netfilter/nf_conntrack_count")), seconds=time.monotonic() - start)
"""
        for caller in callers():
            with self.subTest(caller=caller.name):
                found = self.sandbox(probe, ["--allow", "allowed.example", "--net-rate", "10"], caller).findings
                self.assertLess(found["kept"], 40 + 20 * found["seconds"] + 20)
                control = self.sandbox(probe, ["--allow", "allowed.example", "--net-rate", "100000"], caller).findings
                self.assertGreater(control["kept"], 40 + 20 * control["seconds"] + 20)

    def test_limits(self) -> None:
        probe = PROBE + """
import time
held = []
for _ in range(12):
    try: held.append(socket.create_connection(("allowed.example", 81), 5))
    except ConnectionResetError: pass   # refused before connect(2) returned
time.sleep(0.5)
def is_open(client):
    client.settimeout(0.3)
    try: return client.recv(1) != b""
    except TimeoutError: return True
    except OSError: return False
report(open=sum(is_open(client) for client in held))
"""
        flags = ["--allow", "allowed.example:80,81,82"]
        for caller in callers():
            with self.subTest(caller=caller.name):
                result = self.sandbox(probe, [*flags, "--net-connections", "5"], caller)
                self.assertEqual(result.findings["open"], 5)
                self.assertEqual({(d["target"], d["rule"], d["hint"]) for d in result.record["denials"]},
                                 {("allowed.example:81", "5 connections at once", "--net-connections")})
                self.assertGreaterEqual(sum(d["count"] for d in result.record["denials"]), 7)
                result = self.sandbox(PROBE + "report(n=[len(talk(('allowed.example', 82), b'hello', 5)) for _ in range(3)])", [*flags, "--net-size", "10M"], caller)
                self.assertLess(sum(result.findings["n"]), (12 << 20))
                self.assertEqual(result.findings["n"][0], 8 << 20)
                self.assertIn("--net-size", {d["hint"] for d in result.record["denials"]})
                many = PROBE + """
import time
held = [socket.create_connection(("allowed.example", 81), 5) for _ in range(20)]
for client in held:
    client.setblocking(False)
    try: client.send(b"z" * 400000)
    except OSError: pass
time.sleep(1)
report(done=True)
"""
                for size, most in ("0", 0), ("1K", 1024):
                    record = self.sandbox(many, [*flags, "--net-size", size], caller).record
                    self.assertLessEqual(record["usage"]["net_sent_bytes"] + record["usage"]["net_received_bytes"], most)
                    self.assertEqual({d["hint"] for d in record["denials"]}, {"--net-size"})
                start = time.monotonic()
                result = self.sandbox(PROBE + "a = socket.create_connection(('allowed.example', 81)); a.settimeout(20); a.sendall(b'x'); a.recv(999)\ntry: report(end=len(a.recv(1)))\nexcept OSError as e: report(end=name_of(e.errno))",
                                      [*flags, "--net-idle", "500ms"], caller)
                self.assertEqual(result.findings["end"], "ECONNRESET")
                self.assertLess(time.monotonic() - start, 10)
                self.assertEqual([(d["target"], d["rule"], d["hint"]) for d in result.record["denials"]],
                                 [("allowed.example:81", "the limit of 500 ms without a byte", "--net-idle")])
                busy = PROBE + """
import time
with socket.create_connection(("allowed.example", 81)) as client:
    start, end = time.monotonic(), "open"
    while end == "open" and time.monotonic() < start + 3:
        try: client.sendall(b"x")
        except OSError as e: end = "ended"
        time.sleep(0.05)
    report(end=end)
"""
                self.assertEqual(self.sandbox(busy, flags, caller).findings["end"], "open")
                result = self.sandbox(busy, [*flags, "--net-time", "1s"], caller)
                self.assertEqual(result.findings["end"], "ended")
                self.assertEqual([(d["target"], d["rule"], d["hint"]) for d in result.record["denials"]],
                                 [("allowed.example:81", "the limit of 1000 ms in all", "--net-time")])
                # 20 at once, then 10 a second.
                result = self.sandbox(PROBE + "import time\nt = time.monotonic()\nfor _ in range(40): get('allowed.example')\nreport(s=time.monotonic() - t)", [*flags, "--net-rate", "10"], caller)
                self.assertGreater(result.findings["s"], 1.5)

    def test_heads_are_bounded(self) -> None:
        probe = PROBE + """
def pour(target, first, more):
    "How much goes in before it is refused."
    with socket.create_connection(target, 5) as client:
        sent = 0
        try:
            client.sendall(first)
            for _ in range(2000):
                client.sendall(more); sent += len(more)
            return "everything"
        except OSError:
            return "refused"
report(head=pour(("allowed.example", 80), b"GET / HTTP/1.1\\r\\nX: ", b"x" * 65536), proxy=pour(PROXY, b"GET http://allowed.example/ HTTP/1.1\\r\\nX: ", b"x" * 65536),
       lines=pour(PROXY, b"GET http://allowed.example/ HTTP/1.1\\r\\n", b"X: y\\r\\n" * 10000), socks=pour(PROXY, b"\\x04\\x01\\0\\x50\\0\\0\\0\\1", b"x" * 65536),
       hello=pour(("allowed.example", 443), b"\\x16\\x03\\x01\\x40\\0\\x01\\0\\xff\\xff", b"x" * 65536))
"""
        for caller in callers():
            found = self.sandbox(probe, ["--allow", "allowed.example"], caller).findings
            self.assertEqual(set(found.values()), {"refused"}, found)


if __name__ == "__main__":
    main()
