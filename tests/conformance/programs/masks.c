// Signals held back: masks, what is pending, queues of real-time signals, waiting for signals, masks across fork and
// exec.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static sigset_t set_of(int one, int two) {
  sigset_t set;
  sigemptyset(&set);
  if (one != 0) sigaddset(&set, one);
  if (two != 0) sigaddset(&set, two);
  return set;
}

static char order[64];
static void on_signal(int signal, siginfo_t* info, void* context) {
  (void)context;
  char part[16];
  sprintf(part, "%d/%d ", signal >= SIGRTMIN ? signal - SIGRTMIN : -signal, info->si_value.sival_int);
  strcat(order, part);
}

static void pending(void) {
  sigset_t both = set_of(SIGUSR1, SIGUSR2), now;
  MUST(sigprocmask(SIG_BLOCK, &both, NULL));
  raise(SIGUSR1);
  raise(SIGUSR1);
  MUST(sigpending(&now));
  FACT("pending", sigismember(&now, SIGUSR1));
  FACT("not pending", sigismember(&now, SIGUSR2));
  siginfo_t info;
  FACT("sigwaitinfo", sigwaitinfo(&both, &info));
  FACT("from oneself", info.si_pid == getpid());
  FACT("code", info.si_code);
  MUST(sigpending(&now));
  FACT("once only", sigismember(&now, SIGUSR1));
  const struct timespec none = {0, 0}, wrong = {0, 2000000000};
  CALL("none there", sigtimedwait(&both, &info, &none));
  CALL("wrong time", sigtimedwait(&both, &info, &wrong));
  int got = 0;
  raise(SIGUSR2);
  FACT("sigwait", sigwait(&both, &got));
  FACT("got", got);
  sigset_t kill_set = set_of(SIGKILL, SIGSTOP), old;
  CALL("SIGKILL in a mask", sigprocmask(SIG_BLOCK, &kill_set, NULL));
  MUST(sigprocmask(SIG_BLOCK, NULL, &old));
  FACT("is passed over", sigismember(&old, SIGKILL));
  CALL("odd how", sigprocmask(77, &both, NULL));
  raise(SIGUSR1);
  signal(SIGUSR1, SIG_IGN);
  MUST(sigpending(&now));
  FACT("ignoring drops it", sigismember(&now, SIGUSR1));
  signal(SIGUSR1, SIG_DFL);
}

static void queues(void) {
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
  sigset_t all;
  sigfillset(&all);
  for (int i = 0; i < 4; ++i) MUST(sigaction(SIGRTMIN + i, &action, NULL));
  MUST(sigaction(SIGUSR1, &action, NULL));
  MUST(sigprocmask(SIG_BLOCK, &all, NULL));
  action.sa_mask = all;
  for (int i = 0; i < 4; ++i) MUST(sigaction(SIGRTMIN + i, &action, NULL));
  for (int value = 1; value <= 3; ++value) {
    for (int i = 3; i >= 0; --i) MUST(sigqueue(getpid(), SIGRTMIN + i, (union sigval){.sival_int = value}));
  }
  MUST(sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 9}));
  siginfo_t info;
  sigset_t third = set_of(SIGRTMIN + 3, 0);
  FACT("sigwaitinfo takes the first", sigwaitinfo(&third, &info) - SIGRTMIN);
  FACT("value", info.si_value.sival_int);
  FACT("code", info.si_code);
  MUST(sigprocmask(SIG_UNBLOCK, &all, NULL));
  printf("order: %s\n", order);
  CALL("sigqueue of an odd one", sigqueue(getpid(), 99, (union sigval){.sival_int = 0}));
  CALL("sigqueue to nobody", sigqueue(31234, SIGUSR1, (union sigval){.sival_int = 0}));
}

static void suspending(void) {
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
  MUST(sigaction(SIGUSR2, &action, NULL));
  sigset_t blocked = set_of(SIGUSR2, 0), none = set_of(0, 0), now;
  MUST(sigprocmask(SIG_BLOCK, &blocked, NULL));
  order[0] = '\0';
  raise(SIGUSR2);
  CALL("sigsuspend", sigsuspend(&none));
  printf("handled: %s\n", order);
  MUST(sigprocmask(SIG_BLOCK, NULL, &now));
  FACT("the mask is back", sigismember(&now, SIGUSR2));
  MUST(sigprocmask(SIG_UNBLOCK, &blocked, NULL));
}

static void children(void) {
  sigset_t blocked = set_of(SIGUSR1, 0), now;
  MUST(sigprocmask(SIG_BLOCK, &blocked, NULL));
  raise(SIGUSR1);
  const int pid = MUST(fork());
  if (pid == 0) {
    sigpending(&now);
    const int pends = sigismember(&now, SIGUSR1);
    sigprocmask(SIG_BLOCK, NULL, &now);
    _exit(pends * 2 + sigismember(&now, SIGUSR1));
  }
  int status;
  MUST(waitpid(pid, &status, 0));
  FACT("a child has the mask, not what is pending", WEXITSTATUS(status));
  signal(SIGUSR2, SIG_IGN);
  fflush(stdout);
  if (MUST(fork()) == 0) {
    execl("/bin/sh", "sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status | sed 's/0*\\([0-9a-f]*\\)$/\\1/'", NULL);
    _exit(1);
  }
  wait(NULL);
}

static void* in_thread(void* mask) {
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, NULL, &now);
  *(int*)mask = sigismember(&now, SIGUSR1);
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, NULL);
  return NULL;
}

static void threads(void) {
  pthread_t thread;
  int inherited = -1;
  pthread_create(&thread, NULL, in_thread, &inherited);
  pthread_join(thread, NULL);
  FACT("a thread inherits the mask", inherited);
  sigset_t now;
  MUST(sigprocmask(SIG_BLOCK, NULL, &now));
  FACT("and changes its own", sigismember(&now, SIGUSR1));
}

int main(void) {
  signal(SIGINT, SIG_DFL);  // whoever started this may have ignored them
  signal(SIGQUIT, SIG_DFL);
  pending();
  queues();
  suspending();
  children();
  threads();
}
