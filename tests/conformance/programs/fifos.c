// Named pipes: opening in its forms, several readers and writers, atomic writes, capacity, the end.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void opening(void) {
  CALL("mkfifo", mkfifo("fifo", 0600));
  CALL("taken", mkfifo("fifo", 0600));
  struct stat status;
  MUST(stat("fifo", &status));
  FACT("type", (status.st_mode & S_IFMT) == S_IFIFO);
  CALL("writer alone, not waiting", open("fifo", O_WRONLY | O_NONBLOCK));
  const int reader = MUST(open("fifo", O_RDONLY | O_NONBLOCK));
  char byte;
  FACT("no writer yet", read(reader, &byte, 1));
  struct pollfd p = {reader, POLLIN, 0};
  FACT("poll before any writer", poll(&p, 1, 0));
  const int writer = MUST(open("fifo", O_WRONLY | O_NONBLOCK));
  CALL("empty", read(reader, &byte, 1));
  MUST(write(writer, "x", 1));
  FACT("one", read(reader, &byte, 1));
  close(writer);
  poll(&p, 1, 0);
  FACT("hang-up", p.revents);
  FACT("the end", read(reader, &byte, 1));
  close(reader);
  const int both = MUST(open("fifo", O_RDWR | O_NONBLOCK));
  MUST(write(both, "y", 1));
  FACT("both ways", read(both, &byte, 1));
  CALL("never the end", read(both, &byte, 1));
  close(both);
  CALL("lseek", lseek(MUST(open("fifo", O_RDONLY | O_NONBLOCK)), 0, SEEK_SET));
}

static void waiting(void) {
  MUST(mkfifo("slow", 0600));
  fflush(stdout);
  if (MUST(fork()) == 0) {
    usleep(20000);
    const int writer = MUST(open("slow", O_WRONLY));
    MUST(write(writer, "hello", 5));
    _exit(0);
  }
  const int reader = MUST(open("slow", O_RDONLY));
  char text[16] = "";
  FACT("opened once both are there", read(reader, text, sizeof text));
  FACT("and the end", read(reader, text, sizeof text));
  wait(NULL);
  close(reader);
  MUST(unlink("slow"));
  CALL("gone", open("slow", O_RDONLY));
}

static void atomic(void) {
  int ends[2];
  MUST(pipe(ends));
  fflush(stdout);
  for (int child = 0; child < 4; ++child) {
    if (MUST(fork()) == 0) {
      char line[512];
      memset(line, 'a' + child, sizeof line);
      for (int i = 0; i < 100; ++i) MUST(write(ends[1], line, sizeof line));
      _exit(0);
    }
  }
  close(ends[1]);
  char line[512];
  int whole = 0, mixed = 0;
  while (1) {
    size_t have = 0;
    while (have < sizeof line) {
      const ssize_t size = read(ends[0], line + have, sizeof line - have);
      if (size <= 0) break;
      have += (size_t)size;
    }
    if (have < sizeof line) break;
    int same = 1;
    for (size_t i = 1; i < sizeof line; ++i) same &= line[i] == line[0];
    whole += same;
    mixed += !same;
  }
  while (wait(NULL) > 0) continue;
  FACT("whole lines", whole);
  FACT("mixed lines", mixed);
}

static void capacities(void) {
  int ends[2];
  MUST(pipe2(ends, O_NONBLOCK));
  FACT("capacity", fcntl(ends[1], F_GETPIPE_SZ));
  static char block[200000];
  FACT("written at most", write(ends[1], block, sizeof block));
  CALL("full", write(ends[1], "x", 1));
  int waiting = 0;
  MUST(ioctl(ends[0], FIONREAD, &waiting));
  FACT("waiting", waiting);
  CALL("made smaller than its contents", fcntl(ends[1], F_SETPIPE_SZ, 4096));
  MUST(read(ends[0], block, 65536));
  FACT("smaller", fcntl(ends[1], F_SETPIPE_SZ, 5000));
  FACT("larger", fcntl(ends[1], F_SETPIPE_SZ, 1 << 18));
  FACT("written now", write(ends[1], block, sizeof block));
  signal(SIGPIPE, SIG_IGN);
  close(ends[0]);
  CALL("no reader", write(ends[1], "x", 1));
  CALL("odd flags", pipe2(ends, 1 << 30));
}

static void packets(void) {
  int ends[2];
  MUST(pipe2(ends, O_DIRECT));
  MUST(write(ends[1], "one", 3));
  MUST(write(ends[1], "second", 6));
  char text[16] = "";
  FACT("first packet", read(ends[0], text, sizeof text));
  FACT("part of the second", read(ends[0], text, 2));
  close(ends[1]);
  FACT("whose rest is lost", read(ends[0], text, sizeof text));
}

int main(void) {
  opening();
  waiting();
  atomic();
  capacities();
  packets();
}
