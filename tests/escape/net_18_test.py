"""NET-18: one sandbox's way out, used by another sandbox, by another user of the host, or from the network."""

import re
import subprocess
from pathlib import Path

from allowed import AllowedTest
from harness import callers, main, user
from internet import PROBE

HOLD = PROBE + """
import time
print(get("allowed.example"), flush=True)
sys.stdin.read()
"""


class Net18(AllowedTest):
    def test_nobody_else_reaches_it(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                before = subprocess.run(["ss", "-Hlntu"], capture_output=True, text=True).stdout
                held = self.start(HOLD, ["--allow", "allowed.example"], caller, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                self.assertIn(b"200 OK", held.stdout.readline())
                # No socket of it listens on the host.
                self.assertEqual(subprocess.run(["ss", "-Hlntu"], capture_output=True, text=True).stdout, before)
                probe = PROBE + "report(answers=[absolute(b'http://allowed.example/', b'allowed.example'), socks5(b'allowed.example'), get('198.18.0.1'), get('allowed.example')])"
                self.server.visits.clear()
                for other in (self.sandbox(probe), self.sandbox(probe, caller=user()), self.sandbox(probe, ["--allow", "other.example"])):
                    self.assertEqual([answer for answer in other.findings["answers"] if "welcome" in answer], [])
                native = self.native(probe, user()).findings["answers"]
                self.assertEqual(native[:2], ["ECONNREFUSED", "ECONNREFUSED"])
                self.server.visits.clear()
                held.stdin.close()
                held.wait(20)

    def test_memory_and_descriptors_of_the_process(self) -> None:
        """An ordinary user sees nothing of the process that holds the way out, though it may be that user's own."""
        for caller in callers():
            with self.subTest(caller=caller.name):
                held = self.start(HOLD, ["--allow", "allowed.example"], caller, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                held.stdout.readline()
                pids = subprocess.run(["pgrep", "-P", str(held.pid), "-f", "^belljar-egress$"], capture_output=True, text=True).stdout.split()
                self.assertEqual(len(pids), 1)
                probe = f"report(files=[attempt(os.listdir, '/proc/{pids[0]}/fd'), attempt(open, '/proc/{pids[0]}/mem'), attempt(open, '/proc/{pids[0]}/environ')])"
                self.assertEqual(set(self.native(probe, user()).findings["files"]), {"EACCES"})
                status = Path(f"/proc/{pids[0]}/status").read_text()
                self.assertEqual(re.search(r"CapEff:\s*(\w+)", status)[1], "0" * 16)
                self.assertEqual(re.search(r"Seccomp:\s*(\d)", status)[1], "2")
                self.assertEqual(re.search(r"NoNewPrivs:\s*(\d)", status)[1], "1")
                uid = int(re.search(r"Uid:\s*(\d+)", status)[1])
                self.assertEqual(uid != 0, True)
                held.stdin.close()
                held.wait(20)


if __name__ == "__main__":
    main()
