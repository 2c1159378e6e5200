"""CLN-06: the caller goes away: SIGINT, SIGTERM, SIGHUP, Ctrl-C twice, a terminal that is closed."""

import json
import os
import pty
import signal
import subprocess
import time

from harness import callers, main
from outside import OutsideTest, alive_below

STUBBORN = """
import signal, time
for number in (1, 2, 3, 15): signal.signal(number, signal.SIG_IGN)
print("up", flush=True)
time.sleep(1000)
"""


class Cln06(OutsideTest):
    def test_signals(self):
        for caller in callers():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                with self.subTest(caller=caller, signal=number.name):
                    process = self.start(STUBBORN, ["--timeout", "60s"], caller, stdout=-1, stderr=-1)
                    self.assertEqual(process.stdout.readline(), b"up\n")
                    start = time.monotonic()
                    process.send_signal(number)
                    out, err = process.communicate(timeout=10)
                    self.assertEqual(self.observer.leftovers(), {})
                    self.assertEqual(process.returncode, 128 + number)
                    self.assertLess(time.monotonic() - start, 3)
                    self.assertIn(b"stopped by the caller", err)

    def test_twice(self):
        for caller in callers():
            with self.subTest(caller=caller):
                process = self.start(STUBBORN, ["--timeout", "60s"], caller, stdout=-1, stderr=-1)
                self.assertEqual(process.stdout.readline(), b"up\n")
                for _ in range(20):
                    process.send_signal(signal.SIGINT)
                process.communicate(timeout=10)
                self.assertEqual(process.returncode, 128 + signal.SIGINT)
                self.assertEqual(self.observer.leftovers(), {})

    def test_with_a_record(self):
        for caller in callers():
            with self.subTest(caller=caller):
                process = caller.popen(self.command_line(STUBBORN, ["--timeout", "60s"], caller), stdout=-1, stderr=-1)
                self.wait_until_running(process)
                process.send_signal(signal.SIGTERM)
                out, err = process.communicate(timeout=10)
                record = json.loads(out)
                self.assertEqual((process.returncode, record["status"]), (128 + signal.SIGTERM, "cancelled"))

    def test_at_any_moment_of_the_start(self):
        for caller in callers():
            argv = self.command_line(["sleep", "1000"], ["--timeout", "60s"], caller)
            for number in range(16):
                with self.subTest(caller=caller, number=number):
                    process = caller.popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    time.sleep(number * 0.002)
                    process.send_signal(signal.SIGTERM)
                    # Before belljar has set itself up, the signal's own action ends it: then nothing was made yet.
                    self.assertIn(process.wait(timeout=10), (128 + signal.SIGTERM, -signal.SIGTERM))
                    self.assert_nothing_left()

    def on_terminal(self, caller, act) -> int:
        """Runs belljar in the foreground of a terminal, lets act(terminal) happen once it is up; its exit status.

        The session's leader is a stand-in for a shell: it waits for its child and ends with it, or by SIGHUP.
        """
        script = self.script(STUBBORN)
        read, write = os.pipe()
        leader, terminal = pty.fork()
        if leader == 0:
            try:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                child = os.fork()
                if child == 0:
                    signal.signal(signal.SIGINT, signal.SIG_DFL)
                    os.chdir(caller.home)
                    line = caller.argv([caller.belljar, "run", "--timeout", "60s", script])
                    os.execvpe(line[0], line, caller.environment())
                os.write(write, str(child).encode())
                os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # its adopter takes the status
            finally:
                os._exit(0)
        os.close(write)
        child = int(os.read(read, 100))
        os.close(read)
        seen = b""
        while b"up" not in seen:
            seen += os.read(terminal, 1000)
        act(terminal)
        try:
            while os.read(terminal, 1000):
                pass
            os.close(terminal)
        except OSError:
            pass
        os.waitpid(leader, 0)

        def status():
            pid, status = os.waitpid(child, os.WNOHANG)
            return (os.waitstatus_to_exitcode(status),) if pid else None

        return self.wait_for(status, "belljar's end", 10)[0]

    def test_ctrl_c_twice(self):
        def act(terminal):
            os.write(terminal, b"\3")
            time.sleep(0.01)
            try:
                os.write(terminal, b"\3")
            except OSError:
                pass

        for caller in callers():
            with self.subTest(caller=caller):
                self.assertEqual(self.on_terminal(caller, act), 128 + signal.SIGINT)
                self.assert_nothing_left()

    def test_the_terminal_is_closed(self):
        for caller in callers():
            with self.subTest(caller=caller):
                self.assertEqual(self.on_terminal(caller, os.close), 128 + signal.SIGHUP)
                self.assert_nothing_left()

    def test_natively_it_lives_on(self):
        before = set(alive_below())
        process = callers()[0].popen(["/usr/bin/python3", self.script(STUBBORN)], stdout=-1)
        self.assertEqual(process.stdout.readline(), b"up\n")
        process.send_signal(signal.SIGTERM)
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(timeout=0.3)
        process.kill()
        process.communicate()
        self.assertEqual(set(alive_below()), before)


if __name__ == "__main__":
    main()
