"""NET-11: suffixes and wildcards taken for more than they say."""

from allowed import AllowedTest
from harness import callers, main
from internet import OTHER_PUBLIC, PROBE, PUBLIC

REFUSED = ["notallowed.example", "allowed.example.evil.test", "evilallowed.example", "sub.allowed.example", "wild.test",
           "xwild.test", "a.wild.test.evil.test", "example", "localhost.localdomain"]


class Net11(AllowedTest):
    names = {**{name: [OTHER_PUBLIC] for name in REFUSED}, "allowed.example": [PUBLIC], "a.wild.test": [PUBLIC], "a.b.wild.test": [PUBLIC]}

    def test_whole_labels(self) -> None:
        probe = PROBE + f"""
refused = {REFUSED!r}
report(good=[get(name) for name in ("allowed.example", "a.wild.test", "a.b.wild.test")],
       refused=[get(name) for name in refused], proxied=[absolute(b"http://" + name.encode() + b"/", name.encode()) for name in refused])
"""
        for caller in callers():
            with self.subTest(caller=caller.name):
                self.server.visits.clear()
                result = self.sandbox(probe, ["--allow", "allowed.example", "--allow", "*.wild.test"], caller)
                for answer in result.findings["good"]:
                    self.assertTrue(answer.endswith("welcome"), answer)
                self.assertEqual(set(result.findings["refused"]), {"no such name"})
                for answer in result.findings["proxied"]:
                    self.assertRegex(answer, "^HTTP/1.1 403 ")
                self.assertEqual(set(self.server.addresses), {PUBLIC})
                denied = {denial["target"] for denial in result.record["denials"] if denial["kind"] == "network"}
                self.assertLessEqual({name + ":80" for name in REFUSED}, denied)

    def test_wide_wildcards_start_nothing(self) -> None:
        for rule in "*", "*.com", "*.co.uk", "*.github.io", "*.test", "*example.org", "a.*.org", "*.*.example.org":
            result = self.sandbox(["true"], ["--allow", rule])
            self.assertEqual((result.exit_status, result.status), (125, "denied"), rule)


if __name__ == "__main__":
    main()
