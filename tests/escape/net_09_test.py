"""NET-09: network policies that are empty, wrong or unknown. None may come to mean "no restriction"."""

from harness import EscapeTest, callers, main
from network import PROBE, Listeners, enter_private_network

REFUSED = {
    "rule without a host": "allow = [{}]\n",
    "rule with a wrong key": 'allow = [{host = "example.org", port = 80}]\n',
    "word for a list": 'allow = "example.org"\n',
    "list of nothing": 'allow = [""]\n',
    "wildcard": 'allow = ["*"]\n',
    "empty table": "[network]\n",
    "table": "[network]\nallow = []\n",
    "table with all": "[network]\nallow_all = true\n",
    "switch": "network = true\n",
    "switch off": "network = false\n",
    "number": "network = 1\n",
    "word": 'network = "host"\n',
    "domains": "domains = []\n",
    "egress": "[egress]\ndomains = []\n",
    "unknown key": "netwrok = []\n",
    "unknown key in a table": "[limits]\nnetwork = 1\n",
    "wrong type": "limits = []\n",
    "wrong type of a list": 'hide = "/usr/local"\n',
    "null": "allow = null\n",
    "not TOML": "allow = [\n",
    "twice": "[limits]\n[limits]\n",
    "not UTF-8": None,
}
ACCEPTED = {"empty": "", "empty list": "allow = []\n", "comments": "# nothing\n\n   # here\n", "empty limits": "[limits]\n"}


class Net09(EscapeTest):
    @classmethod
    def setUpClass(cls) -> None:
        enter_private_network([])
        cls.listeners = Listeners()
        cls.addClassCleanup(cls.listeners.close)

    def policy(self, text: str | None) -> str:
        path = self.folder / "policy.toml"
        path.write_bytes(b'tier = "\xff"\n' if text is None else text.encode())
        path.chmod(0o644)
        return str(path)

    def arguments(self) -> list[str]:
        return [str(self.listeners.port), "127.0.0.1", "::1", "192.0.2.1"]

    def test_positive_control(self) -> None:
        self.assertEqual(self.native(PROBE, arguments=self.arguments()).findings["answers"]["127.0.0.1"], ["welcome", "welcome"])

    def test_wrong_policies_start_nothing(self) -> None:
        for caller in callers():
            for name, text in REFUSED.items():
                with self.subTest(caller=caller.name, policy=name):
                    self.listeners.visits.clear()
                    result = self.sandbox(PROBE, ["--policy", self.policy(text)], caller, arguments=self.arguments())
                    self.assertEqual((result.exit_status, result.status, result.stdout), (125, "denied", ""))
                    self.assertEqual(self.listeners.visits, [])

    def test_wrong_flags_start_nothing(self) -> None:
        for caller in callers():
            for flags in ["--allow", "*"], ["--allow="], ["--network", "host"], ["--net=host"], ["--network"], ["--dns", "1.1.1.1"]:
                with self.subTest(caller=caller.name, flags=flags):
                    result = self.sandbox(PROBE, flags, caller, arguments=self.arguments())
                    self.assertEqual((result.exit_status, result.stdout), (125, ""))

    def test_a_policy_file_that_is_none(self) -> None:
        for caller in callers():
            for path in "/no/such/file", str(self.folder), "/dev/null/x", "":
                result = self.sandbox(["true"], ["--policy", path], caller)
                self.assertEqual((result.exit_status, result.status), (125, "denied"), path)

    def test_silent_policies_mean_no_network(self) -> None:
        for caller in callers():
            for name, text in ACCEPTED.items():
                with self.subTest(caller=caller.name, policy=name):
                    self.listeners.visits.clear()
                    result = self.sandbox(PROBE, ["--policy", self.policy(text)], caller, arguments=self.arguments())
                    for answers in result.findings["answers"].values():
                        self.assertNotIn("welcome", answers)
                    self.assertIn("network", result.record["isolation"]["enforced"])
                    self.assertEqual(self.listeners.visits, [])


if __name__ == "__main__":
    main()
