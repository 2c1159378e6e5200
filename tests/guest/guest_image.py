"""Makes the guest's disk: Debian 12 with its own kernel and systemd, from the mirrors that this host's apt uses."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

RELEASE = "bookworm"
PACKAGES = ["systemd", "systemd-sysv", "dbus", "dbus-user-session", "libpam-systemd", "python3",
            "linux-image-cloud-amd64", "initramfs-tools", "util-linux", "mount", "passwd", "libstdc++6"]
DISK_SIZE = "2G"  # sparse

# The second disk holds what is tested; the second serial port takes the results.
UNIT = """\
[Unit]
Description=Belljar's tests
After=systemd-user-sessions.service systemd-logind.service dbus.service

[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStartPre=/bin/mount -o ro /dev/vdb /mnt
ExecStart=/usr/bin/python3 /mnt/guest_cases.py service
StandardOutput=file:/dev/ttyS1
StandardError=journal+console
ExecStopPost=/bin/systemctl poweroff --no-block

[Install]
WantedBy=multi-user.target
"""
# The guest has no network and nobody logs in: without these, it is up sooner.
MASKED = ["getty@tty1.service", "serial-getty@ttyS0.service", "apt-daily.timer", "apt-daily-upgrade.timer",
          "systemd-timesyncd.service", "e2scrub_reap.service"]


class CannotMake(Exception):
    """The image can't be had on this host; the text says why."""


@dataclass
class Image:
    disk: Path
    kernel: Path
    initrd: Path


def cache_folder() -> Path:
    return Path(os.environ.get("BELLJAR_CACHE") or Path.home() / ".cache" / "belljar-build") / "guest"


def recipe_key() -> str:
    recipe = repr((RELEASE, PACKAGES, DISK_SIZE, UNIT, MASKED))
    return hashlib.sha256(recipe.encode()).hexdigest()[:16]


def run(*argv: object, timeout_s: int) -> None:
    command = [str(word) for word in argv]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotMake(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise CannotMake(f"{command[0]} failed with {done.returncode}: " + " | ".join(lines[-5:]))


def apt_sources(folder: Path) -> list[Path]:
    """Copies of the host's apt sources, of this Debian release only (sources.list(5): both formats)."""
    suite = re.compile(rf"(?<=\s){RELEASE}(-updates|-security)?(?=\s|$)")
    lines, stanzas = [], []
    apt = Path("/etc/apt")
    for path in [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*.list"))]:
        if path.exists():
            lines += [line for line in path.read_text().splitlines() if line.startswith("deb ") and suite.search(line)]
    for path in sorted((apt / "sources.list.d").glob("*.sources")):
        for stanza in re.split(r"\n\s*\n", path.read_text()):
            suites = re.search(r"^Suites:.*$", stanza, re.MULTILINE)
            if suites and suite.search(suites[0]):
                stanzas.append(stanza.strip())
    found = []
    for name, text in (("debian.list", "\n".join(lines)), ("debian.sources", "\n\n".join(stanzas))):
        if text:
            (folder / name).write_text(text + "\n")
            found.append(folder / name)
    return found


def apt_options(folder: Path) -> Path:
    """How the host's apt fetches (proxies, retries, checks of dates), which mmdebstrap's own apt doesn't read."""
    shown = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=False).stdout
    kept = [line for line in shown.splitlines()
            if re.match(r"Acquire::(https?|ftp|Retries|ForceIPv[46]|Check-\S+|Max-\S+)(::\S+)? ", line) and '""' not in line]
    path = folder / "apt.conf"
    path.write_text("\n".join(kept) + "\n")
    return path


def make(folder: Path) -> None:
    """Fills `folder` with disk, kernel and initrd."""
    if os.geteuid() != 0:
        raise CannotMake("only root can make the guest's root file system")
    root = folder / "root"
    run("mmdebstrap", "--quiet", "--variant=minbase", f"--aptopt={apt_options(folder)}", f"--include={','.join(PACKAGES)}",
        RELEASE, root, *apt_sources(folder), timeout_s=3000)
    units = root / "etc/systemd/system"
    (units / "belljar-guest.service").write_text(UNIT)
    (units / "multi-user.target.wants").mkdir(exist_ok=True)
    (units / "multi-user.target.wants/belljar-guest.service").symlink_to("/etc/systemd/system/belljar-guest.service")
    for name in MASKED:
        (units / name).unlink(missing_ok=True)
        (units / name).symlink_to("/dev/null")
    (root / "etc/hostname").write_text("guest\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost guest\n")
    (root / "etc/resolv.conf").write_text("")
    for name, pattern in (("kernel", "vmlinuz-*"), ("initrd", "initrd.img-*")):
        found = sorted((root / "boot").glob(pattern))
        if not found:
            raise CannotMake(f"the guest's /boot has no {pattern}")
        shutil.copyfile(found[-1], folder / name)
    run("mke2fs", "-q", "-F", "-t", "ext4", "-d", root, folder / "disk", DISK_SIZE, timeout_s=600)
    shutil.rmtree(root)


def cached_image() -> Image:
    """The image of this recipe, made when the cache has none. Images of older recipes go."""
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    ready = cache / recipe_key()
    with open(cache / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            for old in cache.iterdir():
                if old.is_dir():
                    shutil.rmtree(old)
            print("making the guest's disk (some minutes, once)", flush=True)
            folder = Path(tempfile.mkdtemp(prefix="new-", dir=cache))
            folder.chmod(0o755)
            try:
                make(folder)
                folder.rename(ready)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
    return Image(ready / "disk", ready / "kernel", ready / "initrd")
