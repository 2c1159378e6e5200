// Pipes, and waiting on them with poll, select, epoll, eventfd and timerfd.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void pipes(void) {
  int ends[2];
  MUST(pipe2(ends, O_NONBLOCK));
  char byte = 'x';
  CALL("read from an empty pipe", read(ends[0], &byte, 1));
  int written = 0;
  char block[4096] = {0};
  while (write(ends[1], block, sizeof block) > 0) ++written;
  FACT("blocks until full", written);
  CALL("full", write(ends[1], block, 1));
  int unread = 0;
  ioctl(ends[0], FIONREAD, &unread);
  FACT("FIONREAD", unread);
  FACT("capacity", fcntl(ends[0], F_GETPIPE_SZ));
  FACT("smaller than its content", fcntl(ends[0], F_SETPIPE_SZ, 4096));
  struct pollfd p = {ends[0], POLLIN | POLLOUT, 0};
  FACT("poll", poll(&p, 1, 0));
  FACT("readable", p.revents);
  close(ends[1]);
  p.revents = 0;
  poll(&p, 1, 0);
  FACT("hangup", p.revents);
  for (int i = 0; i < written; ++i) MUST(read(ends[0], block, sizeof block));
  FACT("end of file", read(ends[0], block, 1));
  MUST(pipe(ends));
  close(ends[0]);
  signal(SIGPIPE, SIG_IGN);
  CALL("without a reader", write(ends[1], "x", 1));
  p = (struct pollfd){ends[1], POLLOUT, 0};
  poll(&p, 1, 0);
  FACT("error event", p.revents);
  CALL("seek", lseek(ends[1], 0, SEEK_SET));
  signal(SIGPIPE, SIG_DFL);
  const int child = MUST(fork());
  if (child == 0) {
    (void)!write(ends[1], "x", 1);
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  FACT("killed by", WTERMSIG(status));
}

static void fifos(void) {
  MUST(mkfifo("fifo", 0600));
  CALL("write end without a reader", open("fifo", O_WRONLY | O_NONBLOCK));
  const int reader = MUST(open("fifo", O_RDONLY | O_NONBLOCK));
  const int writer = MUST(open("fifo", O_WRONLY | O_NONBLOCK));
  FACT("through the fifo", write(writer, "abc", 3));
  char text[8] = {0};
  FACT("read", read(reader, text, sizeof text));
  FACT("tee", tee(reader, writer, 10, SPLICE_F_NONBLOCK) < 0 ? errno : 0);
}

static void epolls(void) {
  const int set = MUST(epoll_create1(EPOLL_CLOEXEC));
  const int event = MUST(eventfd(3, EFD_NONBLOCK));
  struct epoll_event want = {EPOLLIN | EPOLLET, {.u64 = 7}};
  CALL("add", epoll_ctl(set, EPOLL_CTL_ADD, event, &want));
  CALL("add again", epoll_ctl(set, EPOLL_CTL_ADD, event, &want));
  CALL("add itself", epoll_ctl(set, EPOLL_CTL_ADD, set, &want));
  const int file = MUST(open("file", O_CREAT | O_RDWR, 0600));
  CALL("add a file", epoll_ctl(set, EPOLL_CTL_ADD, file, &want));
  struct epoll_event got[4];
  FACT("wait", epoll_wait(set, got, 4, 0));
  FACT("data", got[0].data.u64);
  FACT("edge comes once", epoll_wait(set, got, 4, 0));
  unsigned long long value = 5;
  MUST(write(event, &value, 8));
  FACT("next edge", epoll_wait(set, got, 4, 0));
  FACT("read", read(event, &value, 8));
  FACT("sum", value);
  CALL("empty", read(event, &value, 8));
  want.events = EPOLLIN | EPOLLONESHOT;
  MUST(epoll_ctl(set, EPOLL_CTL_MOD, event, &want));
  value = 1;
  MUST(write(event, &value, 8));
  FACT("oneshot", epoll_wait(set, got, 4, 0));
  FACT("disarmed", epoll_wait(set, got, 4, 0));
  CALL("delete", epoll_ctl(set, EPOLL_CTL_DEL, event, NULL));
  CALL("delete again", epoll_ctl(set, EPOLL_CTL_DEL, event, NULL));
  value = ~0ULL;
  CALL("too large", write(event, &value, 8));
}

static void timers(void) {
  const int timer = MUST(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
  const struct itimerspec soon = {{0, 2000000}, {0, 2000000}};
  CALL("set", timerfd_settime(timer, 0, &soon, NULL));
  struct pollfd p = {timer, POLLIN, 0};
  FACT("fires", poll(&p, 1, 5000));
  usleep(20000);
  unsigned long long ticks = 0;
  FACT("read", read(timer, &ticks, 8));
  FACT("several ticks", ticks > 2);
  CALL("bad clock", timerfd_create(99, 0));
  fd_set set;
  FD_ZERO(&set);
  FD_SET(timer, &set);
  struct timeval wait = {5, 0};
  FACT("select", select(timer + 1, &set, NULL, NULL, &wait));
}

static void signals(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  const int fd = MUST(signalfd(-1, &set, SFD_NONBLOCK));
  raise(SIGUSR1);
  struct signalfd_siginfo info;
  FACT("signalfd", read(fd, &info, sizeof info));
  FACT("signal", info.ssi_signo);
  FACT("from me", info.ssi_pid == (unsigned)getpid());
  CALL("no more", read(fd, &info, sizeof info));
}

int main(void) {
  pipes();
  fifos();
  epolls();
  timers();
  signals();
  return 0;
}
