"""PRC-05: find shared memory, semaphores and message queues of the host or of another sandbox: System V and POSIX."""

import ctypes
import os
import subprocess
from pathlib import Path

from harness import EscapeTest, callers, main

KEY = 0x7E570000 + os.getpid() % 0x10000
IPC_RMID = 0

PROBE = f"KEY = {KEY}\n" + """
_libc.shmat.restype = ctypes.c_void_p
_libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
def read_segment():
    segment = _libc.shmget(KEY, 0, 0)
    if segment < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    return ctypes.string_at(_libc.shmat(segment, None, 0o10000))
def get(call, *arguments):
    if call(KEY, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "get")
try:
    segment = read_segment().decode()
except OSError as error:
    segment = name_of(error.errno)
_rt = ctypes.CDLL("librt.so.1", use_errno=True)
def open_queue(name):
    queue = _rt.mq_open(name.encode(), os.O_RDONLY)
    if queue < 0:
        raise OSError(ctypes.get_errno(), "mq_open")
report(segment=segment, queue=attempt(get, _libc.msgget, 0), semaphores=attempt(get, _libc.semget, 0, 0),
       posix_queue=attempt(open_queue, f"/canary-{KEY}"), posix_memory=attempt(open, f"/dev/shm/canary-{KEY}"),
       listed={name: len(open("/proc/sysvipc/" + name).readlines()) - 1 for name in ("shm", "msg", "sem")})
"""

OWN = """
import multiprocessing
from multiprocessing import shared_memory
block = shared_memory.SharedMemory(create=True, size=100)
block.buf[:5] = b"hello"
other = shared_memory.SharedMemory(block.name)
lock = multiprocessing.Lock()
with lock:
    text = bytes(other.buf[:5]).decode()
block.close(); other.close(); block.unlink()
_libc.shmat.restype = ctypes.c_void_p
_libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
class Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("flags", "most", "size", "now")] + [("pad", ctypes.c_long * 4)]
_rt = ctypes.CDLL("librt.so.1", use_errno=True)
def make_queue(name):
    queue = _rt.mq_open(name.encode(), os.O_CREAT | os.O_RDWR, 0o600, ctypes.byref(Attributes(0, 10, 8192, 0)))
    if queue < 0:
        raise OSError(ctypes.get_errno(), "mq_open")
    return queue
queue = make_queue("/own")
_rt.mq_send(queue, b"message", 7, 1)
received = ctypes.create_string_buffer(8192)
_rt.mq_receive(queue, received, 8192, None)
made, refused = 1, None
try:
    while made < 1000:
        make_queue(f"/more-{made}"); made += 1
except OSError as error:
    refused = name_of(error.errno)
segment = _libc.shmget(5, 4096, 0o1600)
ctypes.memmove(_libc.shmat(segment, None, 0), b"system v", 9)
report(posix=text, system_v=ctypes.string_at(_libc.shmat(segment, None, 0)).decode(), queue=_libc.msgget(5, 0o1600) >= 0,
       semaphores=_libc.semget(5, 1, 0o1600) >= 0, posix_queue=received.value.decode(), listed=sorted(os.listdir("/dev/mqueue"))[-1],
       queues_fit=made * 10 * 8192 <= 819200, refused=refused)
"""

PEER = PROBE.replace("report(", "dict(") + """
import time
print("up" if _libc.shmget(KEY, 4096, 0o1666) >= 0 else "failed", flush=True)
time.sleep(60)
"""


def no_queues(caller) -> str:
    """Where memory is sampled, System V queues and semaphores are refused by this error: no sample sees them."""
    return "" if caller.uid == 0 else "ENOSYS"


class Prc05(EscapeTest):
    def setUp(self) -> None:
        super().setUp()
        libc = ctypes.CDLL(None, use_errno=True)
        libc.shmat.restype = ctypes.c_void_p
        libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
        segment = libc.shmget(KEY, 4096, 0o1666)
        queue = libc.msgget(KEY, 0o1666)
        semaphores = libc.semget(KEY, 1, 0o1666)
        self.assertTrue(segment >= 0 and queue >= 0 and semaphores >= 0)
        self.addCleanup(libc.shmctl, segment, IPC_RMID, None)
        self.addCleanup(libc.msgctl, queue, IPC_RMID, None)
        self.addCleanup(libc.semctl, semaphores, 0, IPC_RMID, None)
        address = libc.shmat(segment, None, 0)
        ctypes.memmove(address, self.canary.encode(), len(self.canary) + 1)
        self.addCleanup(libc.shmdt, ctypes.c_void_p(address))
        rt = ctypes.CDLL("librt.so.1", use_errno=True)
        name = f"/canary-{KEY}"
        mask = os.umask(0)
        self.assertGreaterEqual(rt.mq_open(name.encode(), os.O_CREAT | os.O_RDWR, 0o666, None), 0)
        memory = Path(f"/dev/shm/canary-{KEY}")
        memory.write_text(self.canary)
        os.umask(mask)
        self.addCleanup(rt.mq_unlink, name.encode())
        self.addCleanup(memory.unlink)

    def test_positive_control(self) -> None:
        for caller in callers():
            findings = self.native(PROBE, caller).findings
            self.assertEqual(findings["segment"], self.canary)
            self.assertEqual([findings[name] for name in ("queue", "semaphores", "posix_queue", "posix_memory")], ["ok"] * 4)

    def test_of_the_host(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                findings = self.sandbox(PROBE, caller=caller).findings
                self.assertEqual([findings[name] for name in ("segment", "queue", "semaphores", "posix_queue", "posix_memory")],
                                 ["ENOENT", *[no_queues(caller) or "ENOENT"] * 2, "ENOENT", "ENOENT"])
                self.assertEqual(findings["listed"], {"shm": 0, "msg": 0, "sem": 0})

    def test_of_another_sandbox(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                peer = self.start(PEER, caller=caller, stdout=subprocess.PIPE)
                self.assertEqual(peer.stdout.readline(), b"up\n")
                findings = self.sandbox(PROBE, caller=caller).findings
                self.assertEqual((findings["segment"], findings["listed"]["shm"]), ("ENOENT", 0))

    def test_own_ones_work(self) -> None:
        for caller in callers():
            self.assertEqual(self.sandbox(OWN, caller=caller).findings,
                             {"posix": "hello", "system_v": "system v", "queue": not no_queues(caller),
                              "semaphores": not no_queues(caller), "posix_queue": "message", "listed": "own", "queues_fit": True,
                              "refused": "EMFILE"})


if __name__ == "__main__":
    main()
