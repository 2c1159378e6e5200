"""NET-13: addresses in odd forms, to the proxies, in Host, and in rules."""

from allowed import AllowedTest
from harness import callers, main
from internet import INNER, PROBE, PUBLIC

LITERALS = [b"2130706433", b"0x7f000001", b"0x7f.1", b"0177.0.0.1", b"127.1", b"127.0.0.1", b"[::1]", b"[::]", b"0.0.0.0",
            b"[::ffff:127.0.0.1]", b"[::ffff:7f00:1]", b"[fe80::1%25lo]", b"[::127.0.0.1]", b"localhost", b"localhost.",
            b"LOCALHOST", b"127.0.0.1.", b"10.0.0.1", b"169.254.169.254", b"3405803786", b"0xcb.0.113.10", b"203.0.28938",
            b"203.000.113.010"]


class Net13(AllowedTest):
    def test_positive_control(self) -> None:
        self.server.visits.clear()
        for literal in "2130706433", "0x7f.1", "0177.0.0.1", "127.1":
            self.assertTrue(self.native(PROBE + f"report(a=get({literal!r}))").findings["a"].endswith("welcome"))
        self.assertEqual(set(self.server.addresses), {INNER[0]})

    def test_no_form_leads_anywhere(self) -> None:
        probe = PROBE + f"""
literals = {LITERALS!r}
report(good=[get({PUBLIC!r}), absolute(b"http://{PUBLIC}/", b"{PUBLIC}"), socks5(b"{PUBLIC}", 80, b"GET / HTTP/1.1\\r\\nHost: {PUBLIC}\\r\\n\\r\\n")],
       connect=[connect(l + b":80") for l in literals], absolute=[absolute(b"http://" + l + b"/", l) for l in literals],
       socks5=[socks5(l.strip(b"[]")) for l in literals], socks4a=[socks4a(l.strip(b"[]")) for l in literals],
       direct=[get(l.decode().strip("[]")) for l in literals])
"""
        for caller in callers():
            with self.subTest(caller=caller.name):
                self.server.visits.clear()
                found = self.sandbox(probe, ["--allow", PUBLIC, "--allow", "allowed.example", "--timeout", "90"], caller).findings
                for answer in found["good"]:
                    self.assertTrue(answer.endswith("welcome"), answer)
                for answer in found["connect"] + found["absolute"]:
                    self.assertRegex(answer, "^HTTP/1.1 (400|403) ")
                for answer in found["socks5"]:
                    self.assertTrue(answer.startswith("\x05\0\x05\x02"), answer)
                self.assertEqual({answer[1:2] for answer in found["socks4a"]}, {"["})
                # A C library that reads another form of the allowed address may connect to it: the address is the listed one.
                for literal, answer in zip(LITERALS, found["direct"]):
                    self.assertTrue("welcome" not in answer or literal in LITERALS[-4:], (literal, answer))
                self.assertEqual(set(self.server.addresses), {PUBLIC})

    def test_rules_take_the_usual_form_only(self) -> None:
        for rule in "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::ffff:127.0.0.1]", "[::]", "0.0.0.0", "localhost", "127.0.0.1", "[::1]":
            result = self.sandbox(["true"], ["--allow", rule])
            self.assertEqual((result.exit_status, result.status), (125, "denied"), rule)


if __name__ == "__main__":
    main()
