"""KRN-04: bpf, perf_event_open, userfaultfd, io_uring and the like are refused, and what programs fall back to works."""

import errno

from harness import EscapeTest, callers, main
from refusals import Refusals, Row

ROWS = [
    Row("bpf", 321, [0, 0, 0]),
    Row("perf_event_open", 298, [0, 0, -1, -1, 0]),
    Row("userfaultfd", 323, [0x7FFFFFFF]),
    Row("userfaultfd (user mode only)", 323, [1]),
    Row("io_uring_setup", 425, [0, 0]),
    Row("io_uring_enter", 426, [-1, 0, 0, 0, 0, 0]),
    Row("io_uring_register", 427, [-1, 0, 0, 0]),
    Row("kcmp", 312, [0x7FFFFFF0, 0x7FFFFFF0, 0, 0, 0]),
    Row("process_madvise", 440, [-1, 0, 0, 0, 0]),
    Row("process_mrelease", 448, [-1, 0]),
    Row("process_vm_readv", 310, [0x7FFFFFF0, 0, 0, 0, 0, 0]),
    Row("pidfd_getfd", 438, [-1, 0, 0]),
    Row("ptrace", 101, [0, 0x7FFFFFF0, 0, 0]),
    Row("vmsplice", 278, [-1, 0, 0, 0]),
    Row("fanotify_init", 300, [0x7FFFFFFF, 0]),
    Row("fanotify_mark", 301, [-1, 0, 0, -1, 0]),
    Row("move_pages of another", 279, [0x7FFFFFF0, 0, 0, 0, 0, 0]),
    Row("migrate_pages", 256, [0x7FFFFFF0, 0, 0, 0]),
    Row("sched_setattr", 314, [0, 0, 0x7FFFFFFF]),
    Row("mount", 165, [0, 0, 0, 0, 0]),
    Row("umount2", 166, [0, 0x7FFFFFFF]),
    Row("pivot_root", 155, [0, 0]),
    Row("chroot", 161, [0]),
    Row("open_tree", 428, [-1, 0, 0x7FFFFFFF]),
    Row("move_mount", 429, [-1, 0, -1, 0, 0x7FFFFFFF]),
    Row("fsopen", 430, [0, 0x7FFFFFFF]),
    Row("fsconfig", 431, [-1, 0x7FFFFFFF, 0, 0, 0]),
    Row("fsmount", 432, [-1, 0x7FFFFFFF, 0]),
    Row("fspick", 433, [-1, 0, 0x7FFFFFFF]),
    Row("mount_setattr", 442, [-1, 0, 0x7FFFFFFF, 0, 0]),
    Row("setns", 308, [-1, 0]),
    Row("unshare (user)", 272, [0x10000000 | 0x1]),
    Row("unshare (mount)", 272, [0x00020000 | 0x1]),
    Row("unshare (net)", 272, [0x40000000 | 0x1]),
    Row("unshare (time)", 272, [0x00000080 | 0x1]),
    Row("clone3", 435, [0, 0], errno.ENOSYS),
    Row("memfd_secret", 447, [0x7FFFFFFF], errno.ENOSYS),
    Row("openat2", 437, [-1, 0, 0, 0], errno.ENOSYS),
    Row("remap_file_pages", 216, [1, 0, 1, 0, 0], errno.ENOSYS),
    Row("statmount", 457, [0, 0, 0, 0x7FFFFFFF], errno.ENOSYS),
    Row("listmount", 458, [0, 0, 0, 0x7FFFFFFF], errno.ENOSYS),
    Row("seccomp (new listener)", 317, [1, 8, 0]),
    Row("a number that no kernel has", 600, [0], errno.ENOSYS, None),
    Row("a number that no kernel has", 0x7FFFFFFF, [0], errno.ENOSYS, None),
]


class Krn04(Refusals, EscapeTest):
    rows = ROWS

    def test_fallbacks_work(self) -> None:
        """Programs that would rather use these manage without."""
        probe = """
import asyncio, concurrent.futures, mmap, multiprocessing, subprocess, threading
read, write = os.pipe()
os.write(write, b"piped")
file = os.open("/tmp/file", os.O_CREAT | os.O_RDWR)
spliced = os.splice(read, file, 5)
child = os.pidfd_open(subprocess.Popen(["true"]).pid)
with concurrent.futures.ThreadPoolExecutor(4) as threads:
    sums = list(threads.map(sum, [[1, 2], [3, 4]]))
report(spliced=spliced, waited=os.waitid(os.P_PIDFD, child, os.WEXITED).si_status, sums=sums,
       asyncio=asyncio.run(asyncio.sleep(0, "done")), memory=mmap.mmap(-1, 4096).write(b"x"), pool=multiprocessing.Pool(2).map(abs, [-1, 2]))
"""
        for caller in callers():
            self.assertEqual(self.sandbox(probe, caller=caller).findings,
                             {"spliced": 5, "waited": 0, "sums": [3, 7], "asyncio": "done", "memory": 1, "pool": [1, 2]})


if __name__ == "__main__":
    main()
