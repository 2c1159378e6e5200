// Threads: creation and end in all forms, cancellation, local storage, stacks, exec and fork with several of them.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static __thread int local = 5;
static pthread_key_t key;
static int destroyed;

static void destroy(void* value) {
  destroyed += *(int*)value;
}

static void* plain(void* argument) {
  ++local;
  pthread_setspecific(key, argument);
  return argument;
}

static void* leaves(void* argument) {
  (void)argument;
  pthread_exit((void*)77L);
}

static int cleaned;
static void clean(void* argument) {
  cleaned = *(int*)argument;
}

static void* waits(void* argument) {
  pthread_cleanup_push(clean, argument);
  while (1) pause();
  pthread_cleanup_pop(0);
  return NULL;
}

static void* busy(void* argument) {
  (void)argument;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  while (1) continue;
  return NULL;
}

static void ends(void) {
  pthread_t thread;
  void* result;
  int value = 3;
  pthread_key_create(&key, destroy);
  pthread_create(&thread, NULL, plain, &value);
  FACT("join", pthread_join(thread, &result));
  FACT("result", result == &value);
  FACT("thread-local", local);
  FACT("destroyed", destroyed);
  pthread_create(&thread, NULL, leaves, NULL);
  pthread_join(thread, &result);
  FACT("pthread_exit", (long)result);
  pthread_create(&thread, NULL, waits, &value);
  usleep(20000);
  FACT("cancel", pthread_cancel(thread));
  pthread_join(thread, &result);
  FACT("cancelled", result == PTHREAD_CANCELED);
  FACT("cleaned", cleaned);
  pthread_create(&thread, NULL, busy, NULL);
  usleep(20000);
  pthread_cancel(thread);
  FACT("cancelled at work", pthread_join(thread, NULL));
  FACT("join oneself", pthread_join(pthread_self(), NULL) == EDEADLK);
  int count = 0;
  for (int i = 0; i < 100; ++i) {
    if (pthread_create(&thread, NULL, plain, &value) != 0) break;
    pthread_join(thread, NULL);
    ++count;
  }
  FACT("one after the other", count);
}

static int depth(int n) {
  volatile char block[1024];
  block[0] = (char)n;
  return n == 0 ? 0 : 1 + depth(n - 1) + (block[0] - (char)n);
}

static void* deep(void* argument) {
  *(int*)argument = depth(200);
  return NULL;
}

static void stacks(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 << 10);
  pthread_t thread;
  int reached = 0;
  pthread_create(&thread, &attributes, deep, &reached);
  pthread_join(thread, NULL);
  FACT("a small stack", reached);
  size_t size = 0;
  pthread_attr_t own;
  pthread_getattr_np(pthread_self(), &own);
  pthread_attr_getstacksize(&own, &size);
  FACT("the first thread's stack", size > (64 << 10));
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  FACT("detached", pthread_create(&thread, &attributes, deep, &reached));
  usleep(50000);
  char name[16];
  pthread_setname_np(pthread_self(), "first");
  pthread_getname_np(pthread_self(), name, sizeof name);
  printf("name: %s\n", name);
}

static int status_of(int pid) {
  int status;
  MUST(waitpid(pid, &status, 0));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void* exec_now(void* argument) {
  (void)argument;
  execl("/bin/sh", "sh", "-c", "[ $(ls /proc/$$/task | wc -l) = 1 ] && exit 21", NULL);
  return NULL;
}

static void* exit_now(void* argument) {
  (void)argument;
  exit(22);
}

static void* end_alone(void* argument) {
  usleep(30000);
  _exit(*(int*)argument);
}

static void* forks(void* argument) {
  const int pid = fork();
  if (pid == 0) _exit(syscall(SYS_gettid) == getpid() ? 24 : 1);
  *(int*)argument = status_of(pid);
  return NULL;
}

static void* sends(void* argument) {
  (void)argument;
  raise(SIGUSR1);
  return NULL;
}

static void processes(void) {
  pthread_t thread;
  int value = 23;
  int pid = MUST(fork());
  if (pid == 0) {
    pthread_create(&thread, NULL, waits, &value);
    pthread_create(&thread, NULL, exec_now, NULL);
    while (1) pause();
  }
  FACT("exec in a thread", status_of(pid));
  pid = MUST(fork());
  if (pid == 0) {
    pthread_create(&thread, NULL, exit_now, NULL);
    while (1) pause();
  }
  FACT("exit in a thread", status_of(pid));
  pid = MUST(fork());
  if (pid == 0) {
    pthread_create(&thread, NULL, end_alone, &value);
    pthread_exit(NULL);
  }
  FACT("the first thread leaves", status_of(pid));
  pthread_create(&thread, NULL, forks, &value);
  pthread_join(thread, NULL);
  FACT("fork in a thread", value);
  pid = MUST(fork());
  if (pid == 0) {
    pthread_create(&thread, NULL, sends, NULL);
    pthread_join(thread, NULL);
    _exit(0);
  }
  FACT("a signal in a thread ends all", -status_of(pid));
}

int main(void) {
  ends();
  stacks();
  processes();
}
