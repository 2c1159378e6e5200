"""RES-18: twenty sandboxes at once, each just under its limits. None suffers for another."""

import json
import threading

from harness import callers, main
from outside import MIB, OutsideTest, available_memory, limits

NEAR = """
import threading, time
held = bytearray(int(sys.argv[2]) << 20)
for at in range(0, len(held), 4096): held[at] = at >> 12 & 255
with open("/tmp/fill", "wb") as file: file.write(bytes(8 << 20))
pids = []
for _ in range(int(sys.argv[1])):
    pid = os.fork()
    if pid == 0:
        time.sleep(0.5); os._exit(0)
    pids.append(pid)
report(ended=[os.waitpid(pid, 0)[1] for pid in pids].count(0), sum=sum(held[::4096]) > 0)
"""
COUNT = 20


class Res18(OutsideTest):
    def test_all_at_once(self):
        if available_memory() < COUNT * 100 * MIB:
            self.fail("this test needs 2 GiB of free memory")
        for caller in callers():
            with self.subTest(caller=caller):
                flags = [*limits(caller, memory="80M", tasks=16), "--tmp-size", "9M", "--timeout", "60s"]
                command = self.command_line(NEAR, flags, caller, ["15", "50"])
                records, errors = [], []

                def one():
                    run = caller.run(command)
                    (records if run.stdout else errors).append(json.loads(run.stdout) if run.stdout else run)

                threads = [threading.Thread(target=one) for _ in range(COUNT)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(errors, [])
                self.assertEqual([record["status"] for record in records], ["ok"] * COUNT,
                                 [record["reason"] for record in records])
                for record in records:
                    self.assertIn('"ended": 15', record["stdout"])

    def test_a_little_more_is_too_much(self):
        caller = callers()[0]
        flags = limits(caller, memory="80M", tasks=16)
        if flags:
            result = self.sandbox(NEAR, [*flags, "--tmp-size", "9M"], caller, arguments=["15", "85"])
            self.assertEqual(result.status, "memory")
            result = self.sandbox(NEAR, [*flags, "--tmp-size", "9M"], caller, arguments=["16", "50"])
            self.assertEqual(result.status, "pids")


if __name__ == "__main__":
    main()
