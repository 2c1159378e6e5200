"""NET-04: cloud metadata services, by address and by name."""

from harness import EscapeTest, callers, main
from network import PROBE, UNREACHABLE, Listeners, enter_private_network

ADDRESSES = ["169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "192.0.0.192", "168.63.129.16",
             "fd00:ec2::254", "fd20:ce::254"]
NAMES = ["metadata.google.internal", "metadata", "instance-data", "metadata.azure.internal"]


class Net04(EscapeTest):
    @classmethod
    def setUpClass(cls) -> None:
        cls.is_private = enter_private_network(ADDRESSES)
        cls.listeners = Listeners()
        cls.addClassCleanup(cls.listeners.close)

    def test_unreachable(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                arguments = [str(self.listeners.port), *ADDRESSES, *NAMES, "::ffff:169.254.169.254"]
                if self.is_private:
                    natively = self.native(PROBE, caller, arguments=arguments).findings["answers"]
                    self.assertEqual({address: natively[address] for address in ADDRESSES},
                                     {address: ["welcome", "welcome"] for address in ADDRESSES})
                self.listeners.visits.clear()
                for flags in [], ["--allow", f"allowed.example:{self.listeners.port}"]:
                    findings = self.sandbox(PROBE, flags, caller, arguments=arguments).findings
                    for target, answers in findings["answers"].items():
                        self.assertLessEqual(set(answers), UNREACHABLE, target)
                    self.assertEqual(self.listeners.visits, [])


if __name__ == "__main__":
    main()
