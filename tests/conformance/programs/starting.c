// Starting programs: posix_spawn with its actions, vfork, execveat, fexecve, arguments and environment, pidfds.
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

extern char** environ;

static int status_of(int pid) {
  int status;
  MUST(waitpid(pid, &status, 0));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void spawns(void) {
  int pid, ends[2];
  MUST(pipe(ends));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 5, "made", O_CREAT | O_WRONLY, 0600);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  char* const argv[] = {"sh", "-c", "echo \"$0 $1 $VARIABLE\"; echo file >&5", "zero", "one", NULL};
  char* const environment[] = {"VARIABLE=value", "PATH=/usr/bin:/bin", NULL};
  FACT("spawn", posix_spawnp(&pid, "sh", &actions, NULL, argv, environment));
  FACT("status", status_of(pid));
  char text[64] = "";
  MUST(read(ends[0], text, sizeof text));
  printf("said: %s", text);
  FACT("file", access("made", F_OK));
  posix_spawn_file_actions_addopen(&actions, 6, "none/none", O_RDONLY, 0);
  FACT("a failing action", posix_spawnp(&pid, "sh", &actions, NULL, argv, environ) == ENOENT);
  FACT("a missing program", posix_spawn(&pid, "/none", NULL, NULL, argv, environ) == ENOENT);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  posix_spawnattr_setsigmask(&attributes, &set);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  char* const masked[] = {"sh", "-c", "kill -USR1 $$; exit 4", NULL};
  MUST(posix_spawnp(&pid, "sh", NULL, &attributes, masked, environ));
  FACT("a mask", status_of(pid));
}

static void vforks(void) {
  volatile int shared = 1;
  const int pid = vfork();
  if (pid == 0) {
    shared = 2;
    _exit(6);
  }
  FACT("vfork shares memory", shared);
  FACT("status", status_of(pid));
  const int failed = vfork();
  if (failed == 0) {
    execl("/none", "none", NULL);
    shared = errno;
    _exit(1);
  }
  FACT("why exec failed", shared == ENOENT);
  status_of(failed);
}

static void files(void) {
  const int fd = MUST(open("/bin/sh", O_RDONLY | O_CLOEXEC));
  int pid = MUST(fork());
  if (pid == 0) {
    char* const argv[] = {"sh", "-c", "exit 12", NULL};
    fexecve(fd, argv, environ);
    _exit(1);
  }
  FACT("fexecve", status_of(pid));
  const int folder = MUST(open("/bin", O_RDONLY | O_DIRECTORY));
  pid = MUST(fork());
  if (pid == 0) {
    char* const argv[] = {"sh", "-c", "exit 13", NULL};
    syscall(SYS_execveat, folder, "sh", argv, environ, 0);
    _exit(1);
  }
  FACT("execveat", status_of(pid));
  const int script = MUST(open("script", O_CREAT | O_WRONLY, 0755));
  dprintf(script, "#!/bin/sh -e\nfalse\nexit 14\n");
  close(script);
  pid = MUST(fork());
  if (pid == 0) {
    execl("./script", "other name", NULL);
    _exit(2);
  }
  FACT("a script with an argument", status_of(pid));
  const int nested = MUST(open("nested", O_CREAT | O_WRONLY, 0755));
  dprintf(nested, "#!./script\n");
  close(nested);
  pid = MUST(fork());
  if (pid == 0) {
    execl("./nested", "nested", NULL);
    _exit(2);
  }
  FACT("a script's script", status_of(pid));
  const int missing = MUST(open("missing", O_CREAT | O_WRONLY, 0755));
  dprintf(missing, "#!/none/there\n");
  close(missing);
  CALL("a missing interpreter", execl("./missing", "x", NULL));
  char* const none[] = {NULL};
  pid = MUST(fork());
  if (pid == 0) {
    execve("/bin/true", none, environ);
    _exit(3);
  }
  FACT("no arguments at all", status_of(pid));
  CALL("bad addresses", execve("/bin/true", (char**)8, environ));
  CALL("empty path", execve("", none, environ));
}

// ETXTBSY: what is being written is not executed, and what runs is not written to.
static void busy(void) {
  FACT("copy", system("cp /bin/sleep busy && chmod 755 busy"));
  const int writer = MUST(open("busy", O_RDWR));
  CALL("open for writing", execl("./busy", "busy", "0", NULL));
  close(writer);
  int ends[2];
  MUST(pipe2(ends, O_CLOEXEC));
  const int pid = MUST(fork());
  if (pid == 0) {
    execl("./busy", "busy", "60", NULL);
    _exit(1);
  }
  close(ends[1]);
  char byte;
  FACT("it was executed", read(ends[0], &byte, 1));
  CALL("write to it", open("busy", O_WRONLY));
  CALL("cut it", open("busy", O_WRONLY | O_TRUNC));
  CALL("read it", open("busy", O_RDONLY));
  MUST(rename("busy", "busy too"));
  CALL("by another name", open("busy too", O_RDWR));
  MUST(kill(pid, SIGKILL));
  FACT("end", status_of(pid));
  CALL("write afterwards", open("busy too", O_WRONLY));
}

static void pidfds(void) {
  const int pid = MUST(fork());
  if (pid == 0) {
    pause();
    _exit(0);
  }
  const int fd = MUST(pidfd_open(pid, 0));
  FACT("close-on-exec", fcntl(fd, F_GETFD));
  struct pollfd p = {fd, POLLIN, 0};
  FACT("runs", poll(&p, 1, 0));
  CALL("signal 0", pidfd_send_signal(fd, 0, NULL, 0));
  CALL("signal", pidfd_send_signal(fd, SIGTERM, NULL, 0));
  FACT("ended", poll(&p, 1, 2000));
  siginfo_t info;
  CALL("waitid", waitid(P_PIDFD, (id_t)fd, &info, WEXITED));
  FACT("status", info.si_status);
  CALL("signal to what is gone", pidfd_send_signal(fd, SIGTERM, NULL, 0));
  CALL("nobody", pidfd_open(31234, 0));
  CALL("odd flags", pidfd_open(getpid(), 77));
  CALL("read", read(fd, &info, 1));
  CALL("not a pidfd", pidfd_send_signal(0, SIGTERM, NULL, 0));
}

int main(void) {
  spawns();
  vforks();
  files();
  busy();
  pidfds();
}
