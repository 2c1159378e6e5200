"""subprocess, os.fork, signals, select and sockets, as Python has them."""
import array
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time


def fact(name, value):
    print(f"{name}: {value}", flush=True)


def run(*argv, **options):
    return subprocess.run(argv, capture_output=True, text=True, **options)


fact("run", run("sh", "-c", "echo $1; exit 4", "sh", "argument").returncode)
fact("output", run("tr", "a-z", "A-Z", input="upper").stdout)
fact("environment", run("env", env={"ONLY": "one"}).stdout)
fact("folder", run("pwd", cwd="/usr").stdout)
fact("killed", run("sh", "-c", "kill -9 $$").returncode)
try:
    run("/none/there")
except FileNotFoundError as error:
    fact("missing", error.filename)
try:
    run("sleep", "60", timeout=0.1)
except subprocess.TimeoutExpired as error:
    fact("timeout", error.timeout)
first = subprocess.Popen(["printf", "c\\nb\\na\\n"], stdout=subprocess.PIPE)
second = subprocess.Popen(["sort"], stdin=first.stdout, stdout=subprocess.PIPE)
first.stdout.close()
fact("pipeline", second.communicate()[0])
first.wait()
group = subprocess.Popen(["sh", "-c", "sleep 60 & wait"], start_new_session=True)
time.sleep(0.1)
os.killpg(group.pid, signal.SIGTERM)
fact("group", group.wait())
fact("large", len(run(sys.executable, "-c", "print('x' * 1000000)").stdout))
fact("umask", run("sh", "-c", "umask", umask=0o77).stdout)
read_end, write_end = os.pipe()
fact("inherited", run("sh", "-c", f"echo passed >&{write_end}", pass_fds=[write_end]).returncode)
fact("read", os.read(read_end, 100))

pid = os.fork()
if pid == 0:
    os._exit(9)
fact("fork", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
handled = []
signal.signal(signal.SIGUSR1, lambda number, _: handled.append(number))
os.kill(os.getpid(), signal.SIGUSR1)
time.sleep(0.01)
fact("handled", handled == [signal.SIGUSR1])
signal.signal(signal.SIGALRM, lambda *_: handled.append("alarm"))
signal.setitimer(signal.ITIMER_REAL, 0.02)
time.sleep(0.1)
fact("alarm", handled[-1])
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
os.kill(os.getpid(), signal.SIGUSR2)
fact("pending", signal.SIGUSR2 in signal.sigpending())
fact("waited for", signal.sigwait([signal.SIGUSR2]) == signal.SIGUSR2)

left, right = socket.socketpair()
chooser = selectors.DefaultSelector()
chooser.register(left, selectors.EVENT_READ, "left")
fact("selector", type(chooser).__name__)
fact("nothing", chooser.select(0))
right.send(b"x")
fact("ready", [key.data for key, _ in chooser.select(1)])
socket.send_fds(right, [b"f"], [write_end])
left.recv(1)
_, files, _, _ = socket.recv_fds(left, 1, 1)
os.write(files[0], b"through a passed file")
fact("passed", os.read(read_end, 100))
left.settimeout(0.05)
try:
    left.recv(1)
except socket.timeout:
    fact("timeout", True)

results = array.array("i", [0] * 8)


def work(index):
    time.sleep(0.01 * (8 - index))
    results[index] = index * index


threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
fact("threads", results.tolist())
condition, items = threading.Condition(), []


def consume():
    with condition:
        fact("condition", condition.wait_for(lambda: len(items) == 3, 5))


waiter = threading.Thread(target=consume)
waiter.start()
for item in range(3):
    with condition:
        items.append(item)
        condition.notify()
waiter.join()
