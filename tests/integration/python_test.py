"""Python's multiprocessing and its scientific packages, and how many processors programs see."""

import math
import os
from pathlib import Path

from harness import Case, both_callers, main


@both_callers
class Multiprocessing(Case):
    def test_fn_37_pools_and_locks(self):
        code = """
import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
def work(n):
    return n * n
def add(lock, value):
    for _ in range(200):
        with lock:
            value.value += 1
if __name__ == "__main__":
    with ProcessPoolExecutor(3) as pool:
        print(list(pool.map(work, range(3))))
    with ThreadPoolExecutor(8) as pool:
        print(sum(pool.map(work, range(100))))
    lock, value = mp.Lock(), mp.Value("i", 0)
    processes = [mp.Process(target=add, args=(lock, value)) for _ in range(3)]
    for p in processes: p.start()
    for p in processes: p.join()
    print(value.value)
    for method in ("fork", "spawn", "forkserver"):
        with mp.get_context(method).Pool(2) as pool:
            print(method, pool.map(work, [1, 2, 3]))
    queue = mp.Queue()
    mp.Process(target=queue.put, args=("queued",)).start()
    print(queue.get(timeout=20))
    with mp.Manager() as manager:
        shared = manager.dict()
        p = mp.Process(target=shared.update, args=({"k": 1},)); p.start(); p.join()
        print(dict(shared))
    e, b = mp.Event(), mp.Barrier(2)
    p = mp.Process(target=lambda: (b.wait(), e.set())); p.start(); b.wait(); print(e.wait(20)); p.join()
"""
        self.assertEqual(self.python(code), "[0, 1, 4]\n328350\n600\nfork [1, 4, 9]\nspawn [1, 4, 9]\nforkserver [1, 4, 9]\nqueued\n{'k': 1}\nTrue\n")

    def test_fn_38_shared_memory(self):
        code = """
from multiprocessing import Process, shared_memory
def fill(name):
    m = shared_memory.SharedMemory(name)
    m.buf[:] = b"x" * m.size
    m.close()
if __name__ == "__main__":
    m = shared_memory.SharedMemory(create=True, size=45 << 20)
    p = Process(target=fill, args=(m.name,)); p.start(); p.join()
    print(p.exitcode, bytes(m.buf[-3:]), m.size >> 20)
    m.close(); m.unlink()
"""
        self.assertEqual(self.python(code), "0 b'xxx' 45\n")

    def test_fn_38_shared_memory_past_the_limit_is_told(self):
        code = ("from multiprocessing import shared_memory\nm = shared_memory.SharedMemory(create=True, size=80 << 20)\nm.buf[:] = bytes(m.size)\n")
        record = self.record(self.write("program.py", code))
        self.assertIn(record["status"], ("disk", "memory", "signal"), record)  # but never a bare SIGBUS
        self.assertIn("50M", record["reason"])

    def test_system_v_shared_memory(self):
        code = ("import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nc.shmat.restype = ctypes.c_void_p\ni = c.shmget(0, 1 << 20, 0o1600)\n"
                "a = c.shmat(i, None, 0)\nctypes.memmove(a, b'shared', 6)\nprint(ctypes.string_at(c.shmat(i, None, 0), 6))\nprint(c.semget(0, 1, 0o1600) >= 0, c.msgget(0, 0o1600) >= 0)\n")
        others = "False False" if self.as_user else "True True"  # where memory is sampled, what a sample can't see is refused
        self.assertEqual(self.python(code), f"b'shared'\n{others}\n")

    def test_system_v_message_queue(self):
        code = ("import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nq = c.msgget(0, 0o1600)\n"
                "class M(ctypes.Structure): _fields_ = [('type', ctypes.c_long), ('text', ctypes.c_char * 8)]\n"
                "m, n = M(3, b'message'), M()\nprint(c.msgsnd(q, ctypes.byref(m), 8, 0), c.msgrcv(q, ctypes.byref(n), 8, 0, 0), n.text)\n")
        self.assertEqual(self.python(code), "-1 -1 b''\n" if self.as_user else "0 8 b'message'\n")

    def test_threads_and_asyncio(self):
        code = ("import asyncio, threading\nasync def f():\n  p = await asyncio.create_subprocess_exec('echo', 'sub', stdout=-1)\n  print((await p.communicate())[0])\n"
                "  await asyncio.gather(*(asyncio.sleep(0.01) for _ in range(100)))\n  print(await asyncio.to_thread(lambda: 'thread'))\nasyncio.run(f())\n"
                "n = [threading.Thread(target=lambda: None) for _ in range(100)]\n[t.start() for t in n]; [t.join() for t in n]; print('joined')\n")
        self.assertEqual(self.python(code), "b'sub\\n'\nthread\njoined\n")

    def test_recursion_and_large_stacks(self):
        code = "import sys, threading\nsys.setrecursionlimit(50000)\nthreading.stack_size(128 << 20)\ndef f(n): return n and f(n - 1)\n" \
               "t = threading.Thread(target=lambda: print(f(40000))); t.start(); t.join()\n"
        self.assertEqual(self.python(code), "0\n")


class Science(Case):
    """Sizes of packages: what fits the defaults."""

    def need_module(self, name: str):
        if not Path("/usr/lib/python3/dist-packages", name).exists():
            self.not_covered(name, f"python3-{name} is not installed")

    def test_numpy_and_pandas(self):
        self.need_module("pandas")
        code = ("import numpy as np, pandas as pd\nd = pd.DataFrame({'k': ['a', 'b'] * 500, 'v': np.arange(1000)})\nprint(d.groupby('k').v.sum().to_dict())\n"
                "print(np.linalg.solve(np.eye(100) * 2, np.ones(100)).sum())\nd.to_csv('x.csv'); print(len(pd.read_csv('x.csv')))\n")
        self.assertEqual(self.python(code), "{'a': 249500, 'b': 250000}\n50.0\n1000\n")

    def test_fn_43_a_figure(self):
        self.need_module("matplotlib")
        (self.folder / "out").mkdir()
        code = ("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]); plt.title('ž'); plt.savefig('/out/a.png'); plt.show(); print(plt.get_backend().lower())\n")
        record = self.record("--mount", f"{self.folder}/out:/out:rw", self.write("plot.py", code))
        self.assertEqual((record["status"], record.out), ("ok", b"agg\n"), record)
        self.assertTrue((self.folder / "out/a.png").read_bytes().startswith(b"\x89PNG"))


COUNTS = """
import os, re, sys
print("os.cpu_count", os.cpu_count())
print("sched_getaffinity", len(os.sched_getaffinity(0)))
print("sysconf online", os.sysconf("SC_NPROCESSORS_ONLN"))
print("sysconf configured", os.sysconf("SC_NPROCESSORS_CONF"))
def listed(text):
    return sum(int(b or a) - int(a) + 1 for a, b in re.findall(r"(\\d+)(?:-(\\d+))?", text))
for name in ("online", "present", "possible"):
    print("sys", name, listed(open("/sys/devices/system/cpu/" + name).read()))
print("sys folders", len([n for n in os.listdir("/sys/devices/system/cpu") if re.fullmatch("cpu[0-9]+", n)]))
print("cpuinfo", open("/proc/cpuinfo").read().count("processor\\t"))
print("stat", len(re.findall("^cpu[0-9]+ ", open("/proc/stat").read(), re.M)))
print("status", listed(re.search("Cpus_allowed_list:(.*)", open("/proc/self/status").read())[1]))
import multiprocessing
print("multiprocessing", multiprocessing.cpu_count())
try:
    import numpy, ctypes, glob
    numpy.ones((200, 200)).dot(numpy.ones((200, 200)))
    print("numpy threads", len(os.listdir("/proc/self/task")))
except ImportError:
    pass
"""


@both_callers
class Processors(Case):
    def quotas(self) -> list[str]:
        """Quotas to name; an ordinary user without a cgroup can't name one, and has the default."""
        held = "cpus" in self.record("--", "true").walls("enforced")
        return [quota for quota in ("0.5", "1", "1.5", "2") if math.ceil(float(quota)) <= len(os.sched_getaffinity(0))] if held else []

    def check(self, options: list[str], wanted: int):
        rows = self.python(COUNTS, *options).splitlines()
        self.assertEqual({row.rsplit(" ", 1)[0]: int(row.rsplit(" ", 1)[1]) for row in rows}, {row.rsplit(" ", 1)[0]: wanted for row in rows})
        self.assertGreaterEqual(len(rows), 12)

    def test_default_is_one(self):
        self.check([], 1)

    def test_every_quota(self):
        for quota in self.quotas():
            self.check(["--cpus", quota], math.ceil(float(quota)))

    def test_other_programs_agree(self):
        programs = [("nproc", ["nproc"]), ("getconf", ["getconf", "_NPROCESSORS_ONLN"]), ("node", ["node", "-p", "os.cpus().length"]),
                    ("node", ["node", "-p", "os.availableParallelism()"]), ("perl", ["perl", "-ne", "$n++ if /^processor/; END { print $n }", "/proc/cpuinfo"])]
        for options, wanted in [([], 1)] + [(["--cpus", quota], math.ceil(float(quota))) for quota in self.quotas()]:
            for program, argv in programs:
                if Path("/usr/bin", program).exists():
                    self.assertEqual(self.ok(*options, "--", *argv).strip(), str(wanted), f"{argv} with {options}")

    def test_jvm_agrees(self):
        self.need("java")
        path = self.write("N.java", "class N { public static void main(String[] a) { System.out.println(Runtime.getRuntime().availableProcessors()); } }")
        wanted = 1
        options = ["--mount", f"{path}:/data/N.java", "--timeout", "3m"]
        if self.quotas():
            wanted = math.ceil(float(self.quotas()[-1]))
            options += ["--cpus", self.quotas()[-1], "--memory", "512M"]
        self.assertEqual(self.ok(*options, "--", "java", "/data/N.java").strip(), str(wanted))

    def test_more_than_there_are_is_refused(self):
        count = len(os.sched_getaffinity(0))
        self.assert_refused(self.run_in("--cpus", str(count + 1), "--", "true"), 125, "--cpus")

    def test_pinning_spreads(self):
        """Sandboxes with one processor each use all of the host's, not the same one."""
        count = len(os.sched_getaffinity(0))
        if count < 2:
            self.not_covered("spreading over processors", "this host has one")
        started = [self.start("run", "--", "sh", "-c", "grep Cpus_allowed_list /proc/self/status; sleep 20") for _ in range(2 * count)]
        used = [process.stdout.readline().split()[-1].decode() for process in started]
        for process in started:
            process.terminate()
        for process in started:
            process.communicate(timeout=20)
        per_cpu = sorted(used.count(cpu) for cpu in set(used))
        self.assertEqual(len(per_cpu), count, used)
        self.assertGreaterEqual(per_cpu[0], 1, used)

    def test_an_affinity_of_the_callers_holds(self):
        cpu = max(os.sched_getaffinity(0))
        ended = self.run_in("--", "grep", "Cpus_allowed_list", "/proc/self/status", preexec_fn=lambda: os.sched_setaffinity(0, [cpu]))
        self.assertEqual(ended.text.split()[-1], str(cpu), str(ended))
        ended = self.run_in("--", "nproc", preexec_fn=lambda: os.sched_setaffinity(0, [cpu]))
        self.assertEqual(ended.text.strip(), "1", str(ended))

    def test_a_program_can_not_widen_it(self):
        code = "import os\nn = os.sched_getaffinity(0)\ntry: os.sched_setaffinity(0, range(1024))\nexcept OSError: pass\n" \
               "import time\nt = time.process_time(); print(len(n))\n"
        self.assertEqual(self.python(code), "1\n")


if __name__ == "__main__":
    main()
