"""PRV-07: sudo, su, pkexec, newuidmap, doas, at, crontab, systemd-run, dbus activation."""

import os
import shutil

from harness import EscapeTest, callers, main, root

MARK = "touch /tmp/belljar-escape-prv-07"
COMMANDS = {
    "sudo": ["sudo", "-n", "id", "-u"], "su": ["su", "-c", "id -u"], "su to root": ["su", "-", "root", "-c", "id -u"],
    "pkexec": ["pkexec", "id", "-u"], "doas": ["doas", "-n", "id", "-u"], "runuser": ["runuser", "-u", "root", "--", "id", "-u"],
    "setpriv": ["setpriv", "--reuid=0", "id", "-u"], "newuidmap": ["newuidmap", "1", "0", "0", "1"],
    "newgrp": ["newgrp", "root"], "unshare": ["unshare", "-r", "id", "-u"], "nsenter": ["nsenter", "-t", "1", "-a", "id", "-u"],
    "chroot": ["chroot", "/", "id", "-u"], "at": ["sh", "-c", f"echo '{MARK}' | at now"], "crontab": ["sh", "-c", f"echo '* * * * * {MARK}' | crontab -"],
    "systemd-run": ["systemd-run", "--no-ask-password", "id", "-u"], "systemctl": ["systemctl", "start", "x.service"],
    "dbus-send": ["dbus-send", "--system", "--dest=org.freedesktop.systemd1", "/", "x.y"], "busctl": ["busctl", "list"],
    "mount": ["mount", "-t", "tmpfs", "x", "/tmp"], "umount": ["umount", "/proc"], "passwd": ["passwd", "-d", "root"],
    "chsh": ["chsh", "-s", "/bin/sh", "root"], "mountbind": ["mount", "--bind", "/tmp", "/usr"], "fusermount": ["fusermount3", "/tmp"],
}


class Prv07(EscapeTest):
    def test_positive_control(self) -> None:
        """Root on the host is given what these ask for."""
        if caller := root():
            self.assertEqual(self.native(COMMANDS["setpriv"], caller).stdout, "0\n")
            self.assertEqual(self.native(COMMANDS["chroot"], caller).stdout, "0\n")
            self.assertEqual(self.native(COMMANDS["unshare"], caller).stdout, "0\n")

    def test_refused_or_absent(self) -> None:
        for caller in callers():
            present = 0
            for name, command in COMMANDS.items():
                with self.subTest(caller=caller.name, command=name):
                    result = self.sandbox(command, ["--timeout", "10s"], caller)
                    self.assertNotEqual(result.exit_status, 0)
                    self.assertNotEqual(result.stdout, "0\n")
                    present += shutil.which(command[0]) is not None and result.exit_status != 127
            self.assertGreater(present, 5, "hardly any of them is installed here")
            self.assertFalse(os.path.exists(MARK.split()[1]))


if __name__ == "__main__":
    main()
