// /proc of other processes of the same user: what they are, what is in their memory, which files they have open.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char text[1 << 20];

// Of /proc/PID/`name`; its size, or -errno.
static long read_of(pid_t pid, const char* name) {
  char path[64];
  sprintf(path, "/proc/%d/%s", pid, name);
  const int fd = open(path, O_RDONLY);
  text[0] = '\0';
  if (fd < 0) return -errno;
  long have = 0, part;
  while ((part = read(fd, text + have, sizeof text - 1 - (size_t)have)) > 0) have += part;
  const int failed = part < 0 ? errno : 0;
  text[have] = '\0';
  close(fd);
  return failed != 0 ? -failed : have;
}

static long field_of(const char* name) {
  const char* line = strstr(text, name);
  return line == NULL ? -1 : atol(line + strlen(name));
}

// A mapping that begins there, with these permissions.
static int has_mapping(const void* at, const char* permissions) {
  char begin[32];
  sprintf(begin, "%lx-", (unsigned long)at);
  for (const char* line = text; line != NULL && *line != '\0';) {
    if (strncmp(line, begin, strlen(begin)) == 0) return strncmp(strchr(line, ' ') + 1, permissions, 4) == 0;
    line = strchr(line, '\n');
    if (line != NULL) ++line;
  }
  return 0;
}

static void wait_for_state(pid_t pid, char state) {
  do {
    read_of(pid, "stat");
  } while (strrchr(text, ')')[2] != state);
}

// What can be read of a process, however it is just now.
static void look(const char* how, pid_t pid, const void* map) {
  printf("%s\n", how);
  read_of(pid, "maps");
  FACT("its mapping", has_mapping(map, "r--p"));
  FACT("its program", strstr(text, "proc_others") != NULL);
  FACT("its stack", strstr(text, "[stack]") != NULL);
  read_of(pid, "smaps_rollup");
  FACT("sizes", field_of("Rss:") > 0);
  FACT("auxiliary vector", read_of(pid, "auxv") > 100);
  FACT("environment", memmem(text, (size_t)read_of(pid, "environ"), "PATH=", 5) != NULL);
  read_of(pid, "stat");
  int parent = 0, group = 0, session = 0;
  sscanf(strrchr(text, ')'), ") %*c %d %d %d", &parent, &group, &session);
  FACT("parent, group and session", parent == getpid() && group == getpgrp() && session == getsid(0));
  read_of(pid, "status");
  FACT("size", field_of("VmSize:") >= 3 * 1024);
  FACT("resident", field_of("VmRSS:") > 0 && field_of("VmRSS:") <= field_of("VmSize:"));
  FACT("peaks", field_of("VmHWM:") >= field_of("VmRSS:") && field_of("VmPeak:") >= field_of("VmSize:"));
  long size = 0, resident = 0;
  read_of(pid, "statm");
  sscanf(text, "%ld %ld", &size, &resident);
  FACT("pages", size >= 3 * 256 && resident > 0 && resident <= size);
}

static void states(void) {
  char* own = mmap(NULL, 3 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int ends[2];
  MUST(pipe(ends));
  const pid_t child = MUST(fork());
  if (child == 0) {
    char byte;
    mprotect(own + (1 << 20), 4096, PROT_READ);
    (void)*(volatile char*)(own + (1 << 20));
    close(ends[1]);
    while (read(ends[0], &byte, 1) == 1) {
      for (int i = 0; i < 3; ++i) usleep(1000);
    }
    volatile int turns = 0;
    while (1) ++turns;
  }
  close(ends[0]);
  wait_for_state(child, 'S');
  look("reads a pipe", child, own + (1 << 20));
  MUST(kill(child, SIGSTOP));
  wait_for_state(child, 'T');
  look("is stopped", child, own + (1 << 20));
  MUST(kill(child, SIGCONT));
  close(ends[1]);
  wait_for_state(child, 'R');
  look("computes", child, own + (1 << 20));
  MUST(kill(child, SIGKILL));
  wait_for_state(child, 'Z');
  FACT("maps of one that has ended", read_of(child, "maps"));
  FACT("its command line", read_of(child, "cmdline"));
  read_of(child, "status");
  FACT("its memory", strstr(text, "VmSize:") != NULL);
  FACT("its name", strncmp(text, "Name:\tproc_others\n", 18) == 0);
  MUST(waitpid(child, NULL, 0));
  FACT("gone", read_of(child, "maps") == -ENOENT);
}

// An answer must not disturb what a process waits for.
static void waits(void) {
  int ends[2];
  MUST(pipe(ends));
  const pid_t child = MUST(fork());
  if (child == 0) {
    struct timespec rest = {0, 200 * 1000 * 1000};
    const int slept = nanosleep(&rest, NULL);
    char byte;
    const long got = read(ends[0], &byte, 1);
    _exit(slept == 0 && got == 1 ? 0 : 1);
  }
  int read_well = 1;
  for (int i = 0; i < 200; ++i) {
    read_well &= read_of(child, "maps") > 0;
    usleep(2000);
  }
  FACT("each time", read_well);
  MUST(write(ends[1], "x", 1));
  int status;
  MUST(waitpid(child, &status, 0));
  FACT("as if nobody had looked", status);
}

static void program(void) {
  static char longer[6000];
  memset(longer, 'l', sizeof longer - 1);
  int ends[2];
  MUST(pipe(ends));
  MUST(mkdir("place", 0755));
  const pid_t child = MUST(fork());
  if (child == 0) {
    MUST(chdir("place"));
    MUST(dup2(ends[1], 7));
    MUST(dup2(MUST(open("/dev/null", O_RDONLY)), 8));
    char* arguments[] = {"name", "child", "with space", longer, NULL};
    char* environment[] = {"ONE=1", "TWO=two words", longer, NULL};
    execve("/proc/self/exe", arguments, environment);
    _exit(1);
  }
  close(ends[1]);
  char byte;
  MUST(read(ends[0], &byte, 1) == 1 ? 0 : -1);
  FACT("command line", read_of(child, "cmdline"));
  printf("%s %s %s %zu\n", text, text + 5, text + 11, strlen(text + 22));
  FACT("environment", read_of(child, "environ"));
  printf("%s %s %zu\n", text, text + 6, strlen(text + 20));
  FACT("name", read_of(child, "comm") > 0);
  printf("%s", text);
  char path[64], target[4096];
  long size;
  sprintf(path, "/proc/%d/fd/8", child);
  size = MUST(readlink(path, target, sizeof target));
  printf("descriptor: %.*s\n", (int)size, target);
  sprintf(path, "/proc/%d/cwd", child);
  size = MUST(readlink(path, target, sizeof target));
  FACT("working folder", size > 6 && memcmp(target + size - 6, "/place", 6) == 0);
  sprintf(path, "/proc/%d/exe", child);
  size = MUST(readlink(path, target, sizeof target));
  FACT("program", size > 12 && memcmp(target + size - 12, "/proc_others", 12) == 0);
  sprintf(path, "/proc/%d/fd", child);
  DIR* folder = opendir(path);
  int count = 0;
  for (const struct dirent* entry; (entry = readdir(folder)) != NULL;) count += entry->d_name[0] != '.';
  FACT("descriptors", count >= 5);
  closedir(folder);
  sprintf(path, "/proc/%d/task", child);
  folder = opendir(path);
  count = 0;
  for (const struct dirent* entry; (entry = readdir(folder)) != NULL;) count += entry->d_name[0] != '.';
  FACT("threads", count);
  closedir(folder);
  read_of(child, "status");
  FACT("threads", field_of("Threads:"));
  MUST(kill(child, SIGTERM));
  MUST(waitpid(child, NULL, 0));
}

static void* sleeps(void* argument) {
  (void)argument;
  pause();
  return NULL;
}

// Two processes that ask each other all the time.
static void both_ways(void) {
  const pid_t first = getpid();
  const pid_t child = MUST(fork());
  const pid_t other = child == 0 ? first : child;
  int good = 0;
  for (int i = 0; i < 300; ++i) good += read_of(other, "maps") > 0;
  if (child == 0) _exit(good == 300 ? 0 : 1);
  int status;
  MUST(waitpid(child, &status, 0));
  // The child may be a zombie at the end, with no maps.
  FACT("both ways", good > 0 && status == 0);
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "child") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, sleeps, NULL);
    MUST(write(7, "x", 1));
    pause();
    return 0;
  }
  states();
  waits();
  program();
  both_ways();
}
