"""belljar run --tty: a terminal of the sandbox's own, joined to the caller's."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from harness import Case, both_callers, main


class Session:
    """A Belljar command at a terminal of this test's own."""

    def __init__(self, case: Case, *arguments, size=(24, 80)):
        self.fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.settings = termios.tcgetattr(theirs)
        self.theirs = theirs

        def take_terminal():
            os.setsid()
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

        self.process = case.start(*arguments, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=take_terminal,
                                  env={"TERM": "dumb"})
        self.seen = ""
        case.addCleanup(self.close)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for fd in (self.fd, self.theirs):
            if fd >= 0:
                os.close(fd)

    def type(self, text: str):
        os.write(self.fd, text.encode())

    def expect(self, pattern: str, patience: float = 20) -> re.Match:
        """Reads until `pattern` has come, and forgets all up to its end."""
        until = time.monotonic() + patience
        while not (found := re.search(pattern, self.seen)):
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError(f"{pattern!r} did not come; seen: {self.seen!r}")
            self.seen += os.read(self.fd, 65536).decode(errors="replace")
        self.seen = self.seen[found.end():]
        return found

    def end(self, patience: float = 20) -> int:
        until = time.monotonic() + patience
        while self.process.poll() is None and time.monotonic() < until:
            if select.select([self.fd], [], [], 0.05)[0]:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
        return self.process.wait(timeout=1)


@both_callers
class Terminals(Case):
    tier = ("--isolation", "container")

    def shell(self, *options, size=(24, 80)) -> Session:
        session = Session(self, "run", *self.tier, *options, "--tty", "-e", "PS1=ready>", "--", "bash", "--norc", "-i", size=size)
        session.expect("ready>")
        return session

    def test_the_terminal_is_restored_whatever_signal_ends_it(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGALRM, signal.SIGABRT, signal.SIGXCPU):
            with self.subTest(number):
                shell = self.shell()
                self.assertNotEqual(termios.tcgetattr(shell.theirs), shell.settings)
                shell.process.send_signal(signal.SIGTSTP)
                shell.type("echo goes-$((40 + 2))\n")
                shell.expect("goes-42")
                shell.process.send_signal(number)
                self.assertEqual(shell.end(), 128 + number)
                self.assertEqual(termios.tcgetattr(shell.theirs), shell.settings)

    def test_it_is_the_sandboxs_own(self):
        shell = self.shell(size=(31, 97))
        shell.type("tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo three; echo kind $TERM\n")
        shell.expect(r"/dev/pts/0\r\n31 97\r\nthree\r\nkind dumb\r\n")
        shell.type("ls /dev/pts; echo to-the-terminal >/dev/tty\n")
        shell.expect(r"0 +ptmx\r\n(.*\r\n)*to-the-terminal")
        shell.type("exit 7\n")
        self.assertEqual(shell.end(), 7)

    def test_resize(self):
        shell = self.shell()
        shell.type("trap 'echo changed to $(stty size)' WINCH; echo set\n")
        shell.expect(r"\nset\r\n")
        fcntl.ioctl(shell.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 132, 0, 0))
        shell.process.send_signal(signal.SIGWINCH)
        time.sleep(0.2)
        shell.type("\n")
        shell.expect("changed to 50 132")

    def test_keys_are_signals_inside_only(self):
        shell = self.shell()
        shell.type("sleep 60; echo status $?\n")
        shell.expect("status")
        time.sleep(0.3)
        shell.type("\x03")
        shell.expect(r"ready>")
        shell.type("echo still $((6*7)) here\n")
        shell.expect("still 42 here")

    def test_job_control(self):
        shell = self.shell()
        shell.type("sleep 60\n")
        time.sleep(0.4)
        shell.type("\x1a")
        shell.expect(r"Stopped +sleep 60")
        shell.type("kill %1; wait; fg; echo last $?\n")
        shell.expect(r"last \d+")
        shell.type("exit 3\n")
        self.assertEqual(shell.end(), 3)

    def test_the_callers_terminal_is_as_before(self):
        shell = self.shell()
        self.assertNotEqual(termios.tcgetattr(shell.theirs), shell.settings)  # raw while it runs
        shell.type("exit 0\n")
        self.assertEqual(shell.end(), 0)
        self.assertEqual(termios.tcgetattr(shell.theirs), shell.settings)
        shell = self.shell()
        shell.process.send_signal(signal.SIGTERM)
        self.assertEqual(shell.end(), 128 + signal.SIGTERM)
        self.assertEqual(termios.tcgetattr(shell.theirs), shell.settings)

    def test_a_closed_terminal_ends_it(self):
        shell = self.shell()
        os.close(shell.fd)
        os.close(shell.theirs)
        shell.fd = shell.theirs = -1
        self.assertNotEqual(shell.process.wait(timeout=20), 0)

    def test_typing_for_others_is_refused(self):
        shell = self.shell()
        shell.type("python3 -c 'import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b\"x\")' 2>&1 | tail -1\n")
        shell.expect("PermissionError")

    def test_all_bytes_pass(self):
        shell = self.shell()
        shell.type("printf '\\033[31mred\\033]0;title\\007'\n")
        shell.expect(re.escape("\x1b[31mred\x1b]0;title\x07"))

    def test_much_output_and_no_reader_for_a_while(self):
        shell = self.shell()
        shell.type("seq 1 200000 | tail -c +1; echo the-end\n")
        time.sleep(0.5)
        shell.expect(r"200000\r\nthe-end", patience=60)

    def test_named_limits_hold(self):
        session = Session(self, "run", *self.tier, "--timeout", "700ms", "--tty", "--", "sleep", "60")
        self.assertEqual(session.end(), 124)
        self.assertIn("wall clock limit of 700 ms", session.seen)
        self.assertEqual(termios.tcgetattr(session.theirs), session.settings)

    def test_no_such_program(self):
        session = Session(self, "run", *self.tier, "--tty", "--", "no-such-program")
        self.assertEqual(session.end(), 127)
        self.assertIn("command not found", session.seen)

    def test_without_a_terminal(self):
        self.assert_refused(self.run_in("--tty", "--", "true"), 125, "--tty needs a terminal")
        ended = subprocess.run(self.argv("run", "--tty", "--json", "--", "true"), stdin=subprocess.DEVNULL, capture_output=True,
                               env=self.environment(), check=False)
        self.assertIn(b"--tty and --json exclude each other", ended.stderr)


@both_callers
class KernelTerminals(Terminals):
    """The same on a user-space kernel, whose own terminal it is."""

    tier = ("--isolation", "kernel")

    def test_a_full_screen_program(self):
        shell = self.shell(size=(30, 100))
        code = ("import os, termios, tty; before = termios.tcgetattr(0); tty.setraw(0); os.write(1, b'raw>'); "
                "key = os.read(0, 8); termios.tcsetattr(0, termios.TCSADRAIN, before); print(key, os.get_terminal_size())")
        shell.type(f"/usr/bin/python3 -c \"{code}\"\n")
        shell.expect("raw>$")
        shell.type("\x03")
        shell.expect(r"b'\\x03' os.terminal_size\(columns=100, lines=30\)")

    def test_the_last_output_arrives(self):
        session = Session(self, "run", *self.tier, "--tty", "--", "sh", "-c", "seq 1 5000; exit 4")
        session.expect(r"\n5000\r\n")
        self.assertEqual(session.end(), 4)

    def test_pipes_at_a_terminal(self):
        """Without --tty a terminal of the caller's is a stream like others, and none inside."""
        code = "read line; echo got $line; test -t 0 || test -t 1 || test -t 2 || echo no terminal; (: < /dev/tty) 2> /dev/null || echo none"
        session = Session(self, "run", *self.tier, "--", "sh", "-c", code)
        session.type("word\n")
        session.expect(r"got word\r\nno terminal\r\nnone\r\n")
        self.assertEqual(session.end(), 0)

    def test_calls_are_traced_to_the_terminal(self):
        session = Session(self, "run", *self.tier, "--tty", "--strace", "--", "true")
        session.expect(r"\[2\] exit_group\(0\)\r\n")
        self.assertEqual(session.end(), 0)


if __name__ == "__main__":
    main()
