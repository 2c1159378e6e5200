// Descriptors: dup in its forms, close-on-exec, ranges, limits, what is shared and what is not.
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int is_open(int fd) {
  return fcntl(fd, F_GETFD) >= 0;
}

static void copies(int fd) {
  const int second = MUST(dup(fd));
  MUST(write(fd, "abc", 3));
  FACT("offset is shared", lseek(second, 0, SEEK_CUR));
  const int other = MUST(open("file", O_RDONLY));
  FACT("of another opening not", lseek(other, 0, SEEK_CUR));
  MUST(fcntl(fd, F_SETFD, FD_CLOEXEC));
  FACT("descriptor flags are not shared", fcntl(second, F_GETFD));
  MUST(fcntl(fd, F_SETFL, O_APPEND));
  FACT("file flags are", (fcntl(second, F_GETFL) & O_APPEND) != 0);
  FACT("dup2", dup2(fd, 100));
  FACT("dup2 clears close-on-exec", fcntl(100, F_GETFD));
  FACT("dup2 onto itself", dup2(100, 100));
  CALL("dup2 of a closed one", dup2(200, 100));
  FACT("which leaves the target", is_open(100));
  CALL("dup2 out of range", dup2(fd, -1));
  CALL("dup3 onto itself", dup3(100, 100, 0));
  FACT("dup3", dup3(fd, 101, O_CLOEXEC));
  FACT("its flag", fcntl(101, F_GETFD));
  CALL("dup3 with an odd flag", dup3(fd, 102, O_APPEND));
  FACT("F_DUPFD", fcntl(fd, F_DUPFD, 150));
  FACT("F_DUPFD again", fcntl(fd, F_DUPFD, 150));
  FACT("F_DUPFD_CLOEXEC", fcntl(fd, F_DUPFD_CLOEXEC, 160));
  CALL("F_DUPFD too high", fcntl(fd, F_DUPFD, 1 << 30));
  CALL("F_DUPFD negative", fcntl(fd, F_DUPFD, -1));
  close(second);
  FACT("the lowest free one", dup(fd) == second);
  MUST(ioctl(101, FIONCLEX));
  FACT("FIONCLEX", fcntl(101, F_GETFD));
  MUST(ioctl(101, FIOCLEX));
  FACT("FIOCLEX", fcntl(101, F_GETFD));
}

static void ranges(int fd) {
  for (int i = 300; i < 310; ++i) MUST(dup2(fd, i));
  CALL("close_range", close_range(302, 305, 0));
  for (int i = 300; i < 310; ++i) printf("%d", is_open(i));
  printf("\n");
  CALL("close-on-exec", close_range(306, 308, CLOSE_RANGE_CLOEXEC));
  FACT("is set", fcntl(307, F_GETFD));
  CALL("wrong order", close_range(10, 5, 0));
  CALL("odd flag", close_range(300, 301, 1 << 10));
  CALL("to the end", close_range(300, ~0U, 0));
  FACT("all are closed", is_open(309));
  CALL("close twice", close(309));
  CALL("close of -1", close(-1));
}

static void limits(int fd) {
  struct rlimit few;
  MUST(getrlimit(RLIMIT_NOFILE, &few));
  few.rlim_cur = 20;
  MUST(setrlimit(RLIMIT_NOFILE, &few));
  int last = -1;
  for (int i = 0; i < 30; ++i) {
    const int next = dup(fd);
    if (next < 0) break;
    last = next;
  }
  FACT("the last one", last);
  CALL("one more", dup(fd));
  CALL("opening", open("file", O_RDONLY));
  int ends[2];
  CALL("a pipe", pipe(ends));
  CALL("dup2 past the limit", dup2(fd, 25));
  FACT("one from before stays", is_open(100));
  for (int i = 5; i <= last; ++i) close(i);
}

static void across_exec(int fd) {
  MUST(dup2(fd, 7));
  MUST(dup2(fd, 8));
  MUST(fcntl(8, F_SETFD, FD_CLOEXEC));
  fflush(stdout);
  if (MUST(fork()) == 0) {
    execl("/bin/sh", "sh", "-c",
          "for fd in 7 8; do if [ -e /proc/self/fd/$fd ]; then echo $fd open; else echo $fd closed; fi; done", NULL);
    _exit(1);
  }
  wait(NULL);
}

int main(void) {
  const int fd = MUST(open("file", O_CREAT | O_RDWR, 0644));
  copies(fd);
  ranges(fd);
  limits(fd);
  across_exec(fd);
}
