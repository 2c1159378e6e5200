"""ENV-04: one sandbox's way out has no credential that could be carried elsewhere: it is its own network namespace. What
another run, or the host, makes of its addresses leads nowhere, during the run and after it."""

import subprocess

from allowed import AllowedTest
from harness import callers, main
from internet import PROBE


class Env04(AllowedTest):
    def test_addresses_of_another_run(self) -> None:
        show = PROBE + "report(address=socket.gethostbyname('allowed.example'), proxy=os.environ['http_proxy'], answer=get('allowed.example'))"
        for caller in callers():
            with self.subTest(caller=caller.name):
                first = self.sandbox(show, ["--allow", "allowed.example"], caller).findings
                self.assertTrue(first["answer"].endswith("welcome"))
                self.server.visits.clear()
                use = PROBE + f"report(address=get({first['address']!r}, header='allowed.example'), proxy=absolute(b'http://allowed.example/', b'allowed.example'))"
                for flags in [], ["--allow", "other.example"]:
                    found = self.sandbox(use, flags, caller).findings
                    self.assertNotIn("welcome", found["address"] + found["proxy"])
                self.assertEqual(self.native(use, caller).findings["proxy"], "ECONNREFUSED")
                self.assertEqual(self.server.visits, [])

    def test_nothing_is_left(self) -> None:
        for caller in callers():
            for end in "terminate", "kill":
                with self.subTest(caller=caller.name, end=end):
                    held = self.start(PROBE + "print(get('allowed.example'), flush=True)\nsys.stdin.read()", ["--allow", "allowed.example"],
                                      caller, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                    held.stdout.readline()
                    mine = lambda: [line for line in subprocess.run(["pgrep", "-a", "-f", "^belljar-egress$"], capture_output=True, text=True).stdout.splitlines()
                                    if int(line.split()[0]) in children]
                    children = {int(pid) for pid in subprocess.run(["pgrep", "-P", str(held.pid)], capture_output=True, text=True).stdout.split()}
                    self.assertEqual(len(mine()), 1)
                    getattr(held, end)()
                    held.wait(20)
                    self.wait_for(lambda: not mine(), "the egress process ended")


if __name__ == "__main__":
    main()
