// Processes: fork, vfork, exec in its forms, wait, groups and sessions, exit statuses, descriptors across exec, pidfds.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

extern char** environ;

static int status_of(int pid) {
  int status;
  MUST(waitpid(pid, &status, 0));
  return status;
}

static int run(char* const argv[]) {
  const int pid = MUST(fork());
  if (pid == 0) {
    execvp(argv[0], argv);
    _exit(errno);
  }
  return status_of(pid);
}

static void exits(void) {
  for (int code = 0; code < 4; ++code) {
    const int pid = MUST(fork());
    if (pid == 0) _exit(code * 100);
    FACT("exit", WEXITSTATUS(status_of(pid)));
  }
  FACT("exec missing", WEXITSTATUS(run((char*[]){"/no/such", NULL})));
  FACT("exec folder", WEXITSTATUS(run((char*[]){"/usr", NULL})));
  FACT("exec not executable", WEXITSTATUS(run((char*[]){"/etc/passwd", NULL})));
  const int fd = MUST(open("script", O_CREAT | O_WRONLY | O_TRUNC, 0755));
  dprintf(fd, "#!/bin/sh\nexit $#\n");
  close(fd);
  FACT("script", WEXITSTATUS(run((char*[]){"./script", "a", "b", NULL})));
  const int text = MUST(open("text", O_CREAT | O_WRONLY | O_TRUNC, 0755));
  dprintf(text, "no format\n");
  close(text);
  const int pid = MUST(fork());
  if (pid == 0) {
    execve("./text", (char*[]){"text", NULL}, environ);
    _exit(errno);
  }
  FACT("unknown format", WEXITSTATUS(status_of(pid)));
  const int busy = MUST(open("script", O_WRONLY));
  const int writer = MUST(fork());
  if (writer == 0) {
    execve("./script", (char*[]){"script", NULL}, environ);
    _exit(errno);
  }
  FACT("being written", WEXITSTATUS(status_of(writer)));
  close(busy);
  char* big = malloc(200000);
  memset(big, 'x', 199999);
  big[199999] = 0;
  const int large = MUST(fork());
  if (large == 0) {
    execve("/bin/true", (char*[]){"true", big, NULL}, environ);
    _exit(errno);
  }
  FACT("too long an argument", WEXITSTATUS(status_of(large)));
}

static void spawns(void) {
  int pid;
  FACT("posix_spawn", posix_spawnp(&pid, "sh", NULL, NULL, (char*[]){"sh", "-c", "exit 7", NULL}, environ));
  FACT("status", WEXITSTATUS(status_of(pid)));
  FACT("posix_spawn of missing", posix_spawnp(&pid, "/no/such", NULL, NULL, (char*[]){"x", NULL}, environ));
  volatile int seen = 0;
  const int child = vfork();
  if (child == 0) {
    seen = 1;
    _exit(0);
  }
  status_of(child);
  FACT("vfork shares memory", seen);
  FILE* pipe = popen("echo popen", "r");
  char line[16] = {0};
  (void)!fgets(line, sizeof line, pipe);
  printf("popen: %s", line);
  FACT("pclose", pclose(pipe));
  FACT("system", WEXITSTATUS(system("exit 9")));
}

static void descriptors(void) {
  const int kept = MUST(open("script", O_RDONLY));
  const int closed = MUST(open("script", O_RDONLY | O_CLOEXEC));
  char code[96];
  snprintf(code, sizeof code, "test -e /proc/self/fd/%d && echo kept; test -e /proc/self/fd/%d || echo closed", kept,
           closed);
  fflush(stdout);
  run((char*[]){"sh", "-c", code, NULL});
  CALL("dup2 onto itself", dup2(kept, kept));
  CALL("dup3 onto itself", dup3(kept, kept, 0));
  CALL("dup of closed", dup(900));
  CALL("close_range", close_range(500, 600, 0));
}

static void groups(void) {
  const int leader = MUST(fork());
  if (leader == 0) {
    if (setsid() != getpid()) _exit(1);
    if (getsid(0) != getpid() || getpgrp() != getpid()) _exit(2);
    if (setsid() != -1 || errno != EPERM) _exit(3);
    _exit(0);
  }
  FACT("session", WEXITSTATUS(status_of(leader)));
  CALL("group of a stranger", setpgid(1, 1));
  int status;
  CALL("no children", waitpid(-1, &status, WNOHANG));
  CALL("not a child", waitpid(getppid(), &status, 0));
  const int first = MUST(fork());
  if (first == 0) {
    if (fork() == 0) {
      usleep(50000);
      _exit(0);
    }
    _exit(5);
  }
  FACT("orphan does not bother", WEXITSTATUS(status_of(first)));
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const int parent = MUST(fork());
  if (parent == 0) {
    if (fork() == 0) {
      usleep(50000);
      _exit(6);
    }
    _exit(0);
  }
  status_of(parent);
  MUST(wait(&status));
  FACT("subreaper gets it", WEXITSTATUS(status));
}

static void pidfds(void) {
  const int child = MUST(fork());
  if (child == 0) {
    pause();
    _exit(0);
  }
  const int fd = MUST(pidfd_open(child, 0));
  struct pollfd p = {fd, POLLIN, 0};
  FACT("running", poll(&p, 1, 0));
  CALL("signal", pidfd_send_signal(fd, SIGTERM, NULL, 0));
  FACT("ended", poll(&p, 1, 5000));
  siginfo_t info = {0};
  CALL("waitid", waitid(P_PIDFD, (id_t)fd, &info, WEXITED));
  FACT("code", info.si_code == CLD_KILLED);
  FACT("signal", info.si_status);
  CALL("of nobody", pidfd_open(child, 0));
}

static void chain(void) {
  int depth = 0;
  fflush(stdout);
  for (; depth < 30; ++depth) {
    const int pid = fork();
    if (pid < 0) break;
    if (pid > 0) {
      const int status = status_of(pid);
      if (depth > 0) _exit(WEXITSTATUS(status));
      FACT("deepest", WEXITSTATUS(status));
      return;
    }
  }
  _exit(depth);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  exits();
  spawns();
  descriptors();
  groups();
  pidfds();
  chain();
  return 0;
}
