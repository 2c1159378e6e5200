"""KRN-03: keyrings: add, request and read keys, and find those of the host's session."""

import ctypes

from harness import EscapeTest, callers, main, not_covered

# KEY_SPEC_USER_KEYRING, KEY_SPEC_SESSION_KEYRING ...; KEYCTL_SEARCH, DESCRIBE, READ, JOIN_SESSION_KEYRING, GET_PERSISTENT.
PROBE = """
name = sys.argv[1].encode()
answers = {f"search {ring}": syscall(250, 10, ring, b"user", name, 0) for ring in (-1, -2, -3, -4, -5)}
answers["request"] = syscall(249, b"user", name, None, 0)
answers["add"] = syscall(248, b"user", b"own", b"x", 1, -4)
answers |= {f"keyctl {operation}": syscall(250, operation, -4, 0, 0, 0) for operation in range(33)}
report(answers=answers, listed=content("/proc/keys"), users=content("/proc/key-users"))
"""

# Puts the key where the probe looks, then becomes the probe.
ADD = 'attempt(lambda: syscall(248, b"user", sys.argv[1].encode(), b"secret", 6, -4))\n'


class Krn03(EscapeTest):
    def test_positive_control(self) -> None:
        for caller in callers():
            answers = self.native(ADD + PROBE, caller, arguments=[self.canary]).findings
            if answers["answers"]["add"] in ("EPERM", "ENOSYS"):
                return not_covered("KRN-03's positive control", "this host refuses keyrings too")
            self.assertIn("ok", [answer for name, answer in answers["answers"].items() if name.startswith("search")])
            self.assertIn(self.canary, answers["listed"])

    def test_refused(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.syscall(248, b"user", self.canary.encode(), b"secret", 6, -4)  # the host's key, for the length of the test
        for caller in callers():
            with self.subTest(caller=caller.name):
                findings = self.sandbox(PROBE, caller=caller, arguments=[self.canary]).findings
                self.assertEqual({answer for answer in findings["answers"].values()}, {"EPERM"})
                self.assertEqual((findings["listed"], findings["users"]), ("", ""))


if __name__ == "__main__":
    main()
