// /proc of one's own process: what is there, what it says, links to files that are open.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "check.h"

static size_t contents(const char* path, char* text, size_t size) {
  const int fd = open(path, O_RDONLY);
  if (fd < 0) {
    text[0] = '\0';
    return 0;
  }
  size_t have = 0;
  ssize_t part;
  while ((part = read(fd, text + have, size - 1 - have)) > 0) have += (size_t)part;
  text[have] = '\0';
  close(fd);
  return have;
}

static char text[1 << 16];

static void fields(void) {
  MUST(prctl(PR_SET_NAME, "a (name) here"));
  contents("/proc/self/comm", text, sizeof text);
  printf("comm: %s", text);
  contents("/proc/self/stat", text, sizeof text);
  int pid = 0, parent = 0, group = 0, session = 0;
  char state = 0, name[32];
  sscanf(text, "%d (%31[^\n]", &pid, name);
  const char* after = strrchr(text, ')');
  sscanf(after, ") %c %d %d %d", &state, &parent, &group, &session);
  FACT("pid", pid == getpid());
  FACT("parent", parent == getppid());
  FACT("group", group == getpgrp());
  FACT("session", session == getsid(0));
  FACT("state", state);
  int spaces = 0;
  for (const char* at = after; *at != '\0'; ++at) spaces += *at == ' ';
  FACT("fields after the name", spaces);
  contents("/proc/self/status", text, sizeof text);
  static const char* const kNames[] = {"Name:",
                                       "Umask:",
                                       "State:",
                                       "Tgid:",
                                       "Pid:",
                                       "PPid:",
                                       "TracerPid:",
                                       "Uid:",
                                       "Gid:",
                                       "FDSize:",
                                       "Groups:",
                                       "VmSize:",
                                       "VmRSS:",
                                       "Threads:",
                                       "SigBlk:",
                                       "SigCgt:",
                                       "CapEff:",
                                       "NoNewPrivs:",
                                       "Cpus_allowed_list:"};
  for (size_t i = 0; i < sizeof kNames / sizeof kNames[0]; ++i) {
    if (strstr(text, kNames[i]) == NULL) printf("status lacks %s\n", kNames[i]);
  }
  int umask_told = -1, threads = 0;
  sscanf(strstr(text, "Umask:"), "Umask: %o", (unsigned*)&umask_told);
  sscanf(strstr(text, "Threads:"), "Threads: %d", &threads);
  FACT("umask", umask_told);
  FACT("threads", threads);
  const size_t size = contents("/proc/self/cmdline", text, sizeof text);
  FACT("cmdline ends with its name", size > 0 && strcmp(strrchr(text, '/') + 1, "proc_self") == 0);
  contents("/proc/self/environ", text, sizeof text);
  FACT("environ has PATH", memmem(text, sizeof text, "PATH=", 5) != NULL);
  contents("/proc/self/limits", text, sizeof text);
  FACT("limits", strstr(text, "Max open files") != NULL);
  contents("/proc/self/mounts", text, sizeof text);
  FACT("mounts", strstr(text, " / ") != NULL && strstr(text, " /proc ") != NULL);
  contents("/proc/self/mountinfo", text, sizeof text);
  FACT("mountinfo", strstr(text, " - ") != NULL);
}

static void maps(void) {
  char* map = mmap(NULL, 3 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(mprotect(map + 4096, 4096, PROT_READ | PROT_WRITE));
  const int fd = MUST(open("mapped file", O_CREAT | O_RDWR, 0644));
  MUST(ftruncate(fd, 8192));
  char* file = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 4096);
  FILE* list = fopen("/proc/self/maps", "r");
  char line[512], anonymous[64] = "", mapped[128] = "";
  int has_stack = 0, has_own = 0;
  while (fgets(line, sizeof line, list) != NULL) {
    unsigned long begin, end, offset;
    char rights[8], name[256] = "";
    sscanf(line, "%lx-%lx %7s %lx %*s %*s %255[^\n]", &begin, &end, rights, &offset, name);
    if ((char*)begin == map + 4096) sprintf(anonymous, "%ld bytes %s", (long)(end - begin), rights);
    if ((char*)begin == file) {
      sprintf(mapped, "%ld bytes %s from %ld, %.30s", (long)(end - begin), rights, (long)offset, strrchr(name, '/'));
    }
    has_stack |= strcmp(name, "[stack]") == 0;
    has_own |= strstr(name, "/proc_self") != NULL && rights[2] == 'x';
  }
  fclose(list);
  printf("anonymous: %s\nfile: %s\n", anonymous, mapped);
  FACT("stack", has_stack);
  FACT("own text", has_own);
}

static void links(void) {
  char target[512];
  ssize_t size = readlink("/proc/self", target, sizeof target - 1);
  target[size] = '\0';
  FACT("self", atoi(target) == getpid());
  size = readlink("/proc/self/exe", target, sizeof target - 1);
  target[size] = '\0';
  printf("exe: %s\n", strrchr(target, '/'));
  char here[512];
  getcwd(here, sizeof here);
  size = readlink("/proc/self/cwd", target, sizeof target - 1);
  target[size] = '\0';
  FACT("cwd", strcmp(here, target));
  FACT("root", readlink("/proc/self/root", target, sizeof target));
  const int fd = MUST(open("opened", O_CREAT | O_RDWR, 0644));
  char path[64];
  sprintf(path, "/proc/self/fd/%d", fd);
  size = readlink(path, target, sizeof target - 1);
  target[size] = '\0';
  printf("file: %s\n", strrchr(target, '/'));
  MUST(unlink("opened"));
  size = readlink(path, target, sizeof target - 1);
  target[size] = '\0';
  printf("removed: %s\n", strrchr(target, '/'));
  MUST(write(fd, "still", 5));
  const int again = MUST(open(path, O_RDONLY));
  FACT("opened anew", read(again, target, sizeof target));
  int ends[2];
  MUST(pipe(ends));
  sprintf(path, "/proc/self/fd/%d", ends[0]);
  size = readlink(path, target, sizeof target - 1);
  printf("pipe: %.6s\n", target);
  CALL("closed", readlink("/proc/self/fd/999", target, sizeof target));
  sprintf(path, "/proc/self/fdinfo/%d", fd);
  contents(path, text, sizeof text);
  FACT("position told", strstr(text, "pos:\t5\n") != NULL);
  struct stat status;
  MUST(stat("/dev/fd", &status));
  FACT("/dev/fd is a folder", S_ISDIR(status.st_mode));
}

static void* list_threads(void* count) {
  DIR* folder = opendir("/proc/self/task");
  while (readdir(folder) != NULL) ++*(int*)count;
  closedir(folder);
  return NULL;
}

static void folders(void) {
  int tasks = 0;
  pthread_t thread;
  pthread_create(&thread, NULL, list_threads, &tasks);
  pthread_join(thread, NULL);
  FACT("threads listed", tasks - 2);
  struct statfs space;
  MUST(statfs("/proc", &space));
  FACT("type", space.f_type);
  CALL("of nobody", open("/proc/31234/stat", O_RDONLY));
  CALL("missing", open("/proc/self/none", O_RDONLY));
  const int fd = MUST(open("/proc/self/stat", O_RDONLY));
  char byte;
  FACT("a byte", read(fd, &byte, 1));
  FACT("position", lseek(fd, 0, SEEK_CUR));
  MUST(fstat(fd, &(struct stat){0}));
  CALL("written", write(fd, "x", 1));
  CALL("seek to the end", lseek(fd, 0, SEEK_END) >= 0 || errno == EINVAL ? 0 : -1);
}

int main(void) {
  fields();
  maps();
  links();
  folders();
}
