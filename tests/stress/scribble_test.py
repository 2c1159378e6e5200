#!/usr/bin/python3
"""Guests that write over the memory which the user-space kernel shares with its broker (scribble.c): each harms its own sandbox,
which comes to an end with a plain status. The broker never crashes, and nothing is left.

scribble_test.py PROGRAM [TIMES [FIRST_SEED]]
"""

import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "integration"))

from harness import Case, both_callers, cgroups_of, main  # noqa: E402

PROGRAM = Path(sys.argv[1]).resolve()
TIMES = int(sys.argv[2]) if len(sys.argv) > 2 else 40
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else int.from_bytes(os.urandom(4), "big")
del sys.argv[1:]

# What a sandbox may come to whose kernel is in any state. Not "internal": that is for faults of Belljar's own.
PLAIN = {"ok", "error", "signal", "timeout", "tampered", "memory", "pids", "output", "disk", "cpu", "denied"}
SECONDS_MAX = 30


def crashes() -> set[str] | None:
    """What the host's kernel log says of brokers that died of a fault; None: it can't be read."""
    log = subprocess.run(["/usr/bin/dmesg"], capture_output=True, text=True, errors="replace")
    if log.returncode != 0:
        return None
    return {line for line in log.stdout.splitlines() if re.search(r"belljar-broker\[\d+\]", line)}


@both_callers
class Scribble(Case):
    def setUp(self):
        super().setUp()
        self.write("scribble", PROGRAM.read_bytes()).chmod(0o755)

    def scribble(self, seed: int) -> str:
        began = time.monotonic()
        record = self.record("--isolation", "kernel", "--timeout", "1s", "--mount", f"{self.folder}:/guest", "--", "/guest/scribble",
                             str(seed))
        self.assertLess(time.monotonic() - began, SECONDS_MAX, f"seed {seed}")
        self.assertIn(record["status"], PLAIN, f"seed {seed}: {record}")
        return record["status"]

    def test_it_harms_only_itself(self):
        before = crashes()
        if before is None:
            print("NOT COVERED: crashes of brokers: the host's kernel log can't be read", flush=True)
        print(f"scribble: {TIMES} times from seed {SEED}", flush=True)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            endings = collections.Counter(pool.map(self.scribble, range(SEED, SEED + TIMES)))
        print(f"scribble: {dict(endings)}", flush=True)
        self.assertGreater(TIMES - endings["ok"], TIMES / 4, "the guest did not reach the kernel's memory")
        if before is not None:
            self.assertEqual(crashes() - before, set())
        self.assertEqual(self.sh("echo alive", "--isolation", "kernel"), "alive\n")
        self.assertEqual(cgroups_of(os.getpid()), [])


if __name__ == "__main__":
    main()
