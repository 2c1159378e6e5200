"""RES-15: fork without end while being killed, in every way that hides from a killer. None survives."""

import os
import signal
import subprocess
import time

from harness import callers, main
from outside import OutsideTest, alive_below

STORM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// Each process lives a moment, then goes on in a child: new pids, sessions and groups all the time.
static void run_away(unsigned seed) {
  for (;;) {
    seed = seed * 1103515245u + 12345u;
    if (fork() == 0) {
      if (seed & 0x10000) setsid(); else setpgid(0, 0);
      if (seed & 0x20000) fork();
      continue;
    }
    if (seed & 0x40000) usleep(seed % 1000);
    _exit(0);
  }
}

int main(int argc, char** argv) {
  (void)argc;
  for (int s = 1; s < 65; ++s) signal(s, SIG_IGN);
  signal(SIGCHLD, SIG_IGN);
  write(1, "up\n", 3);
  if (fork() == 0) run_away(atoi(argv[1]));
  for (int i = 0; i < 30; ++i)
    if (fork() == 0) run_away(i * 7919u);
  for (;;) pause();
}
"""

HIDERS = r"""
import signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
def daemon(action):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.chdir("/"); os.close(0)
            action()
        os._exit(0)
def stopped(): os.kill(os.getpid(), signal.SIGSTOP); time.sleep(1000)
def sleeper(): time.sleep(1000)
def waiter():
    r, w = os.pipe(); os.read(r, 1)
for action in (stopped, sleeper, waiter): daemon(action)
print("up", flush=True)
time.sleep(float(sys.argv[1]))
"""


class Res15(OutsideTest):
    def test_the_storm(self):
        program = self.compile_c(STORM)
        for caller in callers():
            with self.subTest(caller=caller):
                process = self.start(["/storm", "77"], ["--timeout", "1s", "--mount", f"{program}:/storm"], caller,
                                     stdout=-1, stderr=-1)
                self.assertEqual(process.stdout.readline(), b"up\n")
                process.wait(timeout=30)
                self.assertEqual(self.observer.leftovers(), {}, "at the moment when belljar returned")
                self.assertEqual(process.returncode, 124)

    def test_hiders_at_the_deadline(self):
        for caller in callers():
            with self.subTest(caller=caller):
                process = self.start("import sys; sys.argv = ['', '1000']\n" + HIDERS, ["--timeout", "2s"], caller,
                                     stdout=-1, stderr=-1)
                self.assertEqual(process.stdout.readline(), b"up\n")
                process.wait(timeout=30)
                self.assertEqual(self.observer.leftovers(), {}, "at the moment when belljar returned")
                self.assertEqual(process.returncode, 124)

    def test_hiders_when_the_program_ends(self):
        for caller in callers():
            with self.subTest(caller=caller):
                process = self.start("import sys; sys.argv = ['', '0.2']\n" + HIDERS, ["--timeout", "60s"], caller,
                                     stdout=-1, stderr=-1)
                self.assertEqual(process.stdout.readline(), b"up\n")
                start = time.monotonic()
                process.wait(timeout=30)
                self.assertEqual(self.observer.leftovers(), {}, "at the moment when belljar returned")
                self.assertLess(time.monotonic() - start, 20)
                self.assertEqual(process.returncode, 0)

    def test_natively_they_survive(self):
        """The positive control: a session and its ignored signals outlive their starter."""
        before = set(alive_below())
        starter = callers()[0].popen(["/usr/bin/python3", self.script(HIDERS), "0.5"], stdout=subprocess.DEVNULL)
        self.assertEqual(starter.wait(timeout=30), 0)
        survivors = set(alive_below()) - before
        self.assertEqual(len(survivors), 3)
        for pid in survivors:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
