// Process groups and sessions: who may join what, signals to groups, orphaned groups.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int ready[2];

static void tell(void) {
  MUST(write(ready[1], "x", 1));
}

static void await(void) {
  char byte;
  MUST(read(ready[0], &byte, 1));
}

static int child_that_waits(void) {
  const int pid = MUST(fork());
  if (pid == 0) {
    tell();
    pause();
    _exit(0);
  }
  await();
  return pid;
}

static int signal_of(int pid) {
  int status;
  MUST(waitpid(pid, &status, 0));
  return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void joining(void) {
  FACT("a session leader", getsid(0) == getpid());
  CALL("a leader can't begin another", setsid());
  CALL("nor change its group", setpgid(0, 0));
  const int one = child_that_waits(), two = child_that_waits();
  FACT("a child is in the parent's group", getpgid(one) == getpgrp());
  CALL("a group of its own", setpgid(one, one));
  FACT("is its own", getpgid(one) == one);
  CALL("another joins", setpgid(two, one));
  FACT("joined", getpgid(two) == one);
  CALL("a group that is not", setpgid(two, 999999 % 32768 + 20000));
  CALL("negative", setpgid(two, -1));
  CALL("of a stranger", setpgid(1, 0));
  CALL("of nobody", getpgid(31234));
  CALL("session of nobody", getsid(31234));
  FACT("kill the group", kill(-one, SIGUSR1));
  FACT("first", signal_of(one));
  FACT("second", signal_of(two));
  CALL("an empty group", kill(-one, SIGUSR1));
}

static void sessions(void) {
  const int pid = MUST(fork());
  if (pid == 0) {
    const int session = setsid();
    const int is_new = session == getpid() && getpgrp() == getpid() && getsid(0) == getpid();
    const int inside = MUST(fork());
    if (inside == 0) _exit(getsid(0) == session ? 0 : 1);
    int status;
    waitpid(inside, &status, 0);
    _exit(is_new * 10 + WEXITSTATUS(status));
  }
  FACT("a new session", -signal_of(pid));
  const int other = MUST(fork());
  if (other == 0) {
    setsid();
    tell();
    pause();
  }
  await();
  CALL("into another session", setpgid(other, getpgrp()));
  MUST(kill(other, SIGKILL));
  signal_of(other);
}

static void after_exec(void) {
  int ends[2];
  MUST(pipe(ends));
  const int pid = MUST(fork());
  if (pid == 0) {
    dup2(ends[1], 1);
    execl("/bin/sh", "sh", "-c", "echo; sleep 10", NULL);
    _exit(1);
  }
  char byte;
  MUST(read(ends[0], &byte, 1));
  CALL("after its exec", setpgid(pid, pid));
  MUST(kill(pid, SIGKILL));
  signal_of(pid);
}

static void signals(void) {
  CALL("signal 0 to oneself", kill(getpid(), 0));
  CALL("to nobody", kill(31234, 0));
  CALL("odd signal", kill(getpid(), 65));
  CALL("negative signal", kill(getpid(), -1));
  const int pid = child_that_waits();
  CALL("signal 0 to a child", kill(pid, 0));
  MUST(kill(pid, SIGTERM));
  siginfo_t info;
  MUST(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
  CALL("to a zombie", kill(pid, SIGTERM));
  signal_of(pid);
  CALL("to what was taken", kill(pid, 0));
}

static void orphaned(void) {
  // A stopped process in a group that becomes orphaned gets SIGHUP and SIGCONT.
  int ends[2];
  MUST(pipe(ends));
  const int leader = MUST(fork());
  if (leader == 0) {
    setpgid(0, 0);
    const int stopped = MUST(fork());
    if (stopped == 0) {
      sigset_t set;
      sigemptyset(&set);
      sigaddset(&set, SIGHUP);
      sigprocmask(SIG_BLOCK, &set, NULL);
      raise(SIGSTOP);
      const int signal = sigwaitinfo(&set, NULL);
      MUST(write(ends[1], &signal, sizeof signal));
      _exit(0);
    }
    int status;
    waitpid(stopped, &status, WUNTRACED);
    _exit(0);
  }
  signal_of(leader);
  int signal = 0;
  MUST(read(ends[0], &signal, sizeof signal));
  FACT("orphaned and stopped", signal);
}

int main(void) {
  MUST(pipe(ready));
  const int pid = MUST(fork());
  if (pid == 0) {
    setsid();
    joining();
    sessions();
    after_exec();
    signals();
    orphaned();
    return 0;
  }
  int status;
  MUST(waitpid(pid, &status, 0));
  FACT("done", status);
}
