// Moving bytes by splice, tee and vmsplice; timers and counters as files; signals and processes as files.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void show(const char* what, int fd) {
  char bytes[64];
  const long count = read(fd, bytes, sizeof bytes);
  if (count < 0) {
    printf("%s: %s\n", what, strerrorname_np(errno));
  } else {
    printf("%s: %.*s (%ld)\n", what, (int)count, bytes, count);
  }
}

static void splices(void) {
  int one[2], two[2], sockets[2];
  MUST(pipe2(one, O_NONBLOCK));
  MUST(pipe2(two, O_NONBLOCK));
  MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets));
  const int file = MUST(open("splices", O_RDWR | O_CREAT | O_TRUNC, 0600));
  MUST(write(file, "0123456789", 10));
  off_t at = 2;
  FACT("file to pipe", splice(file, &at, one[1], NULL, 5, 0));
  FACT("offset", at);
  FACT("tee", tee(one[0], two[1], 3, 0));
  show("copied", two[0]);
  FACT("pipe to pipe", splice(one[0], NULL, two[1], NULL, 2, 0));
  show("moved", two[0]);
  FACT("pipe to socket", splice(one[0], NULL, sockets[0], NULL, 100, 0));
  show("socket", sockets[1]);
  MUST(write(sockets[0], "from a socket", 13));
  FACT("socket to pipe", splice(sockets[1], NULL, one[1], NULL, 100, 0));
  at = 8;
  FACT("pipe to file", splice(one[0], NULL, file, &at, 100, 0));
  FACT("offset", at);
  FACT("position", lseek(file, 0, SEEK_CUR));
  lseek(file, 0, SEEK_SET);
  show("file", file);
  FACT("at the end", splice(file, NULL, one[1], NULL, 10, 0));
  CALL("empty", splice(one[0], NULL, two[1], NULL, 10, SPLICE_F_NONBLOCK));
  CALL("no pipe", splice(file, NULL, sockets[0], NULL, 10, 0));
  CALL("offset of a pipe", splice(one[0], &at, file, NULL, 10, 0));
  CALL("the same pipe", splice(one[0], NULL, one[1], NULL, 10, 0));
  CALL("wrong way", splice(one[1], NULL, file, NULL, 10, 0));
  CALL("flags", splice(one[0], NULL, file, NULL, 10, 0x100));
  struct iovec areas[2] = {{(void*)"vm", 2}, {(void*)"splice", 6}};
  FACT("vmsplice", vmsplice(one[1], areas, 2, 0));
  show("vmspliced", one[0]);
  CALL("vmsplice to a file", vmsplice(file, areas, 2, 0));
  lseek(file, 0, SEEK_SET);
  FACT("sendfile", sendfile(one[1], file, NULL, 4));
  show("sent", one[0]);
  close(one[1]);
  FACT("end", splice(one[0], NULL, two[1], NULL, 10, 0));
  close(two[0]);
  signal(SIGPIPE, SIG_IGN);
  CALL("broken", splice(file, NULL, two[1], NULL, 1, 0));
  unlink("splices");
}

static int events(int fd) {
  struct pollfd p = {fd, POLLIN | POLLOUT, 0};
  poll(&p, 1, 0);
  return p.revents;
}

static void counters(void) {
  const int fd = MUST(eventfd(2, EFD_NONBLOCK | EFD_SEMAPHORE));
  uint64_t value = 0;
  FACT("ready", events(fd));
  MUST(read(fd, &value, 8));
  FACT("one of two", value);
  MUST(read(fd, &value, 8));
  CALL("none", read(fd, &value, 8));
  FACT("not readable", events(fd));
  value = UINT64_MAX - 1;
  MUST(write(fd, &value, 8));
  FACT("full", events(fd));
  value = 1;
  CALL("over", write(fd, &value, 8));
  value = UINT64_MAX;
  CALL("too much", write(fd, &value, 8));
  CALL("short", read(fd, &value, 4));
  const int timer = MUST(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
  struct itimerspec set = {{0, 5000000}, {0, 1}}, old;
  CALL("not set", read(timer, &value, 8));
  MUST(timerfd_settime(timer, 0, &set, NULL));
  usleep(22000);
  MUST(read(timer, &value, 8));
  FACT("several", value >= 4);
  MUST(timerfd_gettime(timer, &old));
  FACT("interval", old.it_interval.tv_nsec);
  FACT("next within it", old.it_value.tv_nsec > 0 && old.it_value.tv_nsec <= 5000000);
  struct pollfd p = {timer, POLLIN, 0};
  FACT("fires again", poll(&p, 1, 1000));
  set = (struct itimerspec){{0, 0}, {0, 0}};
  MUST(timerfd_settime(timer, 0, &set, &old));
  FACT("disarmed", events(timer));
  CALL("bad time", timerfd_settime(timer, 0, &(struct itimerspec){{0, 0}, {0, 1000000000}}, NULL));
  CALL("no timer", timerfd_gettime(fd, &old));
  CALL("bad clock", timerfd_create(CLOCK_PROCESS_CPUTIME_ID, 0));
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const int wall = MUST(timerfd_create(CLOCK_REALTIME, 0));
  set = (struct itimerspec){{0, 0}, {now.tv_sec - 10, 0}};
  MUST(timerfd_settime(wall, TFD_TIMER_ABSTIME, &set, NULL));
  MUST(read(wall, &value, 8));
  FACT("past", value);
}

static void signals(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, NULL);
  const int fd = MUST(signalfd(-1, &set, SFD_NONBLOCK));
  const int epoll = MUST(epoll_create1(0));
  struct epoll_event event = {EPOLLIN, {.u32 = 7}};
  MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
  FACT("nothing", epoll_wait(epoll, &event, 1, 0));
  struct signalfd_siginfo info[3];
  CALL("no signal", read(fd, info, sizeof info));
  raise(SIGUSR1);
  FACT("one", epoll_wait(epoll, &event, 1, 0));
  const int child = MUST(fork());
  if (child == 0) _exit(3);
  const int process = MUST(pidfd_open(child, 0));
  struct pollfd p = {process, POLLIN, 0};
  FACT("process", poll(&p, 1, 10000));
  usleep(10000);
  FACT("both", read(fd, info, sizeof info) / sizeof *info);
  FACT("first", info[0].ssi_signo);
  FACT("its sender", info[0].ssi_pid == (uint32_t)getpid());
  FACT("second", info[1].ssi_signo);
  FACT("its status", info[1].ssi_status);
  siginfo_t ended;
  memset(&ended, 0, sizeof ended);
  MUST(waitid(P_PIDFD, process, &ended, WEXITED));
  FACT("status", ended.si_status);
  CALL("gone", pidfd_send_signal(process, 0, NULL, 0));
  const int other = MUST(fork());
  if (other == 0) {
    pause();
    _exit(0);
  }
  const int handle = MUST(pidfd_open(other, 0));
  FACT("runs", events(handle));
  CALL("alive", pidfd_send_signal(handle, 0, NULL, 0));
  CALL("bad signal", pidfd_send_signal(handle, 99, NULL, 0));
  CALL("no pidfd", pidfd_send_signal(fd, 0, NULL, 0));
  MUST(pidfd_send_signal(handle, SIGKILL, NULL, 0));
  int status;
  waitpid(other, &status, 0);
  FACT("killed", WTERMSIG(status));
  CALL("no process", pidfd_open(999999, 0));
  CALL("bad pid", pidfd_open(-1, 0));
  CALL("signalfd of another", signalfd(handle, &set, 0));
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  splices();
  counters();
  signals();
  return 0;
}
