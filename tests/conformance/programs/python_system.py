"""What Python sees of the system: processes, files, streams, signals, limits."""

import errno
import fcntl
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

print(sys.version_info[:2], sys.flags.optimize, sys.byteorder, sys.maxsize)
print(subprocess.run(["sh", "-c", "echo out; echo err >&2; exit 5"], capture_output=True))
print(subprocess.run(["cat"], input=b"through", capture_output=True).stdout)
try:
    subprocess.run(["/no/such/program"])
except FileNotFoundError as e:
    print(errno.errorcode[e.errno])
try:
    subprocess.run(["sleep", "9"], timeout=0.1)
except subprocess.TimeoutExpired:
    print("timed out")
print(subprocess.run("exit 7", shell=True, start_new_session=True).returncode, subprocess.run(["sh", "-c", "kill -9 $$"]).returncode)

with tempfile.TemporaryDirectory(dir=".") as folder:
    for name in ("a", "ž", "with space", "\udcff"):
        with open(os.path.join(folder, name), "w") as file:
            file.write(name.encode("utf-8", "replace").decode())
    print(sorted(os.listdir(folder)) == sorted(["a", "ž", "with space", "\udcff"]))
    shutil.copytree(folder, "copy")
    print(sum(len(files) for _, _, files in os.walk("copy")))
    with os.scandir("copy") as entries:
        print(sorted((e.is_file(), e.is_symlink(), e.stat().st_size) for e in entries))
    print(shutil.disk_usage(".").total > 0, os.access(".", os.W_OK))
print(os.path.exists(folder))

received = []
signal.signal(signal.SIGUSR1, lambda n, f: received.append(n))
os.kill(os.getpid(), signal.SIGUSR1)
signal.signal(signal.SIGALRM, lambda n, f: received.append(n))
signal.setitimer(signal.ITIMER_REAL, 0.02)
while len(received) < 2:
    time.sleep(0.01)
print(received)

r, w = os.pipe()
threading.Thread(target=lambda: os.write(w, b"from a thread")).start()
print(select.select([r], [], [], 10)[0] == [r], os.read(r, 99))
os.set_blocking(r, False)
try:
    os.read(r, 1)
except BlockingIOError as e:
    print(errno.errorcode[e.errno])
with open("lock", "w") as file:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    print(subprocess.run([sys.executable, "-c", "import fcntl\ntry: fcntl.flock(open('lock', 'w'), 6)\nexcept OSError as e: print(e.errno)"], capture_output=True).stdout)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 256, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 1000)
pid = os.fork()
if pid == 0:
    os._exit(os.fork() and 3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(os.get_terminal_size.__name__, os.isatty(1), os.getpgid(0) == os.getpid() or os.getpgid(0) > 0)
