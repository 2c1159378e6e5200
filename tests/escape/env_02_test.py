"""ENV-02: read secrets of the caller's environment: in the program's own, in init's, and in the memory that came with it."""

from harness import EscapeTest, callers, main

PROBE = """
seen = {}
for pid in ("self", "1", str(os.getppid())):
    seen[pid] = content(f"/proc/{pid}/environ")
memory = []
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as own:
    for line in maps:
        area, rights, *_ = line.split()
        first, last = (int(edge, 16) for edge in area.split("-"))
        if rights[0] != "r" or last - first > 1 << 28 or "[v" in line:
            continue
        try:
            own.seek(first)
            if canary in own.read(last - first):
                memory.append(line)
        except OSError:
            pass
report(environment=dict(os.environ), seen=seen, memory=[line.split()[-1] for line in memory])
"""

SECRETS = ["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "OPENAI_API_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "DATABASE_URL",
           "BASH_ENV", "PYTHONSTARTUP", "NODE_OPTIONS", "GIT_SSH_COMMAND", "http_proxy"]
ALLOWED = {"PATH", "HOME", "LANG", "TZ"}


class Env02(EscapeTest):
    def setUp(self) -> None:
        super().setUp()
        self.secrets = {name: self.canary for name in SECRETS}
        # In two halves, so that the probe itself doesn't hold what it looks for.
        half = len(self.canary) // 2
        self.probe = f"canary = b''.join([{self.canary[:half].encode()!r}, {self.canary[half:].encode()!r}])\n" + PROBE

    def test_positive_control(self) -> None:
        for caller in callers():
            findings = self.native(self.probe, caller, self.secrets).findings
            self.assertEqual({name for name, value in findings["environment"].items() if value == self.canary}, set(SECRETS))
            self.assertIn(self.canary, findings["seen"]["self"])
            self.assertIn("[stack]", findings["memory"])

    def test_starts_empty(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                result = self.sandbox(self.probe, caller=caller, env={**self.secrets, "LD_PRELOAD": ""})
                findings = result.findings
                self.assertEqual(set(findings["environment"]), ALLOWED)
                # What Python joined while it looked is in its own memory, but not in that which it started with.
                self.assertNotIn("[stack]", findings["memory"])
                self.assertNotIn(self.canary, str(findings["seen"]))
                self.assertNotIn(self.canary, str(result.record))

    def test_commands_and_shells(self) -> None:
        for caller in callers():
            for command in ["env"], ["sh", "-c", "export -p; cat /proc/self/environ /proc/1/environ"], ["bash", "-c", "set"]:
                with self.subTest(caller=caller.name, command=command):
                    result = self.sandbox(command, caller=caller, env=self.secrets)
                    self.assertNotIn(self.canary, str(result))
                    if command == ["env"]:
                        self.assertEqual({line.split("=")[0] for line in result.stdout.splitlines()}, ALLOWED)

    def test_what_is_named_is_passed(self) -> None:
        for caller in callers():
            flags = ["-e", "GITHUB_TOKEN", "-e", "MODE=fast"]
            result = self.sandbox(self.probe, flags, caller, self.secrets)
            environment = result.findings["environment"]
            self.assertEqual(set(environment), ALLOWED | {"GITHUB_TOKEN", "MODE"})
            self.assertEqual((environment["GITHUB_TOKEN"], environment["MODE"]), (self.canary, "fast"))


if __name__ == "__main__":
    main()
