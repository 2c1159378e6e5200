// POSIX message queues: order by priority, limits, names, waiting, readiness, notices.
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static struct timespec in(long milliseconds) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  time.tv_nsec += milliseconds * 1000000;
  time.tv_sec += time.tv_nsec / 1000000000;
  time.tv_nsec %= 1000000000;
  return time;
}

static mqd_t make(const char* name, int flags, long most, long size) {
  struct mq_attr attributes = {.mq_maxmsg = most, .mq_msgsize = size};
  return mq_open(name, O_CREAT | O_RDWR | flags, 0600, &attributes);
}

static void order(void) {
  const mqd_t queue = make("/order", O_EXCL, 4, 16);
  MUST(queue);
  MUST(mq_send(queue, "low", 3, 1));
  MUST(mq_send(queue, "high", 4, 9));
  CALL("too long", mq_send(queue, "12345678901234567", 17, 0));
  CALL("priority too high", mq_send(queue, "x", 1, 32768));
  CALL("no memory", mq_send(queue, (const char*)8, 4, 0));
  struct mq_attr now;
  MUST(mq_getattr(queue, &now));
  FACT("waiting", now.mq_curmsgs);
  FACT("at most", now.mq_maxmsg);
  FACT("of size", now.mq_msgsize);
  char text[16];
  unsigned priority = 0;
  FACT("first", mq_receive(queue, text, sizeof text, &priority));
  FACT("priority", priority);
  FACT("text", strncmp(text, "high", 4) == 0);
  CALL("too small a buffer", mq_receive(queue, text, 4, &priority));
  FACT("second", mq_receive(queue, text, sizeof text, &priority));
  CALL("nothing left", mq_timedreceive(queue, text, sizeof text, NULL, &(struct timespec){0}));
  for (int i = 0; i < 4; ++i) MUST(mq_send(queue, "abcd" + i, 1, i == 2 ? 32767 : 7));
  for (int i = 0; i < 4; ++i) {
    MUST(mq_receive(queue, text, sizeof text, &priority));
    printf("of four: %c %u\n", text[0], priority);
  }
  MUST(mq_send(queue, "", 0, 0));
  FACT("an empty one", mq_receive(queue, text, sizeof text, NULL));
  MUST(mq_close(queue));
}

static void names(void) {
  CALL("there already", mq_open("/order", O_CREAT | O_EXCL | O_RDWR, 0600, NULL));
  CALL("read only", mq_open("/order", O_RDONLY));
  CALL("all access bits", mq_open("/order", O_RDWR | O_WRONLY));
  CALL("no slash", mq_open("order", O_RDONLY));
  CALL("two slashes", mq_open("/a/b", O_CREAT | O_RDWR, 0600, NULL));
  CALL("a slash only", mq_open("/", O_CREAT | O_RDWR, 0600, NULL));
  CALL("a dot", mq_open("/.", O_CREAT | O_RDWR, 0600, NULL));
  char longest[300] = "/";
  memset(longest + 1, 'n', 256);
  CALL("too long a name", mq_open(longest, O_CREAT | O_RDWR, 0600, NULL));
  longest[256] = 0;
  CALL("the longest name", mq_open(longest, O_CREAT | O_RDWR, 0600, NULL));
  CALL("unlink the longest", mq_unlink(longest));
  CALL("none", mq_open("/none", O_RDWR));
  CALL("no messages", make("/none", 0, 0, 8));
  CALL("no bytes", make("/none", 0, 8, 0));
  CALL("too many messages", make("/none", 0, 65537, 8));
  CALL("too large messages", make("/none", 0, 1, 16777217));
  CALL("unlink", mq_unlink("/order"));
  CALL("unlink again", mq_unlink("/order"));
  CALL("no memory for the name", syscall(SYS_mq_open, 8, O_RDWR, 0, 0));
  CALL("an empty name", syscall(SYS_mq_unlink, ""));
}

static void modes(void) {
  const mode_t mask = umask(027);
  const mqd_t queue = mq_open("/modes", O_CREAT | O_RDWR, 0666, NULL);
  MUST(queue);
  umask(mask);
  struct stat status;
  MUST(fstat(queue, &status));
  printf("mode: %o\n", status.st_mode);
  FACT("size", status.st_size);
  FACT("links", status.st_nlink);
  FACT("closed on exec", fcntl(queue, F_GETFD));
  CALL("fchmod", fchmod(queue, 0200));
  CALL("to read", mq_open("/modes", O_RDONLY));
  CALL("to read and write", mq_open("/modes", O_RDWR));
  const mqd_t writer = mq_open("/modes", O_WRONLY);
  MUST(writer);
  char text[8192];
  CALL("receive from a writer", mq_receive(writer, text, sizeof text, NULL));
  MUST(fchmod(queue, 0400));
  const mqd_t reader = mq_open("/modes", O_RDONLY);
  MUST(reader);
  CALL("send to a reader", mq_send(reader, "x", 1, 0));
  MUST(mq_send(writer, "abc", 3, 0));
  const ssize_t count = read(reader, text, sizeof text);
  printf("read: %.*s", (int)count, text);
  FACT("and no more", read(reader, text, sizeof text));
  CALL("write", write(writer, "abc", 3));
  MUST(mq_unlink("/modes"));
  MUST(fstat(queue, &status));
  FACT("links then", status.st_nlink);
  FACT("still there", mq_receive(queue, text, sizeof text, NULL));
  CALL("not a queue", mq_send(0, "x", 1, 0));
  CALL("not a file", mq_send(-1, "x", 1, 0));
  MUST(mq_close(queue));
  CALL("closed", mq_getattr(queue, &(struct mq_attr){0}));
  MUST(mq_close(reader));
  MUST(mq_close(writer));
}

static void limits(void) {
  mqd_t queues[20];
  char name[20];
  int count = 0;
  for (; count < 20; ++count) {
    sprintf(name, "/limit%d", count);
    queues[count] = make(name, O_EXCL, 10, 8192);
    if (queues[count] < 0) break;
  }
  FACT("queues", count);
  FACT("one too many", errno == EMFILE);
  CALL("a small one", make("/small", 0, 1, 1));
  CALL("unlink the small one", mq_unlink("/small"));
  CALL("the name that was not to be", mq_unlink(name));
  for (int i = 0; i < count; ++i) {
    sprintf(name, "/limit%d", i);
    MUST(mq_unlink(name));
  }
  CALL("unlinked, but open", make("/limit", 0, 10, 8192));
  for (int i = 0; i < count; ++i) MUST(mq_close(queues[i]));
  CALL("closed", make("/limit", 0, 10, 8192));
  MUST(mq_unlink("/limit"));
  const struct rlimit none = {0, 0};
  MUST(setrlimit(RLIMIT_MSGQUEUE, &none));
  CALL("a limit of 0", make("/limit", 0, 1, 1));
}

static void attributes(void) {
  const mqd_t queue = make("/attributes", O_NONBLOCK, 1, 8);
  MUST(queue);
  MUST(mq_unlink("/attributes"));
  struct mq_attr attributes, before;
  MUST(mq_getattr(queue, &attributes));
  FACT("nonblocking", attributes.mq_flags == O_NONBLOCK);
  char text[8];
  CALL("nothing there", mq_receive(queue, text, sizeof text, NULL));
  MUST(mq_send(queue, "x", 1, 0));
  CALL("full", mq_send(queue, "x", 1, 0));
  attributes.mq_flags = O_APPEND;
  CALL("another flag", mq_setattr(queue, &attributes, NULL));
  attributes = (struct mq_attr){.mq_maxmsg = 5};
  CALL("blocking", mq_setattr(queue, &attributes, &before));
  FACT("was nonblocking", before.mq_flags == O_NONBLOCK);
  FACT("messages then", before.mq_curmsgs);
  MUST(mq_getattr(queue, &attributes));
  FACT("flags", attributes.mq_flags);
  FACT("at most as before", attributes.mq_maxmsg);
  struct timespec soon = in(20);
  CALL("full until", mq_timedsend(queue, "x", 1, 0, &soon));
  soon.tv_nsec = 1000000000;
  CALL("no time", mq_timedsend(queue, "x", 1, 0, &soon));
  MUST(mq_receive(queue, text, sizeof text, NULL));
  CALL("no time, but room", mq_timedsend(queue, "x", 1, 0, &soon));
  const struct timespec past = {1, 0};
  CALL("time past, but room", mq_timedsend(queue, "x", 1, 0, &past));
  MUST(mq_close(queue));
}

static void readiness(void) {
  const mqd_t queue = make("/readiness", 0, 1, 8);
  MUST(queue);
  MUST(mq_unlink("/readiness"));
  struct pollfd polled = {.fd = queue, .events = POLLIN | POLLOUT};
  FACT("poll", poll(&polled, 1, 0));
  FACT("empty", polled.revents);
  const int epoll = MUST(epoll_create1(0));
  struct epoll_event event = {.events = EPOLLIN | EPOLLET};
  MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, queue, &event));
  FACT("epoll of an empty one", epoll_wait(epoll, &event, 1, 0));
  const pid_t child = MUST(fork());
  if (child == 0) {
    usleep(20000);
    MUST(mq_send(queue, "x", 1, 3));
    _exit(0);
  }
  FACT("epoll", epoll_wait(epoll, &event, 1, 5000));
  FACT("events", event.events);
  FACT("once", epoll_wait(epoll, &event, 1, 0));
  poll(&polled, 1, 0);
  FACT("full", polled.revents);
  MUST(waitpid(child, NULL, 0));
  MUST(close(epoll));
  MUST(mq_close(queue));
}

static volatile sig_atomic_t alarms;
static void on_alarm(int signal) {
  (void)signal;
  ++alarms;
}

static void interrupted(void) {
  const mqd_t queue = make("/interrupted", 0, 1, 8);
  MUST(queue);
  MUST(mq_unlink("/interrupted"));
  char text[8];
  struct sigaction action = {.sa_handler = on_alarm};
  const struct itimerval soon = {.it_value.tv_usec = 30000};
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &soon, NULL);
  CALL("a signal", mq_receive(queue, text, sizeof text, NULL));
  MUST(mq_send(queue, "x", 1, 0));
  setitimer(ITIMER_REAL, &soon, NULL);
  CALL("a signal to a sender", mq_send(queue, "y", 1, 0));
  MUST(mq_receive(queue, text, sizeof text, NULL));
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &soon, NULL);
  const struct timespec end = in(100);
  CALL("begun again, until its time", mq_timedreceive(queue, text, sizeof text, NULL, &end));
  FACT("alarms", alarms);
  MUST(mq_close(queue));
}

static void* send_two(void* queue) {
  MUST(mq_send(*(mqd_t*)queue, "one", 3, 1));
  MUST(mq_send(*(mqd_t*)queue, "two", 3, 5));
  return NULL;
}

// Who waits is served at once: a message that is taken makes room for the one that waited.
static void waiting(void) {
  mqd_t queue = make("/waiting", 0, 1, 8);
  MUST(queue);
  MUST(mq_unlink("/waiting"));
  pthread_t thread;
  MUST(-pthread_create(&thread, NULL, send_two, &queue));
  usleep(50000);
  struct mq_attr now;
  char text[8];
  unsigned priority = 0;
  FACT("from a thread", mq_receive(queue, text, sizeof text, &priority));
  MUST(mq_getattr(queue, &now));
  FACT("full again", now.mq_curmsgs);
  MUST(mq_receive(queue, text, sizeof text, &priority));
  printf("then: %.3s %u\n", text, priority);
  pthread_join(thread, NULL);
  const pid_t child = MUST(fork());
  if (child == 0) {
    const ssize_t count = mq_receive(queue, text, sizeof text, &priority);
    _exit(count == 4 && priority == 77 ? 7 : 1);
  }
  usleep(50000);
  MUST(mq_send(queue, "text", 4, 77));
  MUST(mq_getattr(queue, &now));
  int status = 0;
  MUST(waitpid(child, &status, 0));
  FACT("to a child", WEXITSTATUS(status));
  FACT("not left in the queue", now.mq_curmsgs);
  const pid_t killed = MUST(fork());
  if (killed == 0) _exit((int)mq_receive(queue, text, sizeof text, NULL));
  usleep(50000);
  MUST(kill(killed, SIGKILL));
  MUST(waitpid(killed, NULL, 0));
  MUST(mq_send(queue, "text", 4, 0));
  FACT("not to the dead", mq_receive(queue, text, sizeof text, NULL));
  MUST(mq_close(queue));
}

static volatile sig_atomic_t notices, notice_value, notice_code, notice_is_own;
static void on_notice(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)context;
  ++notices;
  notice_value = info->si_value.sival_int;
  notice_code = info->si_code;
  notice_is_own = info->si_pid == getpid() && info->si_uid == getuid();
}

static void told_by_signal(mqd_t queue) {
  struct sigaction action = {.sa_sigaction = on_notice, .sa_flags = SA_SIGINFO};
  sigaction(SIGRTMIN, &action, NULL);
  char text[8];
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 42};
  CALL("notify", mq_notify(queue, &event));
  CALL("twice", mq_notify(queue, &event));
  MUST(mq_send(queue, "x", 1, 0));
  FACT("told", notices);
  FACT("value", notice_value);
  FACT("code", notice_code == SI_MESGQ);
  FACT("by itself", notice_is_own);
  CALL("again", mq_notify(queue, &event));
  MUST(mq_send(queue, "y", 1, 0));
  FACT("not of a second message", notices);
  MUST(mq_receive(queue, text, sizeof text, NULL));
  MUST(mq_receive(queue, text, sizeof text, NULL));
  const pid_t child = MUST(fork());
  if (child == 0) {
    const int is_busy = mq_notify(queue, &event) < 0 && errno == EBUSY;
    mq_notify(queue, NULL);
    mq_send(queue, "z", 1, 0);
    _exit(is_busy);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) continue;
  FACT("busy for a child", WEXITSTATUS(status));
  FACT("told of the child's", notices);
  FACT("by another", !notice_is_own);
  MUST(mq_receive(queue, text, sizeof text, NULL));
}

static void notified(void) {
  const mqd_t queue = make("/notified", 0, 4, 8);
  MUST(queue);
  told_by_signal(queue);
  char text[8];
  struct sigevent event = {.sigev_notify = SIGEV_NONE};
  CALL("none", mq_notify(queue, &event));
  CALL("it counts", mq_notify(queue, &event));
  CALL("taken back", mq_notify(queue, NULL));
  CALL("taken back again", mq_notify(queue, NULL));
  event = (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = 65};
  CALL("no signal", mq_notify(queue, &event));
  event.sigev_notify = 77;
  CALL("unknown", mq_notify(queue, &event));
  char cookie[32] = {0};
  event = (struct sigevent){.sigev_notify = SIGEV_THREAD, .sigev_signo = -1};
  CALL("a thread without a cookie", syscall(SYS_mq_notify, queue, &event));
  event.sigev_value.sival_ptr = cookie;
  CALL("a thread without a socket", syscall(SYS_mq_notify, queue, &event));
  event.sigev_signo = queue;
  CALL("a thread through a file", syscall(SYS_mq_notify, queue, &event));
  CALL("not a queue", mq_notify(0, NULL));
  // Who waits for a message comes first.
  event = (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
  MUST(mq_notify(queue, &event));
  const pid_t child = MUST(fork());
  if (child == 0) _exit((int)mq_receive(queue, text, sizeof text, NULL));
  usleep(50000);
  MUST(mq_send(queue, "abc", 3, 0));
  int status = 0;
  MUST(waitpid(child, &status, 0));
  FACT("received by a child", WEXITSTATUS(status));
  FACT("so nobody was told", notices);
  const mqd_t other = mq_open("/notified", O_RDWR);
  MUST(other);
  MUST(mq_close(other));
  CALL("a close takes it back", mq_notify(queue, &event));
  MUST(mq_unlink("/notified"));
  MUST(mq_close(queue));
}

int main(void) {
  order();
  names();
  modes();
  attributes();
  readiness();
  interrupted();
  waiting();
  notified();
  limits();
  return 0;
}
