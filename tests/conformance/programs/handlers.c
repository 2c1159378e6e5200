// Handlers: flags of sigaction(2), masks while one runs, restarts, alternate stacks, jumps out, faults inside.
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "check.h"

static volatile sig_atomic_t count, depth, deepest, blocked_inside;

static void on_signal(int signal) {
  ++count;
  if (++depth > deepest) deepest = depth;
  sigset_t now;
  sigprocmask(SIG_BLOCK, NULL, &now);
  blocked_inside = sigismember(&now, signal);
  if (count < 3) raise(signal);
  --depth;
}

static void flags(void) {
  struct sigaction action = {.sa_handler = on_signal}, old;
  MUST(sigaction(SIGUSR1, &action, NULL));
  raise(SIGUSR1);
  printf("held back inside: %d calls, %d deep, blocked %d\n", (int)count, (int)deepest, (int)blocked_inside);
  count = deepest = 0;
  action.sa_flags = SA_NODEFER;
  MUST(sigaction(SIGUSR1, &action, NULL));
  raise(SIGUSR1);
  printf("SA_NODEFER: %d calls, %d deep, blocked %d\n", (int)count, (int)deepest, (int)blocked_inside);
  action.sa_flags = SA_RESETHAND;
  count = 3;
  MUST(sigaction(SIGUSR1, &action, NULL));
  raise(SIGUSR1);
  MUST(sigaction(SIGUSR1, NULL, &old));
  FACT("SA_RESETHAND", old.sa_handler == SIG_DFL);
  action.sa_flags = SA_RESTART | SA_NOCLDSTOP;
  sigaddset(&action.sa_mask, SIGUSR2);
  MUST(sigaction(SIGUSR1, &action, NULL));
  MUST(sigaction(SIGUSR1, NULL, &old));
  FACT("flags told", old.sa_flags);
  FACT("mask told", sigismember(&old.sa_mask, SIGUSR2));
  CALL("SIGKILL", sigaction(SIGKILL, &action, NULL));
  CALL("SIGSTOP", sigaction(SIGSTOP, &action, NULL));
  CALL("look at SIGKILL", sigaction(SIGKILL, NULL, &old));
  CALL("odd signal", sigaction(65, &action, NULL));
}

static void note(int signal) {
  (void)signal;
  ++count;
}

static void alarm_in(int milliseconds) {
  const struct itimerval soon = {{0, 0}, {0, milliseconds * 1000}};
  MUST(setitimer(ITIMER_REAL, &soon, NULL));
}

static void restarts(void) {
  int ends[2];
  MUST(pipe(ends));
  char byte;
  struct sigaction action = {.sa_handler = note};
  MUST(sigaction(SIGALRM, &action, NULL));
  count = 0;
  alarm_in(20);
  CALL("read, no SA_RESTART", read(ends[0], &byte, 1));
  action.sa_flags = SA_RESTART;
  MUST(sigaction(SIGALRM, &action, NULL));
  if (MUST(fork()) == 0) {
    usleep(60000);
    MUST(write(ends[1], "x", 1));
    _exit(0);
  }
  alarm_in(20);
  CALL("read, SA_RESTART", read(ends[0], &byte, 1));
  wait(NULL);
  const int pid = MUST(fork());
  if (pid == 0) {
    usleep(60000);
    _exit(0);
  }
  alarm_in(20);
  int status;
  CALL("wait, SA_RESTART", waitpid(pid, &status, 0));
  alarm_in(20);
  CALL("pause", pause());
  alarm_in(20);
  CALL("usleep, SA_RESTART all the same", usleep(200000));
  FACT("handlers run", count);
}

static char* stack_seen;
static void on_stack(int signal) {
  (void)signal;
  stack_seen = __builtin_frame_address(0);
}

static void stacks(void) {
  const size_t size = 64 << 10;
  char* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const stack_t stack = {.ss_sp = memory, .ss_size = size};
  stack_t old;
  CALL("set", sigaltstack(&stack, NULL));
  struct sigaction action = {.sa_handler = on_stack, .sa_flags = SA_ONSTACK};
  MUST(sigaction(SIGUSR1, &action, NULL));
  raise(SIGUSR1);
  FACT("on it", stack_seen >= memory && stack_seen < memory + size);
  action.sa_flags = 0;
  MUST(sigaction(SIGUSR1, &action, NULL));
  raise(SIGUSR1);
  FACT("not on it", stack_seen >= memory && stack_seen < memory + size);
  MUST(sigaltstack(NULL, &old));
  FACT("told", old.ss_sp == memory && old.ss_size == size);
  FACT("flags", old.ss_flags);
  const stack_t small = {.ss_sp = memory, .ss_size = 100};
  CALL("too small", sigaltstack(&small, NULL));
  const stack_t odd = {.ss_sp = memory, .ss_size = size, .ss_flags = 77};
  CALL("odd flags", sigaltstack(&odd, NULL));
  const stack_t none = {.ss_flags = SS_DISABLE};
  CALL("off", sigaltstack(&none, NULL));
}

static sigjmp_buf back;
static void leave(int signal) {
  siglongjmp(back, signal);
}

static int overflow(volatile int n) {
  volatile char page[4096];
  page[0] = (char)n;
  return n == 0 ? page[0] : overflow(n + 1) + page[0];
}

static void overflows(void) {
  const size_t size = 64 << 10;
  const stack_t stack = {.ss_sp = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                         .ss_size = size};
  MUST(sigaltstack(&stack, NULL));
  const struct sigaction action = {.sa_handler = leave, .sa_flags = SA_ONSTACK};
  MUST(sigaction(SIGSEGV, &action, NULL));
  for (int i = 0; i < 2; ++i) {
    const int signal = sigsetjmp(back, 1);
    if (signal == 0) overflow(1);
    FACT("stack overflow", signal);
  }
  const int pid = MUST(fork());
  if (pid == 0) {
    const struct sigaction without = {.sa_handler = leave};
    sigaction(SIGSEGV, &without, NULL);
    overflow(1);
    _exit(0);
  }
  int status;
  MUST(waitpid(pid, &status, 0));
  FACT("without a stack for the handler", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static void change_registers(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)info;
  ucontext_t* where = context;
  where->uc_mcontext.gregs[REG_RAX] = 77;
  where->uc_mcontext.gregs[REG_RIP] += 2;  // past ud2
}

static void contexts(void) {
  const struct sigaction action = {.sa_sigaction = change_registers, .sa_flags = SA_SIGINFO};
  MUST(sigaction(SIGILL, &action, NULL));
  long value = 1;
  __asm__ volatile("ud2" : "+a"(value));
  FACT("registers changed", value);
  const double before = 1.0 / 3.0;
  volatile double kept = before;
  __asm__ volatile("ud2" : "+a"(value));
  FACT("floating point kept", kept == before);
}

int main(void) {
  flags();
  restarts();
  stacks();
  overflows();
  contexts();
}
