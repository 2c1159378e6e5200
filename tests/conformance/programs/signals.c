// Signals: handlers, masks, queues, stacks, timers, the faults of the processor, stop and continue.
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static volatile sig_atomic_t count, last_code, last_value;
static void* volatile address;
static sigjmp_buf back;

static void note(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  ++count;
  last_code = info->si_code;
  last_value = info->si_value.sival_int;
  address = info->si_addr;
}

static void leave(int number, siginfo_t* info, void* context) {
  note(number, info, context);
  siglongjmp(back, number);
}

static void handle(int number, void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action = {.sa_flags = SA_SIGINFO | flags};
  action.sa_sigaction = handler;
  MUST(sigaction(number, &action, NULL));
}

static void queues(void) {
  handle(SIGUSR1, note, 0);
  handle(SIGRTMIN, note, 0);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGRTMIN);
  sigprocmask(SIG_BLOCK, &set, NULL);
  for (int i = 0; i < 3; ++i) {
    raise(SIGUSR1);
    MUST(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i}));
  }
  FACT("blocked", count);
  sigset_t pending;
  sigpending(&pending);
  FACT("pending", sigismember(&pending, SIGUSR1));
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  FACT("standard once, real-time three times", count);
  sigprocmask(SIG_BLOCK, &set, NULL);
  sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 77});
  siginfo_t info;
  FACT("sigwaitinfo", sigwaitinfo(&set, &info) == SIGRTMIN);
  FACT("value", info.si_value.sival_int);
  FACT("code", info.si_code);
  const struct timespec none = {0, 1000000};
  CALL("sigtimedwait", sigtimedwait(&set, NULL, &none));
  CALL("signal 0", kill(getpid(), 0));
  CALL("no such signal", kill(getpid(), 99));
  CALL("handler for KILL", sigaction(SIGKILL, &(struct sigaction){.sa_handler = SIG_IGN}, NULL));
}

static void faults(void) {
  for (int number = 1; number < 32; ++number) {
    if (number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGTRAP)
      handle(number, leave, SA_ONSTACK);
  }
  const stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
  CALL("sigaltstack", sigaltstack(&stack, NULL));
  if (sigsetjmp(back, 1) == 0) *(volatile int*)8 = 1;
  FACT("fault", last_code == SEGV_MAPERR);
  FACT("address", (long)address);
  char* page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (sigsetjmp(back, 1) == 0) *(volatile char*)page = 1;
  FACT("protection", last_code == SEGV_ACCERR);
  FACT("its address", (char*)address == page);
  volatile int zero = 0;
  if (sigsetjmp(back, 1) == 0) zero = 1 / zero;
  FACT("division", last_code == FPE_INTDIV);
  if (sigsetjmp(back, 1) == 0) __asm__ volatile("ud2");
  FACT("bad instruction", last_code == ILL_ILLOPN);
  if (sigsetjmp(back, 1) == 0) __asm__ volatile("int3");
  FACT("breakpoint", last_code == SI_KERNEL);
}

static void timers(void) {
  handle(SIGALRM, note, 0);
  count = 0;
  const struct itimerval soon = {{0, 0}, {0, 20000}};
  MUST(setitimer(ITIMER_REAL, &soon, NULL));
  struct timespec left, nap = {5, 0};
  CALL("nanosleep", nanosleep(&nap, &left));
  FACT("early", left.tv_sec >= 4);
  FACT("handled", count);
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM, .sigev_value.sival_int = 9};
  CALL("timer_create", timer_create(CLOCK_MONOTONIC, &event, &timer));
  const struct itimerspec once = {{0, 0}, {0, 1000000}};
  MUST(timer_settime(timer, 0, &once, NULL));
  pause();
  FACT("timer's value", last_value);
  FACT("timer's code", last_code == SI_TIMER);
  handle(SIGVTALRM, note, 0);
  count = 0;
  const struct itimerval cpu = {{0, 0}, {0, 10000}};
  MUST(setitimer(ITIMER_VIRTUAL, &cpu, NULL));
  while (count == 0) {
  }
  FACT("processor time", count);
}

static void children(void) {
  const int child = MUST(fork());
  if (child == 0) {
    for (;;) pause();
  }
  int status;
  kill(child, SIGSTOP);
  MUST(waitpid(child, &status, WUNTRACED));
  FACT("stopped", WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
  kill(child, SIGCONT);
  MUST(waitpid(child, &status, WCONTINUED));
  FACT("continued", WIFCONTINUED(status));
  kill(child, SIGTERM);
  MUST(waitpid(child, &status, 0));
  FACT("ended by", WTERMSIG(status));
  FACT("no core", !WCOREDUMP(status));
  CALL("gone", kill(child, 0));
  const int group = MUST(fork());
  if (group == 0) {
    setpgid(0, 0);
    kill(0, SIGKILL);
    _exit(0);
  }
  MUST(waitpid(group, &status, 0));
  FACT("its own group", WTERMSIG(status));
  signal(SIGCHLD, SIG_IGN);
  if (fork() == 0) _exit(3);
  CALL("ignored children need no wait", wait(&status));
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  queues();
  faults();
  timers();
  children();
  return 0;
}
