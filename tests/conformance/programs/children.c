// Children: statuses in all forms, orders of waiting, orphans, waitid without taking, SIGCHLD.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void show(const char* what, int status) {
  if (WIFEXITED(status)) {
    printf("%s: exited %d\n", what, WEXITSTATUS(status));
  } else if (WIFSIGNALED(status)) {
    printf("%s: killed by %s\n", what, sigabbrev_np(WTERMSIG(status)));
  } else if (WIFSTOPPED(status)) {
    printf("%s: stopped by %s\n", what, sigabbrev_np(WSTOPSIG(status)));
  } else {
    printf("%s: %s\n", what, WIFCONTINUED(status) ? "continued" : "odd");
  }
}

static void statuses(void) {
  static const int kSignals[] = {SIGTERM, SIGKILL, SIGSEGV, SIGUSR1, SIGPIPE, SIGALRM};
  int status;
  for (size_t i = 0; i < sizeof kSignals / sizeof kSignals[0]; ++i) {
    const int pid = MUST(fork());
    if (pid == 0) {
      raise(kSignals[i]);
      _exit(0);
    }
    MUST(waitpid(pid, &status, 0));
    show("raised", status);
  }
  const int pid = MUST(fork());
  if (pid == 0) pause();
  MUST(kill(pid, SIGSTOP));
  MUST(waitpid(pid, &status, WUNTRACED));
  show("stop", status);
  FACT("nothing new", waitpid(pid, &status, WUNTRACED | WNOHANG));
  MUST(kill(pid, SIGCONT));
  MUST(waitpid(pid, &status, WCONTINUED));
  show("go on", status);
  MUST(kill(pid, SIGSTOP));
  MUST(kill(pid, SIGKILL));
  MUST(waitpid(pid, &status, 0));
  show("killed while stopped", status);
  CALL("none left", wait(&status));
  CALL("not a child", waitpid(1, &status, 0));
  CALL("odd options", waitpid(-1, &status, 0x100));
}

static void choices(void) {
  int pids[3], status;
  for (int i = 0; i < 3; ++i) {
    pids[i] = MUST(fork());
    if (pids[i] == 0) _exit(10 + i);
  }
  FACT("the second first", waitpid(pids[1], &status, 0) == pids[1]);
  show("it", status);
  siginfo_t info = {0};
  FACT("waitid leaving it", waitid(P_PID, (id_t)pids[2], &info, WEXITED | WNOWAIT));
  printf("info: signal %d code %d status %d %s\n", info.si_signo, info.si_code, info.si_status,
         info.si_pid == pids[2] ? "the third" : "another");
  FACT("waitid taking it", waitid(P_PID, (id_t)pids[2], &info, WEXITED));
  CALL("it is gone", waitid(P_PID, (id_t)pids[2], &info, WEXITED));
  CALL("no event named", waitid(P_ALL, 0, &info, WNOHANG));
  FACT("the first", wait(&status) == pids[0]);
  const int pid = MUST(fork());
  if (pid == 0) {
    usleep(30000);
    _exit(0);
  }
  FACT("not yet", waitpid(-1, &status, WNOHANG));
  memset(&info, 0xff, sizeof info);
  FACT("waitid, not yet", waitid(P_ALL, 0, &info, WEXITED | WNOHANG));
  FACT("no pid told", info.si_pid);
  struct rusage use;
  FACT("wait4", wait4(pid, &status, 0, &use) == pid);
}

static volatile sig_atomic_t children_seen;
static void on_child(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)context;
  if (info->si_code == CLD_EXITED || info->si_code == CLD_KILLED) ++children_seen;
}

static void notices(void) {
  struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART};
  MUST(sigaction(SIGCHLD, &action, NULL));
  int status;
  const int pid = MUST(fork());
  if (pid == 0) _exit(3);
  MUST(waitpid(pid, &status, 0));
  FACT("SIGCHLD", children_seen);
  action.sa_handler = SIG_IGN;
  action.sa_flags = 0;
  MUST(sigaction(SIGCHLD, &action, NULL));
  if (MUST(fork()) == 0) _exit(4);
  CALL("ignored: no zombie", wait(&status));
  action.sa_handler = SIG_DFL;
  action.sa_flags = SA_NOCLDWAIT;
  MUST(sigaction(SIGCHLD, &action, NULL));
  if (MUST(fork()) == 0) _exit(5);
  CALL("SA_NOCLDWAIT", wait(&status));
  action.sa_flags = 0;
  MUST(sigaction(SIGCHLD, &action, NULL));
}

static void orphans(void) {
  int ends[2], status;
  MUST(pipe(ends));
  MUST(prctl(PR_SET_CHILD_SUBREAPER, 1));
  const int pid = MUST(fork());
  if (pid == 0) {
    if (MUST(fork()) == 0) {
      while (getppid() == 0) usleep(100);
      usleep(20000);
      MUST(write(ends[1], "o", 1));
      _exit(9);
    }
    _exit(0);
  }
  MUST(waitpid(pid, &status, 0));
  char byte;
  MUST(read(ends[0], &byte, 1));
  FACT("a subreaper gets the orphan", wait(&status) > 0);
  show("it", status);
  const int parent = MUST(fork());
  if (parent == 0) {
    const int child = MUST(fork());
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGUSR2);
      MUST(write(ends[1], "r", 1));
      pause();
    }
    MUST(read(ends[0], &byte, 1));
    _exit(0);
  }
  MUST(waitpid(parent, &status, 0));
  MUST(wait(&status));
  show("told of its parent's death", status);
}

int main(void) {
  statuses();
  choices();
  notices();
  orphans();
}
