"""PRV-02: gain capabilities from a file that has them, or from ambient and inheritable sets."""

import os
import shutil
import subprocess

from harness import EscapeTest, callers, main, not_covered, root

# Tries to raise what can be raised, then shows the sets: its own, and those of what it executes.
PROBE = """
class Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]
every = (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
answers = dict(
    capset=syscall(126, ctypes.byref(Header(0x20080522, 0)), every),
    ambient=[_libc.prctl(47, 2, capability, 0, 0) for capability in range(41)].count(0),
    keep=_libc.prctl(8, 1, 0, 0, 0), securebits=_libc.prctl(28, 0, 0, 0, 0),
    setuid=[attempt(call, number) for call in (os.setuid, os.setgid) for number in (0, 1, 65534)],
    setgroups=attempt(os.setgroups, [0]))
report(answers=answers, sets=[line.split() for line in open("/proc/self/status") if line.startswith("Cap")])
"""

SHOW = ["grep", "^Cap", "/proc/self/status"]


def sets_of(text: str) -> dict[str, int]:
    return {line.split()[0]: int(line.split()[1], 16) for line in text.splitlines() if line.startswith("Cap")}


class Prv02(EscapeTest):
    def test_file_capabilities(self) -> None:
        caller = root()
        if caller is None:
            return
        data = self.host_folder("data", caller)
        program = str(data / "grep")
        shutil.copyfile("/usr/bin/grep", program)
        os.chmod(program, 0o755)
        setcap = shutil.which("setcap", path="/usr/sbin:/sbin:/usr/bin")
        if setcap is None:
            return not_covered("PRV-02 with a file's capabilities", "setcap is not installed")
        subprocess.run([setcap, "cap_net_raw,cap_sys_admin+ep", program], check=True)
        # The control: an ordinary user gets them by executing the file.
        who = ["setpriv", "--reuid=63997", "--regid=63997", "--clear-groups", "--"]
        natively = subprocess.run([*who, program, "^Cap", "/proc/self/status"], capture_output=True, text=True, check=True).stdout
        self.assertNotEqual(sets_of(natively)["CapEff:"], 0)
        for caller in callers():
            for access in "ro", "rw":
                result = self.sandbox(["/data/grep", "^Cap", "/proc/self/status"], ["--mount", f"{data}:/data:{access}"], caller)
                self.assertEqual(set(sets_of(result.stdout).values()), {0}, result)

    def test_sets_of_the_caller(self) -> None:
        """Root's own sets, inheritable and ambient ones included, are left behind."""
        if root() is None:
            return
        give = ["setpriv", "--inh-caps=+all", "--ambient-caps=+all", "--"]
        natively = subprocess.run([*give, *SHOW], capture_output=True, text=True)
        if natively.returncode != 0:
            give = ["setpriv", "--inh-caps=+chown,+net_raw", "--ambient-caps=+chown,+net_raw", "--"]
            natively = subprocess.run([*give, *SHOW], capture_output=True, text=True, check=True)
        self.assertNotEqual(sets_of(natively.stdout)["CapAmb:"], 0)
        caller = root()
        inside = caller.run([*give, caller.belljar, "run", "--", *SHOW])
        self.assertEqual(sets_of(inside.stdout.decode()), dict.fromkeys(["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"], 0))

    def test_none_can_be_raised(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                findings = self.sandbox(PROBE, caller=caller).findings
                self.assertEqual({int(value, 16) for _, value in findings["sets"]}, {0})
                answers = findings["answers"]
                self.assertEqual((answers["capset"], answers["ambient"], answers["setgroups"]), ("EPERM", 0, "EPERM"))
                self.assertEqual(set(answers["setuid"]), {"EPERM"} if caller.uid == 0 else set(answers["setuid"]) - {"ok"})

    def test_none_come_with_a_user_namespace(self) -> None:
        """The positive control of which is what any user of the host can do."""
        probe = "report(new=syscall(272, 0x10000000), both=syscall(272, 0x10020000))"
        for caller in callers():
            findings = self.sandbox(probe, caller=caller).findings
            self.assertEqual(findings, {"new": "EPERM", "both": "EPERM"})
            if self.native(probe, caller).findings["new"] != "ok":
                not_covered("PRV-02's control with user namespaces", "this host does not let users make them")


if __name__ == "__main__":
    main()
