"""A host network of the test's own, with listeners on every address that a sandbox might try.

enter_private_network() puts the test program (and so every belljar that it starts) into a network namespace of its own, gives
that the addresses asked for, and so can listen on a metadata address or a bridge's without touching the host's network."""

import ctypes
import os
import select
import socket
import subprocess
import threading

from harness import not_covered

CLONE_NEWNET = 0x40000000


def enter_private_network(addresses: list[str]) -> bool:
    """False (and a NOT COVERED line) where that takes root; then only the loopback's own addresses are there."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        not_covered("other addresses than the loopback's", "only root can give this test a network of its own")
        return False
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "link", "add", "lan", "type", "dummy"], check=False, stderr=subprocess.DEVNULL)
    has_lan = subprocess.run(["ip", "link", "set", "lan", "up"], stderr=subprocess.DEVNULL).returncode == 0
    for address in addresses:
        length = "128" if ":" in address else "32"
        options = ["nodad"] if ":" in address else []
        subprocess.run(["ip", "addr", "add", f"{address}/{length}", "dev", "lan" if has_lan else "lo", *options], check=True)
    return True


class Listeners:
    """One TCP and one UDP port, on all addresses of both families; remembers who came."""

    def __init__(self) -> None:
        self.visits: list[str] = []
        self.tcp = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        self.udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        for end in (self.tcp, self.udp):
            end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.tcp.bind(("::", 0))
        self.port = self.tcp.getsockname()[1]
        self.udp.bind(("::", self.port))
        self.tcp.listen(64)
        self.stop, self.stopped = os.pipe()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        while True:
            ready, _, _ = select.select([self.tcp, self.udp, self.stop], [], [])
            if self.stop in ready:
                return
            if self.tcp in ready:
                client, peer = self.tcp.accept()
                self.visits.append(f"tcp {client.getsockname()[0]}")
                client.sendall(b"welcome")
                client.close()
            if self.udp in ready:
                _, peer = self.udp.recvfrom(100)
                self.visits.append(f"udp from {peer[0]}")
                try:
                    self.udp.sendto(b"welcome", peer)
                except OSError:
                    pass

    def close(self) -> None:
        os.close(self.stopped)
        self.thread.join()
        os.close(self.stop)
        self.tcp.close()
        self.udp.close()


# Goes to each address given, at the port given first, by TCP and by UDP; "welcome" is the answer of a listener.
PROBE = """
import socket
def visit(address, kind):
    try:
        family, _, _, _, target = socket.getaddrinfo(address, int(sys.argv[1]), type=kind)[0]
    except socket.gaierror:
        return "no such name"
    try:
        with socket.socket(family, kind) as client:
            client.settimeout(1)
            client.connect(target)
            if kind == socket.SOCK_DGRAM:
                client.send(b"hello")
            return client.recv(7).decode()
    except TimeoutError:
        return "silence"
    except OSError as error:
        return name_of(error.errno)
answers = {address: [visit(address, kind) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)] for address in sys.argv[2:]}
report(answers=answers, interfaces=[name for _, name in socket.if_nameindex()])
"""

# How an address answers that can't be reached. Its own loopback answers ECONNREFUSED: there is no one.
UNREACHABLE = {"ENETUNREACH", "EADDRNOTAVAIL", "ECONNREFUSED", "EHOSTUNREACH", "no such name", "EINVAL", "ENODEV", "EPERM"}
