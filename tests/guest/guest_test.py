#!/usr/bin/python3
"""cgroup v2, tested where it is at home: Debian's kernel and systemd in a qemu guest, as root and as an ordinary user.

guest_test.py BELLJAR [TEST_PROGRAM...]

Boots the disk of guest_image.py, with a second disk that holds the binaries and guest_cases.py. The guest's systemd starts
guest_cases.py, which writes a JSON line a case to the second serial port and powers the guest off. What fails to end in
time fails.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import guest_image

HERE = Path(__file__).resolve().parent
TIME_S = {"kvm": 1200, "tcg": 5400}
UP_S = {"kvm": 120, "tcg": 1800}  # from power on to the first result
KVM_GET_API_VERSION = 0xAE00


@dataclass
class Ran:
    results: str
    console: str
    seconds: float
    problem: str  # empty: the guest powered itself off


def has_kvm() -> bool:
    try:
        fd = os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return fcntl.ioctl(fd, KVM_GET_API_VERSION, 0) == 12
    except OSError:
        return False
    finally:
        os.close(fd)


def make_share(folder: Path, binaries: list[str]) -> Path:
    share = folder / "share"
    share.mkdir()
    for binary in binaries:
        shutil.copy(binary, share)
    shutil.copy(HERE / "guest_cases.py", share)
    for path in share.iterdir():
        path.chmod(0o755)
    share.chmod(0o755)
    size_mib = 16 + 2 * sum(path.stat().st_size for path in share.iterdir()) // (1 << 20)
    guest_image.run("mke2fs", "-q", "-F", "-t", "ext4", "-E", "root_owner=0:0", "-d", share, folder / "share.disk",
                    f"{size_mib}M", timeout_s=300)
    return folder / "share.disk"


def text_of(path: Path) -> str:
    return path.read_text(errors="replace").replace("\r", "") if path.exists() else ""


def run_guest(image: guest_image.Image, share: Path, folder: Path, accelerator: str) -> Ran:
    """qemu-system-x86_64(1). The disk is not written to: snapshot=on keeps changes in a temporary file. The processor is
    qemu's plain default, as KVM inside a virtual machine may not have the model-specific registers of a richer one."""
    console, results = folder / f"console.{accelerator}", folder / f"results.{accelerator}"
    argv = ["qemu-system-x86_64", "-accel", accelerator, "-smp", "2", "-m", "2048",
            "-display", "none", "-monitor", "none", "-nic", "none", "-no-reboot",
            "-kernel", image.kernel, "-initrd", image.initrd,
            "-append", "root=/dev/vda rw console=ttyS0 panic=-1 systemd.unified_cgroup_hierarchy=1",
            "-drive", f"file={image.disk},format=raw,if=virtio,snapshot=on",
            "-drive", f"file={share},format=raw,if=virtio,readonly=on",
            "-serial", f"file:{console}", "-serial", f"file:{results}"]
    # setpriv: the guest ends with this process, also when that is killed.
    command = ["setpriv", "--pdeathsig", "KILL", "--", *(str(word) for word in argv)]
    began = time.monotonic()
    qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                            env=dict(os.environ, TMPDIR=str(folder)))
    problem = wait_for(qemu, results, began, accelerator)
    return Ran(text_of(results), text_of(console), time.monotonic() - began, problem)


def wait_for(qemu: subprocess.Popen, results: Path, began: float, accelerator: str) -> str:
    """Until the guest powers itself off; what went wrong, if something did."""
    limit_s, up_s = TIME_S[accelerator], UP_S[accelerator]
    problem = ""
    while not problem and qemu.poll() is None:
        time.sleep(0.2)
        seconds = time.monotonic() - began
        if seconds > limit_s:
            problem = f"the guest did not end within {limit_s} s"
        elif seconds > up_s and not text_of(results):
            problem = f"the guest was not up within {up_s} s"
    if problem:
        qemu.kill()
    _, errors = qemu.communicate()
    if not problem and qemu.returncode != 0:
        problem = f"qemu ended with {qemu.returncode}: {errors.strip()}"
    return problem


def run_fast_or_slow(image: guest_image.Image, share: Path, folder: Path) -> Ran:
    """With KVM; emulated where there is none, or where qemu can't start a guest with it."""
    if has_kvm():
        ran = run_guest(image, share, folder, "kvm")
        if ran.results or not ran.problem:
            return ran
        print(f"KVM can't run the guest, so it is emulated: {ran.problem}", flush=True)
    return run_guest(image, share, folder, "tcg")


def report(ran: Ran) -> int:
    """Prints a line a case and the summary; returns the exit status."""
    counts = {"ok": 0, "FAIL": 0, "skipped": 0}
    ended = False
    for line in ran.results.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            print(f"guest: {line}")
            continue
        if "note" in event:
            print(f"guest: {event['note']}")
        if "case" in event:
            counts[event["result"]] += 1
            print(f"{event['case']} ... {event['result']}")
            if event["detail"]:
                print("".join(f"    {line}\n" for line in event["detail"].splitlines()), end="")
        ended |= "end" in event
    problem = ran.problem or ("" if ended else "the guest ended before its cases did")
    if problem:
        counts["FAIL"] += 1
        print(f"guest ... FAIL\n    {problem}\n    its console ends with:")
        print("".join(f"    {line}\n" for line in ran.console.splitlines()[-40:]), end="")
    print(f"guest time: {ran.seconds:.0f} s")
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['ok']} passed, {counts['FAIL']} failed{skipped}")
    return 0 if counts["ok"] and not counts["FAIL"] else 1


def main(binaries: list[str]) -> int:
    if not binaries:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        for program in ("qemu-system-x86_64", "setpriv"):
            if not shutil.which(program):
                raise guest_image.CannotMake(f"{program} is not installed")
        image = guest_image.cached_image()
        with tempfile.TemporaryDirectory(prefix="belljar-guest-", dir="/var/tmp") as name:
            folder = Path(name)
            return report(run_fast_or_slow(image, make_share(folder, binaries), folder))
    except guest_image.CannotMake as error:
        print(f"NOT COVERED: cgroup v2 in a guest of its own: {error}\n0 passed, 1 failed")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
