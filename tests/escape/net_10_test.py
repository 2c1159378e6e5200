"""NET-10: odd host strings in CONNECT, absolute URLs, SOCKS5, SOCKS4a and Host. What is matched is what is resolved and dialled."""

from allowed import AllowedTest
from harness import callers, main
from internet import OTHER_PUBLIC, PROBE, PUBLIC, Server

NAMES = [b"allowed.example\0.evil.example", b"evil.example\0allowed.example", b"allowed.example\r\nHost: evil.example",
         b"allowed.example ", b" allowed.example", b"allowed.example%00.evil.example", b"allowed%2eexample",
         b"allowed.example.", b"xn--alowed-example", b"all\xd0\xbewed.example", b"user@allowed.example",
         b"allowed.example@evil.example", b"evil.example#allowed.example", b"evil.example?allowed.example", b"a" * 250,
         b".allowed.example", b"allowed..example", b"*.example", b"[allowed.example]", b"allowed.example\\@evil.example",
         b"evil.example"]


class Net10(AllowedTest):
    names = {"allowed.example": [PUBLIC], "evil.example": [OTHER_PUBLIC]}

    @classmethod
    def serve(cls) -> None:
        cls.server = Server(80)
        cls.tls = Server(443)

    def test_only_the_name_itself(self) -> None:
        probe = PROBE + f"""
names = {NAMES!r}
report(
    good=[connect(b"allowed.example:80", b"GET / HTTP/1.1\\r\\nHost: allowed.example\\r\\n\\r\\n"), connect(b"ALLOWED.example:80", b"GET / HTTP/1.1\\r\\nHost: allowed.example\\r\\n\\r\\n"),
          absolute(b"http://allowed.example/", b"allowed.example"), get("allowed.example"), get("Allowed.EXAMPLE"),
          socks5(b"allowed.example", 80, b"GET / HTTP/1.1\\r\\nHost: allowed.example\\r\\n\\r\\n")],
    socks4=socks4a(b"allowed.example"),
    connect=[connect(name + b":80") for name in names], absolute=[absolute(b"http://" + name + b"/", name) for name in names],
    socks5=[socks5(name) for name in names], socks4a=[socks4a(name) for name in names],
    host=[talk(("allowed.example", 80), b"GET / HTTP/1.1\\r\\nHost: " + name + b"\\r\\n\\r\\n") for name in names if name not in (b"allowed.example ", b" allowed.example")],
    lookups=[attempt_lookup(name) for name in names])
"""
        tools = """
def attempt_lookup(name):
    try:
        return socket.gethostbyname(name.decode("latin-1"))
    except (OSError, ValueError, TypeError):
        return "none"
"""
        for caller in callers():
            with self.subTest(caller=caller.name):
                self.server.visits.clear()
                self.dns.asked.clear()
                found = self.sandbox(tools + probe, ["--allow", "allowed.example", "--timeout", "90"], caller).findings
                for answer in found["good"]:
                    self.assertTrue(answer.endswith("welcome"), answer)
                self.assertEqual(found["socks4"][1], "Z")
                for answer in found["connect"] + found["absolute"]:
                    self.assertRegex(answer, "^HTTP/1.1 (400|403) ")
                for answer in found["host"]:
                    self.assertRegex(answer, "^HTTP/1.1 400 ")
                for answer in found["socks5"]:
                    self.assertTrue(answer.startswith("\x05\0\x05\x02"), answer)
                for name, answer in zip(NAMES, found["socks4a"]):
                    # A NUL ends the name there: what was before it is what was asked for.
                    if name != b"allowed.example\0.evil.example":
                        self.assertEqual(answer[1:2], "[", name)
                self.assertEqual(set(found["lookups"]) - {"none", "198.18.0.1"}, set())
                self.assertEqual(set(self.server.addresses), {PUBLIC})
                self.assertEqual(set(self.dns.asked), {"allowed.example"})
                self.assertNotIn(b"evil", self.server.received)


if __name__ == "__main__":
    main()
