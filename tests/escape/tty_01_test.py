"""TTY-01: type into the caller's terminal, or change it. The caller is a real terminal's session leader."""

import json
import os
import pty
import time

from harness import callers, main
from outside import OutsideTest

PROBE = """
import fcntl, struct, termios
def command(number, argument, fd): return attempt(fcntl.ioctl, fd, number, argument)
found = {}
def try_all(name, fd):
    found[name] = {
        "TIOCSTI": command(0x5412, b"i", fd), "TIOCLINUX": command(0x541C, b"\\2", fd),
        "TIOCSETD": command(0x5423, struct.pack("i", 16), fd), "TIOCCONS": command(0x541D, 0, fd),
        "TIOCSCTTY": command(0x540E, 1, fd), "TIOCSWINSZ": command(0x5414, struct.pack("HHHH", 1, 1, 0, 0), fd),
        "TCSETS": attempt(lambda: termios.tcsetattr(fd, 0, termios.tcgetattr(fd))) if os.isatty(fd) else "ENOTTY",
        "tty": os.isatty(fd),
    }
for name, fd in (("stdin", 0), ("stdout", 1), ("stderr", 2)): try_all(name, fd)
try:
    with open("/dev/tty", "r+b", buffering=0) as terminal: try_all("controlling", terminal.fileno())
except OSError as error: found["controlling"] = name_of(error.errno)
for path in ("/dev/pts/0", "/dev/pts/1", "/dev/console", "/proc/1/fd/0", "/proc/self/fd/0"):
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        if os.isatty(fd): try_all(path, fd)
        os.close(fd)
    except OSError: pass
found["session"] = os.getsid(0) == os.getpid()
with open(sys.argv[1], "w") as file: json.dump(found, file)
"""

# A 32-bit command number with junk above it: the kernel looks at the lower half only.
WIDE = """
import pty
answers = {}
ours, theirs = pty.openpty()
for name, number in (("TIOCSTI", 0x5412), ("TIOCLINUX", 0x541C), ("TIOCSETD", 0x5423), ("TIOCCONS", 0x541D)):
    for high in (0, 1 << 32, 0xffffffff << 32):
        for fd in (ours, theirs):
            answers[f"{name} {high:x} {fd == ours}"] = syscall(16, fd, number | high, b"i\\0\\0\\0\\0\\0\\0\\0")
report(**answers)
"""


class Tty01(OutsideTest):
    def on_terminal(self, argv: list[str], caller, typed: bytes = b"") -> tuple[bytes, int, bytes]:
        """Runs argv as the leader of a session on a new terminal. Its output, its status, and what was typed to it and
        never read."""
        pid, terminal = pty.fork()
        if pid == 0:
            try:
                # The leader is a stand-in for the caller's shell; belljar is its child in the foreground.
                child = os.fork()
                if child == 0:
                    line = caller.argv(argv)
                    os.chdir(caller.home)
                    os.execvpe(line[0], line, caller.environment())
                status = os.waitpid(child, 0)[1]
                import fcntl
                import termios
                attributes = termios.tcgetattr(0)
                attributes[3] &= ~(termios.ICANON | termios.ECHO)
                termios.tcsetattr(0, termios.TCSANOW, attributes)
                waiting = int.from_bytes(fcntl.ioctl(0, termios.FIONREAD, b"\0" * 4), "little")
                os.write(1, b"<unread:%d>" % waiting)
                os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
            finally:
                os._exit(99)
        seen = bytearray()
        if typed:
            os.write(terminal, typed)
        until = time.monotonic() + 60
        try:
            while time.monotonic() < until and (chunk := os.read(terminal, 65536)):
                seen += chunk
        except OSError:
            pass  # EIO: all have gone
        os.close(terminal)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return bytes(seen), status, bytes(seen).split(b"<unread:")[-1].split(b">")[0]

    def test_on_the_callers_terminal(self):
        for caller in callers():
            with self.subTest(caller=caller):
                out = self.host_folder(f"out-{caller}", caller)
                script = self.script(PROBE)
                seen, status, unread = self.on_terminal(
                    [caller.belljar, "run", "--mount", f"{out}:/out:rw", script, "/out/found.json"], caller)
                self.assertEqual(status, 0, seen)
                self.assertEqual(unread, b"0", "nothing was typed into the caller's terminal")
                found = json.loads((out / "found.json").read_text())
                self.assertTrue(found.pop("session"))
                self.assertEqual(found.pop("controlling"), "ENXIO")  # tty(4): there is none
                self.assertEqual(set(found), {"stdin", "stdout", "stderr"}, "no other terminal is in reach")
                for name, answers in found.items():
                    self.assertFalse(answers.pop("tty"), f"{name} is a pipe")
                    for command, answer in answers.items():
                        self.assertIn(answer, ("EPERM", "ENOTTY", "EINVAL"), f"{command} on {name}")

    def test_natively_it_types(self):
        """The positive control, where the kernel still allows it (sysctl dev.tty.legacy_tiocsti)."""
        probe = "import fcntl, os\ntry: fcntl.ioctl(0, 0x5412, b'i')\nexcept OSError: pass\n" \
                "print('tty:', os.isatty(0), os.path.exists('/dev/tty') and os.open('/dev/tty', os.O_RDWR) > 0)"
        caller = callers()[0]
        seen, status, unread = self.on_terminal(["/usr/bin/python3", self.script(probe)], caller)
        self.assertIn(b"tty: True True", seen)  # natively the terminal itself is in reach ...
        self.assertEqual(unread, b"1", seen)  # ... and takes what is typed into it

    def test_on_a_terminal_of_its_own(self):
        for caller in callers():
            with self.subTest(caller=caller):
                findings = self.sandbox(WIDE, caller=caller).findings
                self.assertEqual({answer for answer in findings.values()}, {"EPERM"})
        native = self.native(WIDE, callers()[0]).findings
        self.assertNotEqual(native["TIOCSETD 0 True"], "EPERM")

    def test_a_legal_terminal(self):
        """Programs may make terminals of their own, and use them."""
        probe = """
import pty, termios, fcntl, struct
pid, terminal = pty.fork()
if pid == 0: os.execvp("sh", ["sh", "-c", "stty size; tty -s && echo on a terminal"])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 34, 0, 0))
seen = b""
try:
    while chunk := os.read(terminal, 1000): seen += chunk
except OSError: pass
report(seen="on a terminal" in seen.decode(), status=os.waitpid(pid, 0)[1])
"""
        for caller in callers():
            with self.subTest(caller=caller):
                self.assertEqual(self.sandbox(probe, caller=caller).findings, {"seen": True, "status": 0})

    def test_what_the_caller_types_goes_in(self):
        for caller in callers():
            with self.subTest(caller=caller):
                seen, status, unread = self.on_terminal(
                    [caller.belljar, "run", "--", "python3", "-c", "print('read', input())"], caller, typed=b"hello\n")
                self.assertIn(b"read hello", seen)
                self.assertEqual((status, unread), (0, b"0"))


if __name__ == "__main__":
    main()
