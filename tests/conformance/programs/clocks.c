// Time: clocks, their order and resolution, sleeping, processor time, time zones.
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static double seconds(clockid_t clock) {
  struct timespec t;
  MUST(clock_gettime(clock, &t));
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void clocks(void) {
  const clockid_t all[] = {CLOCK_REALTIME,           CLOCK_MONOTONIC,         CLOCK_BOOTTIME,
                           CLOCK_MONOTONIC_RAW,      CLOCK_REALTIME_COARSE,   CLOCK_MONOTONIC_COARSE,
                           CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, CLOCK_TAI};
  for (unsigned i = 0; i < sizeof all / sizeof *all; ++i) {
    int backwards = 0;
    double last = seconds(all[i]);
    for (int k = 0; k < 1000; ++k) {
      const double now = seconds(all[i]);
      backwards += now < last;
      last = now;
    }
    FACT("steps back", backwards);
    struct timespec resolution;
    MUST(clock_getres(all[i], &resolution));
    FACT("fine", resolution.tv_nsec <= 10000000);
  }
  CALL("no such clock", clock_gettime(77, &(struct timespec){0}));
  CALL("set the clock", clock_settime(CLOCK_REALTIME, &(struct timespec){0}));
  FACT("time and clock agree", (double)time(NULL) - seconds(CLOCK_REALTIME) < 1.1);
  FACT("boot is before now", seconds(CLOCK_BOOTTIME) > 0 && seconds(CLOCK_BOOTTIME) < seconds(CLOCK_REALTIME));
}

static void sleeping(void) {
  const double begin = seconds(CLOCK_MONOTONIC);
  MUST(usleep(30000));
  const double took = seconds(CLOCK_MONOTONIC) - begin;
  FACT("slept long enough", took >= 0.03);
  FACT("woke in time", took < 5);
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  FACT("until the past", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL));
  CALL("odd", nanosleep(&(struct timespec){0, 2000000000}, NULL));
}

static void processor_time(void) {
  const double begin = seconds(CLOCK_PROCESS_CPUTIME_ID);
  usleep(50000);
  FACT("sleeping is free", seconds(CLOCK_PROCESS_CPUTIME_ID) - begin < 0.03);
  while (seconds(CLOCK_PROCESS_CPUTIME_ID) - begin < 0.1) {
  }
  struct rusage usage;
  MUST(getrusage(RUSAGE_SELF, &usage));
  FACT("usage counts",
       usage.ru_utime.tv_sec + usage.ru_stime.tv_sec > 0 || usage.ru_utime.tv_usec + usage.ru_stime.tv_usec > 50000);
  FACT("memory counts", usage.ru_maxrss > 500);
  struct tms t;
  times(&t);
  FACT("ticks", sysconf(_SC_CLK_TCK));
}

static void zones(void) {
  const time_t summer = 1720000000;
  char text[64];
  const char* all[] = {"UTC", "Europe/Prague", "America/New_York", "Asia/Kolkata"};
  for (int i = 0; i < 4; ++i) {
    setenv("TZ", all[i], 1);
    tzset();
    strftime(text, sizeof text, "%F %T %Z", localtime(&summer));
    printf("%s: %s\n", all[i], text);
  }
}

int main(void) {
  clocks();
  sleeping();
  processor_time();
  zones();
  return 0;
}
