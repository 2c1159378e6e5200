"""NET-05: services on the host's loopback, its other addresses and its neighbours', also the abstract Unix ones."""

import secrets
import socket

from harness import EscapeTest, callers, main
from network import PROBE, UNREACHABLE, Listeners, enter_private_network

# The host's own, and those that other sandboxes put between themselves and the host.
ADDRESSES = ["192.0.2.7", "10.0.2.2", "10.0.2.3", "192.168.65.1", "192.168.65.2", "192.168.65.254", "172.17.0.1", "192.168.122.1", "10.88.0.1"]
TARGETS = ["127.0.0.1", "127.1.2.3", "0.0.0.0", "::1", "localhost", *ADDRESSES]
NAMES = ["host.docker.internal", "host.containers.internal", "gateway.docker.internal", "host.lima.internal", "kubernetes.default.svc"]


class Net05(EscapeTest):
    @classmethod
    def setUpClass(cls) -> None:
        cls.is_private = enter_private_network(ADDRESSES)
        cls.listeners = Listeners()
        cls.addClassCleanup(cls.listeners.close)

    def test_unreachable(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                arguments = [str(self.listeners.port), *TARGETS, *NAMES]
                natively = self.native(PROBE, caller, arguments=arguments).findings["answers"]
                for target in TARGETS if self.is_private else TARGETS[:4]:
                    self.assertEqual(natively[target][0], "welcome", target)
                self.listeners.visits.clear()
                for flags in [], ["--allow", f"allowed.example:{self.listeners.port}"]:
                    findings = self.sandbox(PROBE, flags, caller, arguments=arguments).findings
                    for target, answers in findings["answers"].items():
                        self.assertLessEqual(set(answers), UNREACHABLE, target)
                    self.assertEqual((findings["interfaces"], self.listeners.visits), (["lo"], []))

    def test_nothing_can_be_configured(self) -> None:
        """No address, route or device can be added to get out, and no raw or packet socket opened."""
        probe = """
import fcntl, socket, struct
control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def request(number, name, flags):
    fcntl.ioctl(control, number, struct.pack("16sH14x", name, flags))
SIOCSIFFLAGS, SIOCSIFADDR, SIOCADDRT, SIOCSIFHWADDR = 0x8914, 0x8916, 0x890B, 0x8924
def netlink(kind, body):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.sendall(struct.pack("=IHHII", 16 + len(body), kind, 0x605, 1, 0) + body)
        _, _, _, _, _, error = struct.unpack("=IHHIIi", link.recv(4096)[:20])
        if error:
            raise OSError(-error, "netlink")
report(down=attempt(request, SIOCSIFFLAGS, b"lo", 0), address=attempt(request, SIOCSIFADDR, b"lo", 2),
       route=attempt(request, SIOCADDRT, b"", 0), link=attempt(netlink, 16, struct.pack("=BxHiII", 0, 0, 0, 0, 0)),
       raw=attempt(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1), packet=attempt(socket.socket, socket.AF_PACKET, socket.SOCK_RAW),
       tun=attempt(os.open, "/dev/net/tun", os.O_RDWR), netfilter=attempt(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, 12))
"""
        for caller in callers():
            findings = self.sandbox(probe, caller=caller).findings
            self.assertNotIn("ok", findings.values(), findings)

    def test_abstract_sockets(self) -> None:
        name = secrets.token_hex(8)
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind("\0" + name)
        listener.listen()
        probe = f"import socket\nreport(answer=attempt(socket.socket(socket.AF_UNIX).connect, '\\x00{name}'))\n"
        for caller in callers():
            self.assertEqual(self.native(probe, caller).findings["answer"], "ok")
            self.assertEqual(self.sandbox(probe, caller=caller).findings["answer"], "ECONNREFUSED")

    def test_own_loopback_works(self) -> None:
        probe = """
import http.server, socket, threading, urllib.request
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
open("page", "w").write("hello")
page = urllib.request.urlopen(f"http://localhost:{server.server_port}/page").read().decode()
a, b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
a.bind(("127.0.0.1", 0))
b.sendto(b"datagram", a.getsockname())
report(page=page, datagram=a.recv(100).decode(), any=socket.create_server(("0.0.0.0", 0)).getsockname()[0])
server.shutdown()
"""
        for caller in callers():
            for flags in [], ["--allow", "allowed.example"]:
                self.assertEqual(self.sandbox(probe, flags, caller).findings, {"page": "hello", "datagram": "datagram", "any": "0.0.0.0"})


if __name__ == "__main__":
    main()
