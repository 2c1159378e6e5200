"""RES-21: endless logs: the kernel's, the console's, the system's, and Belljar's own lines."""

import os

from harness import callers, main, not_covered, root
from outside import OutsideTest

PROBE = """
import socket, stat
def write(path):
    with open(path, "wb", buffering=0) as file: file.write(b"<3>%s\\n" % sys.argv[1].encode())
places = ["/dev/kmsg", "/dev/console", "/dev/tty0", "/dev/ttyS0", "/dev/log", "/proc/kmsg", "/dev/ptmx0", "/dev/tty"]
def datagram():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s: s.sendto(b"<3>x", "/dev/log")
def change_the_host():
    return dict(syslog_clear=syscall(103, 5, None, 0), syslog_level=syscall(103, 8, None, 8),
                coredump=attempt(write, "/proc/sys/kernel/core_pattern"))
report(
    **{place: attempt(write, place) for place in places}, log_socket=attempt(datagram),
    syslog_read=syscall(103, 3, ctypes.create_string_buffer(1000), 1000),
    **({} if "natively" in sys.argv else change_the_host()),  # as root outside these would succeed
)
"""


def kernel_log() -> str:
    """The kernel's log; empty where it may not be read."""
    lines = []
    try:
        fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(fd, "rb", buffering=0) as log:
        while True:
            try:
                line = log.read(8192)
            except BrokenPipeError:
                continue  # overwritten meanwhile
            if not line:  # EAGAIN: that was the last
                return "\n".join(lines)
            lines.append(line.decode("utf-8", "replace"))


class Res21(OutsideTest):
    def test_places(self):
        for caller in callers():
            with self.subTest(caller=caller):
                findings = self.sandbox(PROBE, caller=caller, arguments=[self.canary]).findings
                self.assertEqual([name for name, answer in findings.items() if answer == "ok"], [])
                for name in ("syslog_read", "syslog_clear", "syslog_level"):
                    self.assertEqual(findings[name], "EPERM")
        if root() is None:
            return
        self.assertNotIn(self.canary, kernel_log())
        native = self.native(PROBE, root(), arguments=[self.canary, "natively"]).findings
        if native["/dev/kmsg"] == "ok":
            self.assertIn(self.canary, kernel_log())
        else:
            not_covered("the kernel's log as root natively", f"/dev/kmsg: {native['/dev/kmsg']}")
        self.assertEqual(native["syslog_read"], "ok")

    def test_faults_are_not_logged_without_end(self):
        """Crashing children, which the kernel may log by a line each, with its rate limit."""
        probe = """
import resource
for _ in range(300):
    pid = os.fork()
    if pid == 0: ctypes.string_at(8)
    os.waitpid(pid, 0)
report(crashed=300)
"""
        before = len(kernel_log().splitlines())
        for caller in callers():
            with self.subTest(caller=caller):
                self.assertEqual(self.sandbox(probe, caller=caller).findings, {"crashed": 300})
        self.assertLess(len(kernel_log().splitlines()) - before, 200)

    def test_own_lines(self):
        """What Belljar itself says of a run does not grow with what the program does."""
        for caller in callers():
            with self.subTest(caller=caller):
                process = self.start("os.write(2, b'belljar: ' * 1000000)\nos.kill(os.getpid(), 9)",
                                     ["--output-limit", "0"], caller, stdout=-1, stderr=-1)
                out, err = process.communicate(timeout=60)
                self.assertEqual(out, b"")
                self.assertLess(len(err), 500)
                self.assertLessEqual(err.count(b"\n"), 3)

    def test_a_legal_log(self):
        for caller in callers():
            with self.subTest(caller=caller):
                result = self.sandbox("import logging; logging.error('x' * 1000)", caller=caller)
                self.assertIn("x" * 1000, result.stderr)


if __name__ == "__main__":
    main()
