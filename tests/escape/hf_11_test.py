"""HF-11: connect to control sockets of the host: docker, podman, containerd, dbus, ssh-agent, gpg-agent, X11, wayland; by path,
by the caller's environment, in the abstract name space, and inside a mounted folder."""

import os
import secrets
import socket
import threading
from pathlib import Path

from harness import EscapeTest, callers, main

# Connects to each address given, with both kinds of socket; "@" stands for the abstract name space.
PROBE = """
import socket
def connect(address, kind):
    with socket.socket(socket.AF_UNIX, kind) as client:
        client.settimeout(5)
        client.connect("\\0" + address[1:] if address.startswith("@") else address)
answers = {a: [attempt(connect, a, k) for k in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET)] for a in sys.argv[1:]}
names = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "DOCKER_HOST", "GPG_AGENT_INFO", "XDG_RUNTIME_DIR")
report(answers=answers, environment=[name for name in names if name in os.environ],
       listening=[line.split()[-1] for line in open("/proc/net/unix").readlines()[1:]])
"""

WELL_KNOWN = ["/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock",
              "/run/dbus/system_bus_socket", "/run/systemd/private", "/tmp/.X11-unix/X93"]


class Listener:
    """A decoy; counts who comes."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.visits = 0
        self.socket = socket.socket(socket.AF_UNIX)
        if address.startswith("@"):
            self.socket.bind("\0" + address[1:])
        else:
            self.socket.bind(address)
            os.chmod(address, 0o777)
        self.socket.listen(16)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            self.visits += 1
            client.close()

    def close(self) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        if not self.address.startswith("@"):
            os.unlink(self.address)


class Hf11(EscapeTest):
    def listen(self, address: str) -> Listener:
        listener = Listener(address)
        self.addCleanup(listener.close)
        return listener

    def decoys(self) -> list[Listener]:
        addresses = [str(self.folder / name) for name in ("agent.1", "S.gpg-agent", "bus", "wayland-0", "X7")]
        addresses += ["@/tmp/.X11-unix/X93", "@" + secrets.token_hex(8)]
        for address in WELL_KNOWN:  # where the host has none itself
            folder = Path(address).parent
            if os.geteuid() == 0 and not os.path.lexists(address):
                if not folder.exists():
                    folder.mkdir()
                    self.addCleanup(folder.rmdir)
                addresses.append(address)
        return [self.listen(address) for address in addresses]

    def test_sockets_of_the_host(self) -> None:
        decoys = self.decoys()
        addresses = [decoy.address for decoy in decoys]
        own = [a for a in addresses if a.startswith(str(self.folder))]
        environment = {"SSH_AUTH_SOCK": own[0], "GPG_AGENT_INFO": own[1], "DBUS_SESSION_BUS_ADDRESS": f"unix:path={own[2]}",
                       "WAYLAND_DISPLAY": own[3], "DISPLAY": ":93", "DOCKER_HOST": f"unix://{own[4]}"}
        for caller in callers():
            with self.subTest(caller=caller.name):
                natively = self.native(PROBE, caller, environment, arguments=addresses).findings
                self.assertEqual([answer[0] for answer in natively["answers"].values()], ["ok"] * len(addresses))
                self.assertGreaterEqual(len(natively["environment"]), 6)
                self.wait_for(lambda: all(decoy.visits for decoy in decoys), "the control's visits")
                visits = [decoy.visits for decoy in decoys]

                inside = self.sandbox(PROBE, [], caller, environment, arguments=addresses + WELL_KNOWN).findings
                self.assertEqual({answer for answers in inside["answers"].values() for answer in answers} - {"ENOENT", "ECONNREFUSED"}, set())
                self.assertEqual((inside["environment"], inside["listening"]), ([], []))
                self.assertEqual([decoy.visits for decoy in decoys], visits)

    def test_sockets_in_a_mounted_folder(self) -> None:
        """A project may hold the socket of a database, an editor or an agent."""
        for caller in callers():
            for access in "ro", "rw":
                with self.subTest(caller=caller.name, access=access):
                    work = self.host_folder(f"work-{caller}-{access}", caller)
                    (work / "deep" / "er").mkdir(parents=True)
                    decoys = [self.listen(str(work / "agent.sock")), self.listen(str(work / "deep" / "er" / "db.sock"))]
                    natively = self.native(PROBE, caller, arguments=[decoy.address for decoy in decoys]).findings
                    self.assertEqual([answer[0] for answer in natively["answers"].values()], ["ok", "ok"])
                    self.wait_for(lambda: all(decoy.visits for decoy in decoys), "the control's visits")
                    flags = ["--mount", f"{work}:/work:{access}"]
                    inside = self.sandbox(PROBE, flags, caller, arguments=["/work/agent.sock", "/work/deep/er/db.sock"]).findings
                    for address, answers in inside["answers"].items():
                        self.assertNotIn("ok", answers, address)
                    self.assertEqual([decoy.visits for decoy in decoys], [1, 1])

    def test_sockets_in_a_workspace(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                work = self.host_folder(f"workspace-{caller}", caller)
                (work / "deep").mkdir()
                decoys = [self.listen(str(work / "agent.sock")), self.listen(str(work / "deep" / "db.sock"))]
                natively = self.native(PROBE, caller, arguments=[decoy.address for decoy in decoys]).findings
                self.assertEqual([answer[0] for answer in natively["answers"].values()], ["ok", "ok"])
                self.wait_for(lambda: all(decoy.visits for decoy in decoys), "the control's visits")
                for decoy in decoys:
                    os.chown(decoy.address, caller.uid, caller.uid)
                touch = "os.chmod('/workspace/agent.sock', 0o700)\n"  # has an overlay copy it
                inside = self.sandbox(touch + PROBE, ["--workspace", str(work)], caller,
                                      arguments=["/workspace/agent.sock", "/workspace/deep/db.sock"])
                for address, answers in inside.findings["answers"].items():
                    self.assertNotIn("ok", answers, address)
                self.assertEqual([decoy.visits for decoy in decoys], [1, 1])
                self.assertIsNone(inside.record["changes_id"])

    def test_a_socket_itself_is_no_mount(self) -> None:
        for caller in callers():
            decoy = self.listen(str(self.folder / f"agent-{caller}"))
            result = self.sandbox(["true"], ["--mount", f"{decoy.address}:/data/agent"], caller)
            self.assertEqual((result.exit_status, result.record["error"]["code"]), (125, "bad_mount"))

    def test_own_sockets_work(self) -> None:
        probe = """
import socket, threading
def talk(address):
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(address)
        server.listen()
        client.connect(address)
        peer, _ = server.accept()
        client.sendall(b"hello")
        return peer.recv(5).decode()
report(path=talk("/tmp/own.sock"), abstract=talk("\\0own"), folder=talk("/data/own.sock"),
       workspace=talk("/workspace/own.sock"))
"""
        for caller in callers():
            work = self.host_folder(f"work-{caller}", caller)
            view = self.host_folder(f"view-{caller}", caller)
            findings = self.sandbox(probe, ["--mount", f"{work}:/data:rw", "--workspace", str(view)], caller).findings
            self.assertEqual(findings, {"path": "hello", "abstract": "hello", "folder": "hello", "workspace": "hello"})


if __name__ == "__main__":
    main()
