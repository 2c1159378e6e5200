"""KRN-05: system calls that change or tell about the host: modules, kexec, reboot, ports, swap, clocks, names, the kernel's log,
file handles."""

import errno
import os
import time
from pathlib import Path

from harness import EscapeTest, callers, main
from refusals import Refusals, Row

# Every call with arguments that do nothing, should it get through.
ROWS = [
    Row("kexec_load", 246, [0, 0x7FFFFFFF, 0, 0x7FFFFFFF]),
    Row("kexec_file_load", 320, [-1, -1, 0, 0, 0x7FFFFFFF]),
    Row("init_module", 175, [0, 0, 0]),
    Row("finit_module", 313, [-1, 0, 0x7FFFFFFF]),
    Row("delete_module", 176, [0, 0]),
    Row("iopl", 172, [9]),
    Row("ioperm", 173, [1 << 40, 1, 1]),
    Row("swapon", 167, [0, 0]),
    Row("swapoff", 168, [0]),
    Row("reboot", 169, [0, 0, 0, 0]),
    Row("acct", 163, [1]),
    Row("quotactl", 179, [0x7FFFFFFF, 0, 0, 0]),
    Row("quotactl_fd", 443, [-1, 0x7FFFFFFF, 0, 0]),
    Row("settimeofday", 164, [1, 0]),
    Row("clock_settime", 227, [0, 1]),
    Row("clock_adjtime", 305, [0, 1]),
    Row("adjtimex", 159, [1]),
    Row("sethostname", 170, [0, -1]),
    Row("setdomainname", 171, [0, -1]),
    Row("syslog", 103, [-1, 0, 0]),
    Row("vhangup", 153, [], errno.EPERM, None),  # natively it would hang up the terminal
    Row("name_to_handle_at", 303, [-100, 0, 0, 0, 0x7FFFFFFF]),
    Row("open_by_handle_at", 304, [-1, 0, 0]),
    Row("modify_ldt", 154, [0x7FFF, 0, 0], errno.EPERM, None),  # an unknown function is ENOSYS natively
    Row("lookup_dcookie", 212, [0, 0, 0], errno.EPERM, None),
    Row("nfsservctl", 180, [0, 0, 0], errno.ENOSYS, None),
    Row("_sysctl", 156, [0], errno.ENOSYS, None),
    Row("uselib", 134, [0], errno.ENOSYS, None),
    Row("create_module", 174, [0, 0], errno.ENOSYS, None),
    Row("sync", 162, []),
    Row("syncfs", 306, [-1]),
    Row("mknod of a device", 133, [0, 0o020666, 0x103]),
    Row("setting a label", 460, [100, 0, 0, 0], errno.EPERM, None),
]


def host() -> tuple:
    lists = [Path(name) for name in ("/proc/modules", "/proc/swaps")]
    return os.uname(), [sorted(line.split()[0] for line in path.read_text().splitlines()) for path in lists if path.exists()]


class Krn05(Refusals, EscapeTest):
    rows = ROWS

    def test_the_host_is_unchanged(self) -> None:
        probe = """
import socket, time
answers = dict(name=attempt(socket.sethostname, "taken"), clock=attempt(time.clock_settime, time.CLOCK_REALTIME, 0.0))
report(answers=answers, name=socket.gethostname(), year=time.gmtime().tm_year)
"""
        before, offset = host(), time.time() - time.monotonic()
        for caller in callers():
            findings = self.sandbox(probe, caller=caller).findings
            self.assertEqual(findings["answers"], {"name": "EPERM", "clock": "EPERM"})
            self.assertEqual((findings["name"], findings["year"]), ("sandbox", time.gmtime().tm_year))
        self.assertEqual(host(), before)
        self.assertAlmostEqual(time.time() - time.monotonic(), offset, delta=5)


if __name__ == "__main__":
    main()
