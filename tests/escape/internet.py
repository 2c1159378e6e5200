"""A little internet for tests of egress: addresses, a DNS server that answers what a test wants, and servers that remember.

enter() puts the test program, and every belljar that it starts, into a network of its own, with its own /etc/resolv.conf and
/etc/hosts. Needs root."""

import ctypes
import os
import socket
import socketserver
import ssl
import struct
import subprocess
import tempfile
import threading
from pathlib import Path

from harness import not_covered, work_folder
from network import enter_private_network

CLONE_NEWNS = 0x20000

PUBLIC = "203.0.113.10"
OTHER_PUBLIC = "203.0.113.20"
PUBLIC_V6 = "2001:db8::10"
INNER = ["127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "169.254.1.1", "100.100.100.200"]
INNER_V6 = ["fd00:ec2::254", "fc00::1"]


class Dns:
    """Answers A and AAAA with what `names` has: a list of addresses, or a function that makes one for each question. An
    address that is a name is an alias (CNAME) of what stands there."""

    def __init__(self) -> None:
        self.names: dict[str, object] = {}
        self.asked: list[str] = []
        self.unanswered: set[tuple[str, int]] = set()  # names with the types of which a question gets no answer
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            question, peer = self.socket.recvfrom(2000)
            try:
                self.socket.sendto(self.answer(question), peer)
            except (ValueError, IndexError, OSError):
                pass

    @staticmethod
    def wire(name: str) -> bytes:
        return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"

    def answer(self, question: bytes) -> bytes:
        labels, at = [], 12
        while question[at]:
            labels.append(question[at + 1:at + 1 + question[at]].decode("latin-1"))
            at += 1 + question[at]
        name = ".".join(labels)
        kind = struct.unpack(">H", question[at + 1:at + 3])[0]
        self.asked.append(name)
        if (name, kind) in self.unanswered:
            raise ValueError("no answer")
        found = self.names.get(name)
        addresses = found() if callable(found) else found
        records = b""
        count = 0
        for address in addresses or []:
            if address.replace(".", "").isdigit():
                code, data = 1, socket.inet_aton(address)
            elif ":" in address:
                code, data = 28, socket.inet_pton(socket.AF_INET6, address)
            else:
                code, data = 5, self.wire(address)
            if code not in (kind, 5):
                continue
            records += b"\xc0\x0c" + struct.pack(">HHIH", code, 1, 0, len(data)) + data
            count += 1
            if code == 5:
                for behind in self.names[address]:
                    if kind == 1 and ":" not in behind:
                        records += data + struct.pack(">HHIH", 1, 1, 0, 4) + socket.inet_aton(behind)
                        count += 1
        flags = 0x8180 if found is not None else 0x8183
        return question[:2] + struct.pack(">HHHHH", flags, 1, count, 0, 0) + question[12:at + 5] + records


class Server:
    """Accepts on all addresses at one port; keeps who came to which address, and the bytes that came first. It answers
    once what came ends with `ending`."""

    def __init__(self, port: int, reply: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nwelcome", keeps: bool = False, ending: bytes = b""):
        self.visits: list[tuple[str, bytes]] = []
        world = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                address = self.request.getsockname()[0].removeprefix("::ffff:")
                entry = len(world.visits)
                world.visits.append((address, b""))
                self.request.settimeout(5)
                received = b""
                try:
                    while data := self.request.recv(65536):
                        received += data
                        world.visits[entry] = (address, received)
                        if not received.endswith(ending):
                            continue
                        self.request.sendall(reply * max(1, data.count(b"\r\n\r\n")) if keeps else reply)
                        if not keeps:
                            return
                except OSError:
                    pass

        class Threads(socketserver.ThreadingTCPServer):
            address_family = socket.AF_INET6
            allow_reuse_address = True
            daemon_threads = True
            request_queue_size = 256

        self.server = Threads(("::", port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def addresses(self) -> list[str]:
        return [address for address, _ in self.visits]

    @property
    def received(self) -> bytes:
        return b"".join(data for _, data in self.visits)


class TlsServer:
    """TLS with a certificate for all of `names`; keeps the names that clients asked for, and the first bytes they sent."""

    def __init__(self, port: int, names: list[str]) -> None:
        self.visits: list[tuple[str, str | None, bytes]] = []
        folder = Path(tempfile.mkdtemp(dir=work_folder()))
        folder.chmod(0o755)
        self.certificate = folder / "cert.pem"
        key = folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", f"/CN={names[0]}", "-addext", "subjectAltName=" + ",".join(f"DNS:{name}" for name in names),
                        "-keyout", key, "-out", self.certificate], check=True, stderr=subprocess.DEVNULL)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.certificate, key)
        asked = threading.local()
        self.context.sni_callback = lambda _socket, name, _context: setattr(asked, "name", name)
        world = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                asked.name = None
                address = self.request.getsockname()[0].removeprefix("::ffff:")
                self.request.settimeout(5)
                try:
                    with world.context.wrap_socket(self.request, server_side=True) as client:
                        data = client.recv(65536)
                        world.visits.append((address, asked.name, data))
                        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nwelcome")
                except (OSError, ValueError):
                    world.visits.append((address, asked.name, b""))

        class Threads(socketserver.ThreadingTCPServer):
            address_family = socket.AF_INET6
            allow_reuse_address = True
            daemon_threads = True

        self.server = Threads(("::", port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def enter(more: list[str] = ()) -> Dns | None:
    """The DNS server of the new network, or None (and a NOT COVERED line) where that takes root."""
    if os.geteuid() != 0:
        not_covered("egress to a network of the test's own", "only root can make one")
        return None
    if not enter_private_network([PUBLIC, OTHER_PUBLIC, PUBLIC_V6, *INNER[1:], *INNER_V6, *more]):
        return None
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        raise OSError("no mount namespace of the test's own")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    folder = Path(tempfile.mkdtemp(dir=work_folder()))
    for name, text in (("resolv.conf", "nameserver 127.0.0.1\n"), ("hosts", "127.0.0.1 localhost\n::1 localhost\n")):
        (folder / name).write_text(text)
        target = Path("/etc", name)
        if not target.exists():
            target.touch()
        subprocess.run(["mount", "--bind", folder / name, target.resolve()], check=True)
    return Dns()


# For probes: the proxy inside, and what it answers.
PROBE = """
import socket, ssl
PROXY = ("127.0.0.1", 888)
def talk(target, data, timeout=5, to_end=False):
    "Everything that comes back, or the name of the errno."
    try:
        with socket.create_connection(target, timeout) as client:
            client.sendall(data)
            answer = b""
            while True:
                try:
                    chunk = client.recv(65536)
                except TimeoutError:
                    return answer.decode("latin-1") + "|silence"
                except ConnectionResetError:
                    return answer.decode("latin-1") + "|reset"
                if not chunk:
                    return answer.decode("latin-1")
                answer += chunk
                if answer.endswith(b"welcome") and not to_end: return answer.decode("latin-1")
    except socket.gaierror:
        return "no such name"
    except TimeoutError:
        return "silence"
    except OSError as error:
        return name_of(error.errno)
def get(host, port=80, path="/", header=None):
    return talk((host, port), f"GET {path} HTTP/1.1\\r\\nHost: {header or host}\\r\\n\\r\\n".encode())
def connect(authority, more=b""):
    return talk(PROXY, b"CONNECT " + authority + b" HTTP/1.1\\r\\n\\r\\n" + more)
def absolute(url, host):
    return talk(PROXY, b"GET " + url + b" HTTP/1.1\\r\\nHost: " + host + b"\\r\\n\\r\\n")
def socks5(name, port=80, data=b""):
    return talk(PROXY, b"\\x05\\x01\\0" + b"\\x05\\x01\\0\\x03" + bytes([len(name)]) + name + port.to_bytes(2, "big") + data, 2)
def socks4a(name, port=80):
    return talk(PROXY, b"\\x04\\x01" + port.to_bytes(2, "big") + b"\\0\\0\\0\\x01\\0" + name + b"\\0", 2)
"""
