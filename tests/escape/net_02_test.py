"""NET-02: IPv6 in all its forms: loopback, global, unique local, link-local, IPv4-mapped, NAT64, multicast."""

from harness import EscapeTest, callers, main
from network import PROBE, UNREACHABLE, Listeners, enter_private_network

ADDRESSES = ["2001:db8::7", "fd00:1::7", "64:ff9b::7f00:1", "fe80::7", "198.51.100.7"]
TARGETS = ["::1", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0", "::ffff:198.51.100.7", "2001:db8::7", "fd00:1::7", "64:ff9b::7f00:1",
           "fe80::7%lan", "fe80::7%lo", "ff02::1%lo", "ff01::1%lo", "2002:7f00:1::1", "localhost", "ip6-localhost"]


class Net02(EscapeTest):
    @classmethod
    def setUpClass(cls) -> None:
        cls.is_private = enter_private_network(ADDRESSES)
        cls.listeners = Listeners()
        cls.addClassCleanup(cls.listeners.close)

    def test_unreachable(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                arguments = [str(self.listeners.port), *TARGETS]
                natively = self.native(PROBE, caller, arguments=arguments).findings["answers"]
                for target in ["::1", "::ffff:127.0.0.1"] + (["2001:db8::7", "fd00:1::7", "64:ff9b::7f00:1"] if self.is_private else []):
                    self.assertEqual(natively[target], ["welcome", "welcome"], target)
                self.listeners.visits.clear()
                for flags in [], ["--allow", f"allowed.example:{self.listeners.port}"]:
                    findings = self.sandbox(PROBE, flags, caller, arguments=arguments).findings
                    for target, answers in findings["answers"].items():
                        self.assertLessEqual(set(answers), UNREACHABLE | {"silence"}, target)
                    self.assertEqual((findings["interfaces"], self.listeners.visits), (["lo"], []))

    def test_own_loopback_works(self) -> None:
        probe = """
import socket
def talk(address):
    with socket.create_server((address, 0), family=socket.AF_INET6) as server, socket.create_connection(server.getsockname()[:2]) as client:
        peer, _ = server.accept()
        client.sendall(b"hello")
        return peer.recv(5).decode()
report(loopback=talk("::1"), any=talk("::"))
"""
        for caller in callers():
            for flags in [], ["--allow", "allowed.example"]:
                self.assertEqual(self.sandbox(probe, flags, caller).findings, {"loopback": "hello", "any": "hello"})


if __name__ == "__main__":
    main()
