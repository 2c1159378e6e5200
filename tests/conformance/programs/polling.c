// poll, ppoll, select and pselect: what is ready of which file, timeouts, masks, closed descriptors.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static int look(int fd, short events) {
  struct pollfd p = {fd, events, 0};
  poll(&p, 1, 0);
  return p.revents;
}

static void files(void) {
  int ends[2], pair[2];
  MUST(pipe(ends));
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  FACT("empty pipe", look(ends[0], POLLIN | POLLOUT));
  FACT("its other end", look(ends[1], POLLIN | POLLOUT));
  MUST(write(ends[1], "x", 1));
  FACT("full pipe", look(ends[0], POLLIN | POLLRDNORM));
  MUST(fcntl(ends[1], F_SETFL, O_NONBLOCK));
  char block[4096] = "";
  while (write(ends[1], block, sizeof block) > 0) continue;
  FACT("no room", look(ends[1], POLLOUT));
  close(ends[0]);
  FACT("no reader", look(ends[1], POLLOUT));
  FACT("socket", look(pair[0], POLLIN | POLLOUT));
  MUST(shutdown(pair[1], SHUT_WR));
  FACT("half closed", look(pair[0], POLLIN | POLLRDHUP));
  close(pair[1]);
  FACT("closed", look(pair[0], POLLIN | POLLOUT));
  FACT("file", look(MUST(open("file", O_CREAT | O_RDWR, 0644)), POLLIN | POLLOUT));
  FACT("folder", look(MUST(open(".", O_RDONLY)), POLLIN | POLLOUT));
  FACT("closed descriptor", look(999, POLLIN));
  FACT("negative descriptor", look(-1, POLLIN));
  FACT("null", look(MUST(open("/dev/null", O_RDWR)), POLLIN | POLLOUT));
}

static long milliseconds_since(const struct timespec* begin) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (now.tv_sec - begin->tv_sec) * 1000 + (now.tv_nsec - begin->tv_nsec) / 1000000;
}

static void timeouts(void) {
  struct timespec begin, wait = {0, 30000000};
  MUST(clock_gettime(CLOCK_MONOTONIC, &begin));
  FACT("poll of nothing", poll(NULL, 0, 30));
  FACT("ppoll of nothing", ppoll(NULL, 0, &wait, NULL));
  struct timeval tv = {0, 30000};
  FACT("select of nothing", select(0, NULL, NULL, NULL, &tv));
  FACT("time left", tv.tv_sec + tv.tv_usec);
  FACT("pselect of nothing", pselect(0, NULL, NULL, NULL, &wait, NULL));
  const long passed = milliseconds_since(&begin);
  FACT("took long enough", passed >= 115 && passed < 5000);
  const struct timespec wrong = {0, -1};
  CALL("wrong time", ppoll(NULL, 0, &wrong, NULL));
  struct timeval negative = {-1, 0};
  CALL("negative time", select(0, NULL, NULL, NULL, &negative));
  CALL("too many", select(-1, NULL, NULL, NULL, &tv));
}

static void sets(void) {
  int one[2], two[2];
  MUST(pipe(one));
  MUST(pipe(two));
  MUST(write(two[1], "x", 1));
  fd_set in, out;
  FD_ZERO(&in);
  FD_ZERO(&out);
  FD_SET(one[0], &in);
  FD_SET(two[0], &in);
  FD_SET(one[1], &out);
  struct timeval tv = {1, 0};
  FACT("select", select(two[1] + 1, &in, &out, NULL, &tv));
  printf("sets: %d %d %d\n", FD_ISSET(one[0], &in) != 0, FD_ISSET(two[0], &in) != 0, FD_ISSET(one[1], &out) != 0);
  FD_ZERO(&in);
  FD_SET(50, &in);
  CALL("closed descriptor", select(51, &in, NULL, NULL, &tv));
  struct pollfd p[3] = {{one[0], POLLIN, 0}, {two[0], POLLIN, 0}, {999, POLLIN, 0}};
  FACT("poll", poll(p, 3, 0));
  printf("events: %d %d %d\n", p[0].revents, p[1].revents, p[2].revents);
}

static volatile sig_atomic_t handled;
static void on_alarm(int signal) {
  (void)signal;
  ++handled;
}

static void masks(void) {
  const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
  MUST(sigaction(SIGALRM, &action, NULL));
  const struct itimerval soon = {{0, 0}, {0, 20000}};
  MUST(setitimer(ITIMER_REAL, &soon, NULL));
  CALL("poll is not restarted", poll(NULL, 0, 5000));
  MUST(setitimer(ITIMER_REAL, &soon, NULL));
  CALL("nor is select", select(0, NULL, NULL, NULL, NULL));
  sigset_t blocked, none;
  sigemptyset(&none);
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGALRM);
  MUST(sigprocmask(SIG_BLOCK, &blocked, NULL));
  raise(SIGALRM);
  handled = 0;
  const struct timespec wait = {5, 0};
  CALL("ppoll with the mask open", ppoll(NULL, 0, &wait, &none));
  FACT("handled", handled);
  raise(SIGALRM);
  CALL("pselect with the mask open", pselect(0, NULL, NULL, NULL, &wait, &none));
  FACT("handled", handled);
  const struct timespec shortly = {0, 10000000};
  raise(SIGALRM);
  CALL("ppoll with it closed", ppoll(NULL, 0, &shortly, &blocked));
  FACT("handled", handled);
}

int main(void) {
  files();
  timeouts();
  sets();
  masks();
}
