"""Tries to reach what a program has no business with, and says for each thing whether it did.

probe.py FILE VARIABLE PID PORT    one line each: "reached: ..." or "refused: ..."
Run outside a sandbox it reaches them all; that shows that the refusals inside are the sandbox's doing.
"""

import os
import socket
import sys


def host_file(path):
    with open(path, "rb") as file:
        return f"{len(file.read())} bytes"


def environment_secret(name):
    return f"{len(os.environ[name])} characters"


def other_process(pid):
    os.kill(int(pid), 0)
    with open(f"/proc/{pid}/environ", "rb") as file:
        return f"{len(file.read())} bytes of its environment"


def network(port):
    # 192.0.2.1 (RFC 5737) is no one's address: connecting a datagram socket to it sends nothing, and asks the kernel
    # for a route out, and for this host's own address on it.
    hosts = ["127.0.0.1"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))
            hosts.append(asking.getsockname()[0])
        except OSError:
            pass
    for host in reversed(hosts):
        try:
            with socket.create_connection((host, int(port)), timeout=3):
                return f"connected to {host}"
        except OSError as error:
            last = error
    raise last


def main():
    path, variable, pid, port = sys.argv[1:]
    probes = [
        (f"the host's {path}", host_file, path),
        (f"the caller's secret ${variable}", environment_secret, variable),
        (f"another process (pid {pid})", other_process, pid),
        (f"the network (port {port} of the host)", network, port),
    ]
    for what, probe, argument in probes:
        try:
            print(f"reached: {what}: {probe(argument)}")
        except KeyError:
            print(f"refused: {what}: not set")
        except OSError as error:
            print(f"refused: {what}: {error.strerror or error}")


main()
