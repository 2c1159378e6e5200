"""NET-12: an allowed name that leads to inner addresses: at the second look, among others, by an alias."""

import itertools

from allowed import AllowedTest
from harness import callers, main
from internet import INNER, INNER_V6, OTHER_PUBLIC, PROBE, PUBLIC, PUBLIC_V6


class Net12(AllowedTest):
    names = {}

    def test_positive_control(self) -> None:
        for address in INNER + INNER_V6:
            self.server.visits.clear()
            answer = self.native(PROBE + f"report(answer=get({address!r}))").findings["answer"]
            self.assertTrue(answer.endswith("welcome"), address)
            self.assertEqual(self.server.addresses, [address])

    def test_inner_addresses_are_not_dialled(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                inner = INNER + INNER_V6 + ["::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "0.0.0.0", "255.255.255.255"]
                self.dns.names = {f"n{i}.allowed.test": [address] for i, address in enumerate(inner)}
                self.dns.names |= {"alias.allowed.test": ["inner.test"], "inner.test": ["127.0.0.1"]}
                names = list(self.dns.names)[:-1]
                self.server.visits.clear()
                result = self.sandbox(PROBE + f"report(answers=[get(name) for name in {names!r}], proxied=[absolute(b'http://' + n.encode() + b'/', n.encode()) for n in {names!r}])",
                                      ["--allow", "*.allowed.test"], caller)
                for answer in result.findings["answers"] + result.findings["proxied"]:
                    self.assertRegex(answer, "^HTTP/1.1 (403|502)")
                self.assertEqual(self.server.visits, [])
                self.assertTrue(any("loopback" in denial["rule"] for denial in result.record["denials"]))

    def test_flipping_and_mixed_answers(self) -> None:
        flip = itertools.cycle([[PUBLIC], ["127.0.0.1"], ["169.254.169.254"], ["10.0.0.1"]])
        self.dns.names = {"flip.test": lambda: next(flip), "mixed.test": ["127.0.0.1", PUBLIC, "10.0.0.1", "::1"]}
        for caller in callers():
            with self.subTest(caller=caller.name):
                self.server.visits.clear()
                found = self.sandbox(PROBE + "report(flip=[get('flip.test') for _ in range(8)], mixed=[get('mixed.test') for _ in range(3)])",
                                     ["--allow", "flip.test", "--allow", "mixed.test"], caller).findings
                for answer in found["mixed"]:
                    self.assertTrue(answer.endswith("welcome"), answer)
                self.assertEqual(set(self.server.addresses), {PUBLIC})

    def test_no_answer_for_one_family(self) -> None:
        """Without one for IPv6, the IPv4 addresses are dialled at once; without one for IPv4, the others in the end."""
        self.dns.names = {"four.test": [PUBLIC], "six.test": [PUBLIC_V6], "both.test": [OTHER_PUBLIC, PUBLIC_V6]}
        self.dns.unanswered = {("four.test", 28), ("six.test", 1), ("both.test", 28)}
        probe = PROBE + """
import time
def timed(name):
    start = time.monotonic()
    return get(name), time.monotonic() - start
report(four=timed("four.test"), both=timed("both.test"), six=timed("six.test"))
"""
        for caller in callers():
            with self.subTest(caller=caller.name):
                self.server.visits.clear()
                found = self.sandbox(probe, ["--allow", "four.test", "--allow", "six.test", "--allow", "both.test"], caller).findings
                self.assertTrue(all(answer.endswith("welcome") for answer, _ in found.values()), found)
                self.assertEqual(self.server.addresses, [PUBLIC, OTHER_PUBLIC, PUBLIC_V6])
                self.assertLess(max(found["four"][1], found["both"][1]), 1)
                self.assertGreater(found["six"][1], 1.5)

    def test_allowed_where_the_rule_says_so(self) -> None:
        self.dns.names = {"db.test": ["10.0.0.1"], "meta.test": ["169.254.169.254"]}
        policy = self.host_file('allow = [{host = "db.test", allow_private = true}, {host = "meta.test", allow_private = true}, "192.168.1.1"]\n', "p.toml")
        for caller in callers():
            with self.subTest(caller=caller.name):
                self.server.visits.clear()
                found = self.sandbox(PROBE + "report(db=get('db.test'), meta=get('meta.test'), literal=get('192.168.1.1'))",
                                     ["--policy", policy], caller).findings
                self.assertTrue(found["db"].endswith("welcome") and found["literal"].endswith("welcome"), found)
                self.assertRegex(found["meta"], "^HTTP/1.1 403")
                self.assertEqual(self.server.addresses, ["10.0.0.1", "192.168.1.1"])


if __name__ == "__main__":
    main()
