// Each work of ./dev bench kernel: a line "NAME NANOSECONDS" for one of it. Called with the folder of the programs to
// be executed and the names of works, in an empty folder that can be written to.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) {                                                      \
      fprintf(stderr, "kernel_work: %s: %s\n", #condition, strerror(errno)); \
      exit(1);                                                               \
    }                                                                        \
  } while (0)

static char* folder;  // that this program is in, with static and dynamic programs

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double left = *(const double*)a, right = *(const double*)b;
  return left < right ? -1 : left > right;
}

// The median of some batches, after one that is not counted.
static double median_of(void (*work)(int), int count) {
  double batches[15];
  const int rounds_done = count == 1 ? 5 : 15;  // whole programs take longer
  work(count);
  for (int batch = 0; batch < rounds_done; ++batch) {
    const double start = now();
    work(count);
    batches[batch] = (now() - start) / count;
  }
  qsort(batches, (size_t)rounds_done, sizeof *batches, compare);
  return batches[rounds_done / 2];
}

static void getpid_work(int count) {
  while (count-- > 0) syscall(SYS_getpid);
}
static void getuid_work(int count) {
  while (count-- > 0) syscall(SYS_getuid);
}
static void clock_work(int count) {
  struct timespec time;
  while (count-- > 0) syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
}
static void stat_work(int count) {
  struct stat status;
  while (count-- > 0) CHECK(stat("/usr/bin/env", &status) == 0);
}
static void pread_work(int count) {
  char buffer[4096];
  const int fd = open("/usr/bin/env", O_RDONLY);
  CHECK(fd >= 0);
  while (count-- > 0) CHECK(pread(fd, buffer, sizeof buffer, 0) == sizeof buffer);
  close(fd);
}
static void open_work(int count) {
  while (count-- > 0) CHECK(close(open("/usr/bin/env", O_RDONLY)) == 0);
}
static void create_work(int count) {
  while (count-- > 0) {
    const int fd = open("small-file", O_WRONLY | O_CREAT, 0600);
    CHECK(write(fd, "x", 1) == 1 && close(fd) == 0 && unlink("small-file") == 0);
  }
}
static void getdents_work(int count) {
  static char names[1 << 16];
  const int fd = open("thousand", O_RDONLY | O_DIRECTORY);
  CHECK(fd >= 0);
  while (count-- > 0) {
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    while (syscall(SYS_getdents64, fd, names, sizeof names) > 0) {
    }
  }
  close(fd);
}

static void pipe_work(int count) {
  int there[2], back[2];
  char byte = 0;
  CHECK(pipe(there) == 0 && pipe(back) == 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    for (int i = 0; i < count; ++i) CHECK(read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1);
    _exit(0);
  }
  for (int i = 0; i < count; ++i) CHECK(write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1);
  CHECK(waitpid(child, NULL, 0) == child);
  for (int i = 0; i < 2; ++i) close(there[i]), close(back[i]);
}

static atomic_uint turn;
static int rounds;
static void pass_to(unsigned mine, unsigned next) {
  for (int i = 0; i < rounds; ++i) {
    while (atomic_load(&turn) != mine) syscall(SYS_futex, &turn, FUTEX_WAIT, next, NULL, NULL, 0);
    atomic_store(&turn, next);
    syscall(SYS_futex, &turn, FUTEX_WAKE, 1, NULL, NULL, 0);
  }
}
static void* other_thread(void* unused) {
  pass_to(1, 0);
  return unused;
}
static void futex_work(int count) {
  pthread_t thread;
  rounds = count;
  atomic_store(&turn, 0);
  CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0);
  pass_to(0, 1);
  pthread_join(thread, NULL);
}

static void fork_work(int count) {
  while (count-- > 0) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    CHECK(child > 0 && waitpid(child, NULL, 0) == child);
  }
}

static void execute(const char* path, char* const* arguments) {
  int status;
  const pid_t child = fork();
  if (child == 0) {
    dup2(open("/dev/null", O_WRONLY), 1);
    execv(path, arguments);
    _exit(127);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}
static void execute_beside(const char* name, int count) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  char* const arguments[] = {path, NULL};
  while (count-- > 0) execute(path, arguments);
}
static void static_work(int count) {
  execute_beside("static", count);
}
static void dynamic_work(int count) {
  execute_beside("dynamic", count);
}

static const char* command;
static void shell_work(int count) {
  char* const arguments[] = {"sh", "-c", (char*)command, NULL};
  while (count-- > 0) execute("/bin/sh", arguments);
}

static const struct Work {
  const char* name;
  void (*work)(int);
  int count;
  const char* command;
} works[] = {
    {"getpid", getpid_work, 2000, NULL},
    {"getuid", getuid_work, 2000, NULL},
    {"clock_gettime", clock_work, 2000, NULL},
    {"stat", stat_work, 1000, NULL},
    {"pread", pread_work, 1000, NULL},
    {"open", open_work, 500, NULL},
    {"getdents", getdents_work, 20, NULL},
    {"create", create_work, 300, NULL},
    {"pipe", pipe_work, 500, NULL},
    {"futex", futex_work, 500, NULL},
    {"fork", fork_work, 20, NULL},
    {"exec-static", static_work, 10, NULL},
    {"exec-dynamic", dynamic_work, 10, NULL},
    {"imports", shell_work, 1,
     "exec /usr/bin/python3 -c 'import json,re,asyncio,email,http.client,unittest,decimal,sqlite3'"},
    {"ls", shell_work, 1, "exec ls -lR /usr/include"},
    {"tar", shell_work, 1, "tar cf - /usr/share/doc 2>/dev/null | wc -c"},
    {"git-status", shell_work, 1, "cd repository && exec git status"},
};

static void make_thousand(void) {
  char name[32];
  CHECK(mkdir("thousand", 0700) == 0);
  for (int i = 0; i < 1000; ++i) {
    snprintf(name, sizeof name, "thousand/entry-%d", i);
    CHECK(close(open(name, O_WRONLY | O_CREAT, 0600)) == 0);
  }
}

static void make_repository(void) {
  command =
      "mkdir repository && cd repository && git init -q && git config user.email a@b && git config user.name n && "
      "for i in $(seq 300); do echo $i > f$i; done && git add . && git commit -qm m && git status";
  shell_work(1);
}

int main(int argc, char** argv) {
  folder = argv[1];
  CHECK(setenv("HOME", getcwd(NULL, 0), 1) == 0);
  for (int i = 2; i < argc; ++i) {
    for (const struct Work* work = works; work < works + sizeof works / sizeof *works; ++work) {
      if (strcmp(work->name, argv[i]) != 0) continue;
      if (work->work == getdents_work) make_thousand();
      if (strcmp(work->name, "git-status") == 0) make_repository();
      command = work->command;
      printf("%s %.1f\n", work->name, median_of(work->work, work->count));
      fflush(stdout);
    }
  }
  return 0;
}
