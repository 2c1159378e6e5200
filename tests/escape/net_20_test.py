"""NET-20: listen inside and be reached from the host or from another sandbox."""

import socket
import subprocess

from harness import PYTHON, EscapeTest, callers, main
from network import PROBE, enter_private_network

ADDRESSES = ["192.0.2.7", "2001:db8::7"]

SERVER = """
import select, socket, sys
servers = [socket.create_server(("0.0.0.0", 0))]
port = servers[0].getsockname()[1]
servers.append(socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=False))
abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\\0net-20")
abstract.listen()
servers.append(abstract)
def serve():
    while True:
        for server in select.select(servers, [], [])[0]:
            peer, _ = server.accept()
            peer.sendall(b"welcome")
            peer.close()
"""
SERVE = SERVER + "print(port, flush=True)\nserve()\n"


class Net20(EscapeTest):
    @classmethod
    def setUpClass(cls) -> None:
        cls.is_private = enter_private_network(ADDRESSES)

    def visit(self, address: str, port: int) -> bytes | None:
        try:
            with socket.create_connection((address, port), timeout=2) as client:
                return client.recv(7)
        except OSError:
            return None

    def targets(self) -> list[str]:
        return ["127.0.0.1", "::1", "localhost", *(ADDRESSES if self.is_private else [])]

    def test_positive_control(self) -> None:
        """The same server on the host is reached."""
        server = callers()[0].popen([PYTHON, self.script(SERVE, "server.py")], stdout=subprocess.PIPE)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        port = int(server.stdout.readline())
        for target in self.targets():
            self.assertEqual(self.visit(target, port), b"welcome", target)

    def test_not_reached(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                server = self.start(SERVE, caller=caller, stdout=subprocess.PIPE)
                port = int(server.stdout.readline())
                for target in self.targets():
                    self.assertIsNone(self.visit(target, port), target)
                with socket.socket(socket.AF_UNIX) as client, self.assertRaises(ConnectionRefusedError):
                    client.connect("\0net-20")
                peer = self.sandbox(PROBE, caller=caller, arguments=[str(port), *self.targets()]).findings
                for target, answers in peer["answers"].items():
                    self.assertNotIn("welcome", answers, target)

    def test_reached_from_its_own(self) -> None:
        probe = SERVER + """
import threading
threading.Thread(target=serve, daemon=True).start()
report(answers=[socket.create_connection((address, port)).recv(7).decode() for address in ("127.0.0.1", "::1")])
"""
        for caller in callers():
            self.assertEqual(self.sandbox(probe, caller=caller).findings, {"answers": ["welcome", "welcome"]})


if __name__ == "__main__":
    main()
