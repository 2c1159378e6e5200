// What a process uses: times of CPU and children, clocks that grow, counts of files and processes.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static void work(int milliseconds) {
  struct timespec now;
  MUST(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now));
  const long until = now.tv_sec * 1000 + now.tv_nsec / 1000000 + milliseconds;
  do {
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  } while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < until);
}

static long used(int who) {
  struct rusage use;
  MUST(getrusage(who, &use));
  return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000 + (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000;
}

static long most_memory(int who) {
  struct rusage use;
  MUST(getrusage(who, &use));
  return use.ru_maxrss;
}

// Of a process that had 40 MB, and of its parent once it was waited for.
static void memory(void) {
  FACT("memory", most_memory(RUSAGE_SELF) > 500 && most_memory(RUSAGE_SELF) < 30000);
  FACT("of the thread", most_memory(RUSAGE_THREAD) == most_memory(RUSAGE_SELF));
  FACT("of children", most_memory(RUSAGE_CHILDREN) > 0 && most_memory(RUSAGE_CHILDREN) < 30000);
  const size_t size = 40 << 20;
  int status;
  if (MUST(fork()) == 0) {
    char* much = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(much, 1, size);
    munmap(much, size);
    _exit(most_memory(RUSAGE_SELF) > 40000 && most_memory(RUSAGE_SELF) < 70000);
  }
  struct rusage use;
  MUST(wait4(-1, &status, 0, &use));
  FACT("stays when it is given back", WEXITSTATUS(status));
  FACT("told of the child", use.ru_maxrss > 40000 && use.ru_maxrss < 70000);
  FACT("of children", most_memory(RUSAGE_CHILDREN) > 40000 && most_memory(RUSAGE_CHILDREN) < 70000);
  FACT("not of oneself", most_memory(RUSAGE_SELF) < 30000);
  MUST(mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0);
  FACT("nor what can't be accessed", most_memory(RUSAGE_SELF) < 30000);
}

int main(void) {
  const long before = used(RUSAGE_SELF);
  work(60);
  const long after = used(RUSAGE_SELF);
  FACT("own time", after - before >= 40 && after - before < 2000);
  FACT("of the thread", used(RUSAGE_THREAD) >= 40);
  FACT("of children", used(RUSAGE_CHILDREN));
  CALL("odd whom", getrusage(77, &(struct rusage){0}));
  int status;
  for (int i = 0; i < 2; ++i) {
    const int pid = MUST(fork());
    if (pid == 0) {
      work(60);
      _exit(0);
    }
    struct rusage use;
    MUST(wait4(pid, &status, 0, &use));
    FACT("memory told by wait4", use.ru_maxrss > 0 && use.ru_maxrss < 30000);
    FACT("told by wait4", use.ru_utime.tv_sec * 1000 + use.ru_utime.tv_usec / 1000 + use.ru_stime.tv_usec / 1000 >= 40);
  }
  FACT("of children", used(RUSAGE_CHILDREN) >= 80);
  memory();
  const int child = MUST(fork());
  if (child == 0) {
    if (MUST(fork()) == 0) {
      work(60);
      _exit(0);
    }
    wait(NULL);
    _exit(used(RUSAGE_CHILDREN) >= 40);
  }
  const long so_far = used(RUSAGE_CHILDREN);
  MUST(waitpid(child, &status, 0));
  FACT("a grandchild's at its parent", WEXITSTATUS(status));
  FACT("and here", used(RUSAGE_CHILDREN) - so_far >= 40);
  struct tms ticks;
  const clock_t first = times(&ticks);
  FACT("ticks of oneself", ticks.tms_utime + ticks.tms_stime >= 4);
  FACT("of children", ticks.tms_cutime + ticks.tms_cstime >= 8);
  usleep(50000);
  const clock_t second = times(NULL);
  FACT("ticks pass", second - first >= 4 && second - first < 500);
  FACT("clock", clock() > 0);
  struct timespec mono1, mono2, real;
  struct timeval tv;
  MUST(clock_gettime(CLOCK_MONOTONIC, &mono1));
  usleep(1000);
  MUST(clock_gettime(CLOCK_MONOTONIC, &mono2));
  FACT("grows", mono2.tv_sec > mono1.tv_sec || mono2.tv_nsec > mono1.tv_nsec);
  MUST(clock_gettime(CLOCK_REALTIME, &real));
  MUST(gettimeofday(&tv, NULL));
  FACT("two ways to one time", tv.tv_sec - real.tv_sec <= 1 && time(NULL) - real.tv_sec <= 1);
  clockid_t clock_of_child;
  FACT("CPU clock of oneself", clock_getcpuclockid(0, &clock_of_child));
  CALL("reads", clock_gettime(clock_of_child, &real));
  FACT("CPU clock of nobody", clock_getcpuclockid(31234, &clock_of_child) != 0);
  struct sysinfo machine;
  MUST(sysinfo(&machine));
  FACT("memory", machine.totalram > 0 && machine.totalram >= machine.freeram);
  FACT("processes", machine.procs > 0);
  FACT("up", machine.uptime >= 0);
  FACT("processors", sysconf(_SC_NPROCESSORS_ONLN) >= 1);
  FACT("page", sysconf(_SC_PAGESIZE));
  FACT("ticks a second", sysconf(_SC_CLK_TCK));
}
