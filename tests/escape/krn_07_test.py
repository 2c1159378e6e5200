"""KRN-07: what page cache exploits need: AF_ALG sockets, image files spliced into pipes and written there, setuid files."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from harness import EscapeTest, callers, main, not_covered, root

FAMILIES = {"AF_ALG": 38, "AF_VSOCK": 40, "AF_PACKET": 17, "AF_KEY": 15, "AF_CAN": 29, "AF_TIPC": 30, "AF_BLUETOOTH": 31, "AF_RDS": 21,
            "AF_XDP": 44, "AF_QIPCRTR": 42, "AF_KCM": 41, "AF_SMC": 43, "AF_MCTP": 45}

# Splices a file of the image into a pipe and writes to the pipe, as CVE-2022-0847 does after it has filled all of its buffers.
PROBE = f"families = {FAMILIES!r}\n" + """
import socket
def splice_and_write(path):
    read, write = os.pipe()
    for _ in range(16):
        os.write(write, b"x" * 4096)
    for _ in range(16):
        os.read(read, 4096)
    file = os.open(path, os.O_RDONLY)
    os.splice(file, write, 1, offset_src=0)
    os.write(write, b"canary!")
answers = {name: attempt(socket.socket, number, kind) for name, number in families.items() for kind in (socket.SOCK_SEQPACKET,)}
report(families=answers, spliced={path: attempt(splice_and_write, path) for path in sys.argv[1:]},
       opened={path: attempt(os.open, path, os.O_RDWR) for path in sys.argv[1:]})
"""

SETUID = """
found = []
for folder, _, files in os.walk("/", onerror=lambda error: None):
    if folder.startswith(("/proc", "/sys")):
        continue
    for name in files:
        path = os.path.join(folder, name)
        status = os.lstat(path)
        if status.st_mode & 0o6000 and not os.path.islink(path):
            found.append([path, bool(os.statvfs(path).f_flag & os.ST_NOSUID)])
report(found=found)
"""


def digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class Krn07(EscapeTest):
    def files(self) -> list[str]:
        return [os.path.realpath(path) for path in ("/usr/bin/python3", "/usr/bin/env", "/usr/lib/os-release", "/bin/sh")]

    def test_socket_families(self) -> None:
        for caller in callers():
            answers = self.sandbox(PROBE, caller=caller).findings["families"]
            self.assertEqual(answers, {name: "EAFNOSUPPORT" for name in FAMILIES})

    def test_socket_families_control(self) -> None:
        """Some family that is refused inside is there on this host."""
        probe = "import socket\nreport(packet=attempt(socket.socket, socket.AF_PACKET, socket.SOCK_RAW))"
        if caller := root():
            self.assertEqual(self.native(probe, caller).findings["packet"], "ok")

    def test_image_files_keep_their_content(self) -> None:
        files = self.files()
        before = [digest(path) for path in files]
        for caller in callers():
            findings = self.sandbox(PROBE, caller=caller, arguments=files).findings
            self.assertEqual(set(findings["spliced"].values()), {"ok"})  # splice is a legal call; the file is not written
            self.assertLessEqual(set(findings["opened"].values()), {"EROFS", "EACCES"})
        self.assertEqual([digest(path) for path in files], before)

    def test_setuid_files_give_nothing(self) -> None:
        for caller in callers():
            for path, is_nosuid in self.sandbox(SETUID, caller=caller).findings["found"]:
                self.assertTrue(is_nosuid, path)

    def test_setuid_program_of_a_mounted_folder(self) -> None:
        caller = root()
        if caller is None:
            return
        data = self.host_folder("data", caller)
        program = data / "id"
        shutil.copyfile("/usr/bin/id", program)
        program.chmod(0o6755)
        who = ["setpriv", "--reuid=63998", "--regid=63998", "--clear-groups", "--", str(program), "-u"]
        natively = subprocess.run(who, capture_output=True, text=True, check=True).stdout
        if natively != "0\n":
            return not_covered("KRN-07 with a setuid file", f"{self.folder} is mounted nosuid")
        for caller in callers():
            for access in "ro", "rw":
                result = self.sandbox(["/data/id"], ["--mount", f"{data}:/data:{access}"], caller)
                self.assertTrue(result.stdout.startswith("uid=1000"), result)
                self.assertNotIn("euid", result.stdout)
                self.assertNotIn("egid", result.stdout)

    def test_no_setuid_file_can_be_made(self) -> None:
        probe = """
def make(path, mode):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, mode))
open("/data/file", "w").close()
made = [attempt(os.chmod, "/data/file", mode) for mode in (0o4755, 0o2755, 0o6777)]
made += [attempt(make, "/data/new", 0o4755), attempt(os.mkdir, "/data/folder", 0o2755), attempt(os.mknod, "/data/node", 0o104755)]
report(made=made, plain=attempt(os.chmod, "/data/file", 0o755), sticky=attempt(os.mkdir, "/data/sticky", 0o1777))
"""
        for caller in callers():
            data = self.host_folder(f"data-{caller}", caller)
            findings = self.sandbox(probe, ["--mount", f"{data}:/data:rw"], caller).findings
            self.assertEqual(findings["made"], ["EPERM"] * 6)
            self.assertEqual((findings["plain"], findings["sticky"]), ("ok", "ok"))
            self.assertFalse([path for path in data.rglob("*") if path.stat().st_mode & 0o6000])


if __name__ == "__main__":
    main()
