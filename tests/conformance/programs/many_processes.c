// Many at once: a chain of processes through pipes, a crowd that counts in shared memory, signals among siblings.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void chain(void) {
  int first[2], in;
  MUST(pipe(first));
  in = first[0];
  const int length = 30;
  for (int i = 0; i < length; ++i) {
    int next[2];
    MUST(pipe(next));
    if (MUST(fork()) == 0) {
      close(first[1]);
      close(next[0]);
      unsigned char byte;
      while (read(in, &byte, 1) == 1) {
        ++byte;
        MUST(write(next[1], &byte, 1));
      }
      _exit(0);
    }
    close(in);
    close(next[1]);
    in = next[0];
  }
  MUST(write(first[1], "\0\1\2", 3));
  close(first[1]);
  unsigned char bytes[8];
  size_t have = 0;
  ssize_t part;
  while ((part = read(in, bytes + have, sizeof bytes - have)) > 0) have += (size_t)part;
  FACT("through the chain", have);
  for (size_t i = 0; i < have; ++i) FACT("byte", bytes[i]);
  int ended = 0;
  while (wait(NULL) > 0) ++ended;
  FACT("ended", ended);
}

static void crowd(void) {
  int* counters = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const int fd = MUST(open("log", O_CREAT | O_RDWR | O_APPEND, 0644));
  for (int i = 0; i < 40; ++i) {
    if (MUST(fork()) == 0) {
      for (int j = 0; j < 50; ++j) __sync_fetch_and_add(&counters[j % 4], 1);
      char line[32];
      const int size = sprintf(line, "line of %02d\n", i);
      MUST(write(fd, line, (size_t)size));
      _exit(i);
    }
  }
  int status, sum = 0;
  while (wait(&status) > 0) sum += WEXITSTATUS(status);
  FACT("sum of statuses", sum);
  for (int i = 0; i < 4; ++i) FACT("counted", counters[i]);
  FACT("size of the log", lseek(fd, 0, SEEK_END));
}

static volatile sig_atomic_t got;
static void on_signal(int signal) {
  (void)signal;
  ++got;
}

static void ring(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  MUST(sigprocmask(SIG_BLOCK, &set, NULL));
  const struct sigaction action = {.sa_handler = on_signal};
  MUST(sigaction(SIGUSR1, &action, NULL));
  int* pids = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const int size = 8, rounds = 10;
  for (int i = 0; i < size; ++i) {
    const int pid = MUST(fork());
    if (pid == 0) {
      int taken = 0, signal;
      while (taken < rounds) {
        sigwait(&set, &signal);
        ++taken;
        if (i + 1 < size || taken < rounds) kill(pids[(i + 1) % size], SIGUSR1);
      }
      _exit(taken);
    }
    pids[i] = pid;
  }
  kill(pids[0], SIGUSR1);
  int status, sum = 0;
  while (wait(&status) > 0) sum += WIFEXITED(status) ? WEXITSTATUS(status) : -100;
  FACT("signals around the ring", sum);
}

static void generations(void) {
  int ends[2];
  MUST(pipe(ends));
  const int pid = MUST(fork());
  if (pid == 0) {
    for (int depth = 1; depth <= 20; ++depth) {
      const int child = fork();
      if (child != 0) {
        int status;
        waitpid(child, &status, 0);
        _exit(WEXITSTATUS(status) + 1);
      }
    }
    _exit(0);
  }
  int status;
  MUST(waitpid(pid, &status, 0));
  FACT("generations", WEXITSTATUS(status));
  for (int i = 0; i < 200; ++i) {
    const int child = MUST(fork());
    if (child == 0) _exit(0);
    MUST(waitpid(child, &status, 0));
  }
  FACT("one after the other", status);
}

int main(void) {
  chain();
  crowd();
  ring();
  generations();
}
