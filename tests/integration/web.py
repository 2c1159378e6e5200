"""A web of the test's own: names in /etc/hosts, an HTTP server, and an HTTPS server with a certificate authority.

enter() puts the test program, and every belljar that it starts, into a network of its own. Needs root."""

import base64
import ctypes
import functools
import hashlib
import http.server
import io
import json
import ssl
import subprocess
import tarfile
import threading
import zipfile
from pathlib import Path

CLONE_NEWNET, CLONE_NEWNS = 0x40000000, 0x20000
ADDRESS = "203.0.113.10"
NAMES = ["www.example.org", "index.example.org", "other.example.org"]


def enter(folder: Path, more: dict[str, str]) -> None:
    """`more`: further names, and their addresses."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET | CLONE_NEWNS) != 0:
        raise OSError("no network of the test's own")
    commands = [["mount", "--make-rprivate", "/"], ["ip", "link", "set", "lo", "up"]]
    commands += [["ip", "addr", "add", f"{address}/32", "dev", "lo"] for address in {ADDRESS, *more.values()}]
    hosts = folder / "hosts"
    hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{ADDRESS} {name}\n" for name in NAMES)
                     + "".join(f"{address} {name}\n" for name, address in more.items()))
    commands.append(["mount", "--bind", str(hosts), "/etc/hosts"])
    for command in commands:
        subprocess.run(command, check=True)


def make_certificates(folder: Path) -> ssl.SSLContext:
    """ca.pem in `folder`, and a context with a certificate that it signed."""
    def openssl(*arguments) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, cwd=folder, stderr=subprocess.DEVNULL)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-days", 2, "-subj", "/CN=test authority", "-keyout", "ca.key", "-out", "ca.pem")
    openssl("req", *key, "-subj", f"/CN={NAMES[0]}", "-keyout", "server.key", "-out", "server.csr")
    (folder / "extensions").write_text("subjectAltName=" + ",".join(f"DNS:{name}" for name in NAMES) + "\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", 2,
            "-extfile", "extensions", "-out", "server.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    return context


def fill(root: Path) -> None:
    """A page, a Python index, a package for npm and a git repository."""
    (root / "page").write_text("a page\n")
    wheel = root / "simple" / "hello" / "hello-1.0-py3-none-any.whl"
    wheel.parent.mkdir(parents=True)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("hello.py", "print('hello from the index')\n")
        archive.writestr("hello-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n")
        archive.writestr("hello-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("hello-1.0.dist-info/RECORD", "hello.py,,\nhello-1.0.dist-info/METADATA,,\nhello-1.0.dist-info/WHEEL,,\nhello-1.0.dist-info/RECORD,,\n")
    (wheel.parent / "index.html").write_text(f"<a href='{wheel.name}'>{wheel.name}</a>")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in {"package.json": '{"name":"hello","version":"1.0.0","main":"index.js"}', "index.js": "console.log('hello from npm')"}.items():
            entry = tarfile.TarInfo("package/" + name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    (root / "hello.tgz").write_bytes(packed.getvalue())
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(packed.getvalue()).digest()).decode()
    (root / "hello").write_text(json.dumps({"name": "hello", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
        "name": "hello", "version": "1.0.0", "dist": {"tarball": "https://index.example.org/hello.tgz", "integrity": integrity}}}}))
    work = root.parent / "work"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "-q", work], check=True)
    (work / "file").write_text("from git\n")
    subprocess.run([*git, "-C", work, "add", "."], check=True)
    subprocess.run([*git, "-C", work, "commit", "-qm", "a"], check=True)
    subprocess.run([*git, "clone", "-q", "--bare", work, root / "repository.git"], check=True)
    subprocess.run([*git, "-C", root / "repository.git", "update-server-info"], check=True)


def start_api(folder: Path, address: str, port: int, tls: bool) -> subprocess.Popen:
    """api_server.js, which writes requests down in api.log of `folder`; with the certificate of make_certificates()."""
    files = ["server.key", "server.pem"] if tls else ["-", "-"]
    process = subprocess.Popen(["node", Path(__file__).with_name("api_server.js"), address, str(port), *files, "api.log"], cwd=folder, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    return process


def stop(processes: list[subprocess.Popen]) -> None:
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def serve(root: Path, port: int, context: ssl.SSLContext | None) -> None:
    class Handler(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer((ADDRESS, port), functools.partial(Handler, directory=root))
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
