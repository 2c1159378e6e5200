// Of musl: threads, a pipe, a child, a handler on a stack of its own, and the end by a signal.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf back;
static char stack[65536];

static void on_fault(int signal, siginfo_t* info, void* context) {
  (void)context;
  char here;
  printf("signal %d code %d at %p on its stack %d\n", signal, info->si_code, info->si_addr,
         &here >= stack && &here < stack + sizeof stack);
  siglongjmp(back, 1);
}

static void* run(void* argument) {
  return (void*)((long)argument * 2);
}

int main(int argc, char** argv) {
  pthread_t threads[8];
  long sum = 0;
  for (long i = 0; i < 8; ++i) pthread_create(&threads[i], NULL, run, (void*)i);
  for (int i = 0; i < 8; ++i) {
    void* result;
    pthread_join(threads[i], &result);
    sum += (long)result;
  }
  printf("sum %ld of %d %s\n", sum, argc, argv[1]);
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
  sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK}, NULL);
  if (sigsetjmp(back, 1) == 0) *(volatile int*)16 = 1;
  FILE* lines = popen("seq 3 | tac", "r");
  char line[80];
  while (fgets(line, sizeof line, lines)) printf("line %s", line);
  printf("closed %d\n", pclose(lines));
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) abort();
  int status;
  waitpid(child, &status, 0);
  printf("child %s\n", strsignal(WTERMSIG(status)));
  fflush(stdout);
  signal(SIGSEGV, SIG_DFL);
  return *(volatile int*)16;
}
