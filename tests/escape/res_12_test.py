"""RES-12: whoever reads the output stops reading, or goes away. The deadline holds, and nothing is held up for ever."""

import os
import signal
import subprocess
import time

from harness import callers, main
from outside import OutsideTest, alive_below

FLOOD = "while True: os.write(1, b'x' * 65536)"


class Res12(OutsideTest):
    def test_a_reader_that_stops(self):
        for caller in callers():
            with self.subTest(caller=caller):
                process = self.start(FLOOD, ["--timeout", "1s", "--output-limit", "10M"], caller, stdout=-1, stderr=-1)
                self.wait_until_running(process)
                # The program ends at its deadline though nobody reads; what is left is the supervisor with the rest.
                self.wait_for(lambda: len(alive_below(process.pid)) == 0, "the end of the sandbox", 10)
                out, err = process.communicate(timeout=30)
                self.assertEqual(process.returncode, 124, err)
                self.assertGreater(len(out), 65536)

    def test_a_reader_that_stops_can_be_given_up(self):
        for caller in callers():
            with self.subTest(caller=caller):
                process = self.start(FLOOD, ["--timeout", "1s"], caller, stdout=-1, stderr=-1)
                self.wait_until_running(process)
                self.wait_for(lambda: len(alive_below(process.pid)) == 0, "the end of the sandbox", 10)
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=5)

    def test_a_reader_that_goes_away(self):
        for caller in callers():
            with self.subTest(caller=caller):
                process = self.start(FLOOD, ["--timeout", "60s"], caller, stdout=-1, stderr=-1)
                self.wait_until_running(process)
                process.stdout.read(100)
                start = time.monotonic()
                process.stdout.close()
                err = process.stderr.read()
                self.assertEqual(process.wait(timeout=10), 128 + signal.SIGPIPE, err)
                self.assertLess(time.monotonic() - start, 10)
                self.assertIn(b"reader of its output went away", err)
                self.assert_nothing_left()

    def test_a_reader_that_was_never_there(self):
        for caller in callers():
            with self.subTest(caller=caller):
                read, write = os.pipe()
                os.close(read)
                process = self.start("print('x', flush=True); import time; time.sleep(60)", [], caller, stdout=write,
                                     stderr=-1)
                os.close(write)
                self.assertEqual(process.wait(timeout=10), 128 + signal.SIGPIPE)

    def test_head(self):
        """The legal neighbour: ... | head."""
        for caller in callers():
            with self.subTest(caller=caller):
                process = self.start(FLOOD, ["--timeout", "60s"], caller, stdout=-1, stderr=-1)
                head = subprocess.run(["head", "-c", "10"], stdin=process.stdout, capture_output=True, timeout=20)
                process.stdout.close()
                self.assertEqual(head.stdout, b"x" * 10)
                self.assertEqual(process.wait(timeout=10), 128 + signal.SIGPIPE)


if __name__ == "__main__":
    main()
