"""RES-01: fork bombs of four kinds. The task limit holds, the deadline ends them, and a neighbour starts meanwhile."""

from harness import callers, main
from outside import OutsideTest, alive_below, limits

BOMB = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void say(int made, int error) {
  dprintf(1, "findings:{\"made\": %d, \"error\": \"%s\"}\n", made, error ? strerrorname_np(error) : "ok");
}
static void* sleeper(void* unused) { for (;;) pause(); return unused; }
static int vforked(void* unused) { (void)unused; for (;;) pause(); }

static int one(const char* kind) {
  if (!strcmp(kind, "process")) {
    pid_t pid = fork();
    if (pid == 0) for (;;) pause();
    return pid < 0 ? errno : 0;
  }
  if (!strcmp(kind, "thread")) {
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    return pthread_create(&thread, &small, sleeper, 0);
  }
  int flags = CLONE_VM | SIGCHLD;
  if (!strcmp(kind, "sibling")) flags |= CLONE_PARENT;  // a child of our parent
  static char stacks[512][1024];  // small, because each child counts all of it where memory is sampled
  static int next;
  return clone(vforked, stacks[next++ % 512] + 1024, flags, 0) < 0 ? errno : 0;
}

int main(int argc, char** argv) {
  (void)argc;
  int most = atoi(argv[2]);
  if (!strcmp(argv[1], "vfork")) {  // each child vforks the next: all but the last wait in the kernel
    volatile int depth = 0;
    for (; depth < most; ++depth) {
      pid_t pid = vfork();
      if (pid < 0) { say(depth, errno); for (;;) pause(); }
      if (pid > 0) _exit(0);
    }
    say(depth, 0);
    return 0;
  }
  int made = 0, error = 0;
  while (made < most && (error = one(argv[1])) == 0) ++made;
  say(made, error);
  if (error) for (;;) {  // and go on, with every child doing the same
    if (!strcmp(argv[1], "process")) fork(); else one(argv[1]);
  }
  kill(0, SIGKILL);
}
"""

TASKS = 256


class Res01(OutsideTest):
    program = ""

    def bomb(self, kind: str) -> None:
        Res01.program = program = self.program or self.compile_c(BOMB, flags=["-static", "-pthread"])
        control = self.native(["setsid", program, kind, str(TASKS + 50)])
        self.assertEqual(control.findings, {"made": TASKS + 50, "error": "ok"})
        for caller in callers():
            with self.subTest(kind=kind, caller=caller):
                process = self.start(["/probe", kind, "1000000"],
                                     ["--timeout", "1200ms", "--mount", f"{program}:/probe"], caller,
                                     stdout=-1, stderr=-1)
                self.wait_until_running(process)
                self.wait_for(lambda: len(alive_below(process.pid)) > 20 or process.poll() is not None,
                              "the bomb's growth")
                self.assert_peer_works(caller)
                inside = len(alive_below(process.pid)) - 2  # less init and watcher
                self.assertLessEqual(inside, TASKS)
                out, err = process.communicate(timeout=30)
                self.assert_nothing_left()
                self.assertEqual(process.returncode, 124, err)
                self.assertIn(b"wall clock limit", err)
                self.assertIn(b'"error": "EAGAIN"', out)
                made = int(out.split(b'"made": ')[1].split(b",")[0])
                self.assertLess(made, TASKS)
                self.assertGreater(made, TASKS - 20)

    def test_processes(self):
        self.bomb("process")

    def test_threads(self):
        self.bomb("thread")

    def test_shared_memory(self):
        self.bomb("shared")

    def test_siblings(self):
        self.bomb("sibling")

    def test_vfork(self):
        self.bomb("vfork")

    def test_the_refusal_is_told(self):
        caller = callers()[0]
        probe = """
import time
made = 0
try:
    while made < 500:
        if os.fork() == 0:
            time.sleep(60)
        made += 1
except OSError as error:
    report(made=made, error=name_of(error.errno))
    sys.exit(3)
"""
        result = self.sandbox(probe, limits(caller, tasks=64), caller)
        if caller.uid == 0:
            self.assertEqual(result.status, "pids")
            self.assertEqual([denial["hint"] for denial in result.record["denials"]], ["--tasks"])
            self.assertEqual(result.findings, {"made": 63, "error": "EAGAIN"})
            self.assertEqual(result.record["usage"]["processes_peak"], 64)
        self.assertEqual(result.exit_status, 3)

    def test_a_legal_crowd(self):
        probe = """
import threading, time
threads = [threading.Thread(target=time.sleep, args=(0.2,)) for _ in range(120)]
for thread in threads: thread.start()
children = []
for _ in range(100):
    pid = os.fork()
    if pid == 0:
        time.sleep(0.2); os._exit(0)
    children.append(pid)
report(ended=sum(os.waitpid(pid, 0)[1] == 0 for pid in children))
for thread in threads: thread.join()
"""
        for caller in callers():
            with self.subTest(caller=caller):
                result = self.sandbox(probe, caller=caller)
                self.assertEqual((result.status, result.findings), ("ok", {"ended": 100}))


if __name__ == "__main__":
    main()
