"""NET-14: ports that no rule has, and other protocols than the port is for."""

from allowed import AllowedTest
from harness import callers, main
from internet import PROBE, PUBLIC, Server

PORTS = [22, 25, 6379, 8080]


class Net14(AllowedTest):
    @classmethod
    def serve(cls) -> None:
        cls.servers = {port: Server(port) for port in [80, 443, 5432, *PORTS]}

    def test_positive_control(self) -> None:
        found = self.native(PROBE + f"report(a=[get('{PUBLIC}', port) for port in {PORTS + [443]!r}])").findings["a"]
        self.assertTrue(all(answer.endswith("welcome") for answer in found), found)

    def test_only_ports_of_the_rule(self) -> None:
        probe = PROBE + f"""
ports = {PORTS!r}
request = b"GET / HTTP/1.1\\r\\nHost: allowed.example\\r\\n\\r\\n"
report(good=[get("allowed.example", 80), get("allowed.example", 5432, header="allowed.example:5432"), talk(("allowed.example", 5432), b"\\0\\0\\0\\x08binary")],
       direct=[get("allowed.example", port) for port in ports],
       connect=[connect(b"allowed.example:" + p) for p in [b"22", b"25", b"6379", b"0", b"65536", b"-1", b"+80", b"080", b" 80", b"", b"80:80", b"http"]],
       no_port=connect(b"allowed.example"), absolute=absolute(b"http://allowed.example:22/", b"allowed.example:22"),
       https=absolute(b"https://allowed.example/", b"allowed.example"), socks=[socks5(b"allowed.example", port) for port in [0, *ports]],
       plain_to_443=talk(("allowed.example", 443), request), tls_to_80=talk(("allowed.example", 80), b"\\x16\\x03\\x01\\0\\x05hello"),
       old=talk(("allowed.example", 80), b"GET /\\r\\n"), two=talk(("allowed.example", 80), b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n"),
       ssh=talk(("allowed.example", 443), b"SSH-2.0-x\\r\\n"), udp=attempt(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto, b"x", (socket.gethostbyname("allowed.example"), 443)))
"""
        for caller in callers():
            with self.subTest(caller=caller.name):
                for server in self.servers.values():
                    server.visits.clear()
                result = self.sandbox(probe, ["--allow", "allowed.example", "--allow", "allowed.example:5432"], caller)
                found = result.findings
                for answer in found["good"]:
                    self.assertTrue(answer.endswith("welcome"), answer)
                self.assertEqual(set(found["direct"]), {"ECONNREFUSED"})
                for answer in [*found["connect"], found["no_port"], found["absolute"], found["https"]]:
                    self.assertRegex(answer, "^HTTP/1.1 (400|403) ")
                for answer in found["socks"]:
                    self.assertTrue(answer.startswith("\x05\0\x05\x02"), answer)
                for kind in "plain_to_443", "tls_to_80", "old", "two", "ssh":
                    self.assertNotIn("welcome", found[kind], kind)
                    self.assertNotIn("silence", found[kind], kind)
                self.assertNotEqual(found["udp"], "ok")
                self.assertEqual({port: len(server.visits) for port, server in self.servers.items() if server.visits}, {80: 1, 5432: 2})
                refused = {denial["target"] for denial in result.record["denials"]}
                self.assertLessEqual({f"allowed.example:{port}" for port in PORTS} | {"allowed.example:443", "udp allowed.example:443"}, refused)


if __name__ == "__main__":
    main()
