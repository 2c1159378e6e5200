"""CLN-10: run, end, run again, quickly and at once: no run sees anything of another's, past or present."""

import json
import threading

from harness import callers, main
from outside import OutsideTest

PROBE = """
import socket, time
mark, others, places = sys.argv[1], sys.argv[2], sys.argv[3].split(":")
seen = set()
for place in places:
    for folder, folders, files in os.walk(place):
        for name in files + folders:
            path = os.path.join(folder, name)
            if others in name: seen.add(path)
            try:
                with open(path, "rb") as file:
                    if others.encode() in file.read(1 << 16): seen.add(path)
            except OSError: pass
for place in places[:3]:
    with open(os.path.join(place, mark), "w") as file: file.write(mark)
"""

# In a sandbox there is more to look at, and to leave.
FURTHER = """
for pid in os.listdir("/proc"):
    if pid.isdigit() and int(pid) not in (1, os.getpid()): seen.add("process " + pid)
seen.update(line for line in open("/proc/net/unix") if others in line)
for kind in ("shm", "sem", "msg"):
    if len(open("/proc/sysvipc/" + kind).readlines()) > 1: seen.add(kind)
seen.update(name for name, value in os.environ.items() if others in value and name != "MARK")
if os.environ["MARK"] != mark: seen.add("another's environment")
abstract = socket.socket(socket.AF_UNIX); abstract.bind("\\0" + mark)
listener = socket.create_server(("127.0.0.1", 4242))
_libc.shmget(42, 4096, 0o1777)
if os.fork() == 0:
    os.setsid(); time.sleep(1000)
"""
REPORT = "report(mark=mark, seen=sorted(seen))"
PLACES = "/tmp:/dev/shm:/tmp/home:/run:/var/tmp:/home:/root:/mnt"


class Cln10(OutsideTest):
    def marks(self, caller, count: int, at_once: int) -> list[str]:
        """Every run's mark starts with the same letters, so each can look for any other's."""
        found, problems = [], []
        script = self.script(PROBE + FURTHER + REPORT)
        numbers = iter(range(count))
        lock = threading.Lock()

        def work():
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                mark = f"{self.canary}-{number}"
                run = caller.run([caller.belljar, "run", "--json", "-e", f"MARK={mark}", script, mark, self.canary,
                                  PLACES])
                try:
                    record = json.loads(run.stdout)
                    findings = json.loads(record["stdout"].partition("findings:")[2])
                    found.append(findings["mark"])
                    problems.extend(findings["seen"])
                    if record["status"] != "ok" or record["stderr"]:
                        problems.append(record)
                except (ValueError, KeyError):
                    problems.append(run)

        threads = [threading.Thread(target=work) for _ in range(at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])
        return found

    def test_one_after_the_other(self):
        for caller in callers():
            with self.subTest(caller=caller):
                self.assertEqual(self.marks(caller, 8, 1), [f"{self.canary}-{number}" for number in range(8)])

    def test_at_once(self):
        for caller in callers():
            with self.subTest(caller=caller):
                self.assertEqual(sorted(self.marks(caller, 20, 5)),
                                 sorted(f"{self.canary}-{number}" for number in range(20)))

    def test_natively_it_is_seen(self):
        """The positive control: what one program leaves, the next finds."""
        here = self.host_folder("here", callers()[0])
        arguments = [self.canary, self.canary, str(here)]
        self.assertEqual(self.native(PROBE + REPORT, callers()[0], arguments=arguments).findings["seen"], [])
        self.assertEqual(self.native(PROBE + REPORT, callers()[0], arguments=arguments).findings["seen"],
                         [str(here / self.canary)])


if __name__ == "__main__":
    main()
