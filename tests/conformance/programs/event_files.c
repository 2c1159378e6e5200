// eventfd, timerfd and signalfd: counts, modes, readiness, what read needs.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static int ready(int fd, int milliseconds) {
  struct pollfd p = {fd, POLLIN | POLLOUT, 0};
  poll(&p, 1, milliseconds);
  return p.revents;
}

static void events(void) {
  uint64_t value;
  const int fd = MUST(eventfd(3, EFD_NONBLOCK | EFD_CLOEXEC));
  FACT("ready", ready(fd, 0));
  FACT("read", read(fd, &value, sizeof value));
  FACT("value", value);
  CALL("empty", read(fd, &value, sizeof value));
  FACT("not ready", ready(fd, 0));
  value = 5;
  MUST(write(fd, &value, sizeof value));
  MUST(write(fd, &value, sizeof value));
  MUST(read(fd, &value, sizeof value));
  FACT("adds up", value);
  value = UINT64_MAX;
  CALL("too much", write(fd, &value, sizeof value));
  value = UINT64_MAX - 1;
  FACT("the most", write(fd, &value, sizeof value));
  FACT("full", ready(fd, 0));
  value = 1;
  CALL("one more", write(fd, &value, sizeof value));
  CALL("short read", read(fd, &value, 7));
  CALL("short write", write(fd, &value, 7));
  const int semaphore = MUST(eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK));
  MUST(read(semaphore, &value, sizeof value));
  FACT("one at a time", value);
  MUST(read(semaphore, &value, sizeof value));
  CALL("and no more", read(semaphore, &value, sizeof value));
  CALL("odd flags", eventfd(0, 1 << 20));
  CALL("no offset", pread(fd, &value, sizeof value, 0));
  FACT("flags", fcntl(fd, F_GETFD));
}

static void timers(void) {
  uint64_t times;
  const int fd = MUST(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
  CALL("not set", read(fd, &times, sizeof times));
  const struct itimerspec soon = {{0, 0}, {0, 400000000}};
  MUST(timerfd_settime(fd, 0, &soon, NULL));
  CALL("not yet", read(fd, &times, sizeof times));
  FACT("ready", ready(fd, 5000));
  MUST(read(fd, &times, sizeof times));
  FACT("times", times);
  CALL("read once", read(fd, &times, sizeof times));
  const struct itimerspec often = {{0, 2000000}, {0, 1}};
  MUST(timerfd_settime(fd, 0, &often, NULL));
  usleep(20000);
  MUST(read(fd, &times, sizeof times));
  FACT("several", times >= 5);
  struct itimerspec now;
  MUST(timerfd_gettime(fd, &now));
  FACT("interval", now.it_interval.tv_nsec);
  FACT("left", now.it_value.tv_nsec > 0 && now.it_value.tv_nsec <= 2000000);
  const struct itimerspec off = {{0, 0}, {0, 0}};
  MUST(timerfd_settime(fd, 0, &off, &now));
  FACT("old interval", now.it_interval.tv_nsec);
  MUST(timerfd_gettime(fd, &now));
  FACT("off", now.it_value.tv_nsec + now.it_interval.tv_nsec);
  CALL("wrong time", timerfd_settime(fd, 0, &(struct itimerspec){{0, 0}, {0, 1000000000}}, NULL));
  CALL("odd flag", timerfd_settime(fd, 1 << 10, &soon, NULL));
  CALL("odd clock", timerfd_create(CLOCK_PROCESS_CPUTIME_ID, 0));
  CALL("of another file", timerfd_gettime(0, &now));
  const int wall = MUST(timerfd_create(CLOCK_REALTIME, 0));
  const struct itimerspec past = {{0, 0}, {1, 0}};
  MUST(timerfd_settime(wall, TFD_TIMER_ABSTIME, &past, NULL));
  MUST(read(wall, &times, sizeof times));
  FACT("long past", times);
  CALL("write", write(wall, &times, sizeof times));
  CALL("short", read(wall, &times, 4));
}

static void signals(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGCHLD);
  MUST(sigprocmask(SIG_BLOCK, &set, NULL));
  const int fd = MUST(signalfd(-1, &set, SFD_NONBLOCK));
  struct signalfd_siginfo info[2];
  CALL("none", read(fd, info, sizeof info));
  MUST(sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 6}));
  FACT("ready", ready(fd, 0));
  FACT("read", read(fd, info, sizeof info));
  printf("signal %u, code %d, int %d\n", info[0].ssi_signo, info[0].ssi_code, info[0].ssi_int);
  if (MUST(fork()) == 0) _exit(8);
  FACT("a child", ready(fd, 1000));
  MUST(read(fd, info, sizeof info));
  printf("signal %u, code %d, status %d\n", info[0].ssi_signo, info[0].ssi_code, info[0].ssi_status);
  CALL("short", read(fd, info, 10));
  sigdelset(&set, SIGUSR1);
  FACT("changed", signalfd(fd, &set, 0) == fd);
  raise(SIGUSR1);
  FACT("not its any more", ready(fd, 0));
  CALL("of another file", signalfd(0, &set, 0));
  CALL("odd flags", signalfd(-1, &set, 1 << 20));
  CALL("write", write(fd, info, sizeof info));
}

int main(void) {
  events();
  timers();
  signals();
}
