// Threads: mutexes of every kind, robust and shared ones, conditions, barriers, semaphores, thread-local data, exits.
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn, total;
static _Thread_local int own = 5;

static void* count_up(void* unused) {
  (void)unused;
  for (int i = 0; i < 20000; ++i) {
    pthread_mutex_lock(&lock);
    ++total;
    pthread_mutex_unlock(&lock);
  }
  own += 1;
  return (void*)(long)own;
}

static void* take_turns(void* me) {
  for (int i = 0; i < 500; ++i) {
    pthread_mutex_lock(&lock);
    while (turn != (int)(long)me) pthread_cond_wait(&turned, &lock);
    turn = !turn;
    pthread_cond_broadcast(&turned);
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

static void* die_with_it(void* mutex) {
  pthread_mutex_lock(mutex);
  return NULL;
}

static void* wait_for_cancel(void* unused) {
  (void)unused;
  pause();
  return NULL;
}

static void basics(void) {
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i) MUST(-pthread_create(&threads[i], NULL, count_up, NULL));
  long sum = 0;
  for (int i = 0; i < 8; ++i) {
    void* result;
    pthread_join(threads[i], &result);
    sum += (long)result;
  }
  FACT("total", total);
  FACT("thread-local", sum);
  for (long i = 0; i < 2; ++i) MUST(-pthread_create(&threads[i], NULL, take_turns, (void*)i));
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  FACT("turns end where they began", turn);
  MUST(-pthread_create(&threads[0], NULL, wait_for_cancel, NULL));
  pthread_cancel(threads[0]);
  void* result;
  pthread_join(threads[0], &result);
  FACT("cancelled", result == PTHREAD_CANCELED);
  for (int i = 0; i < 500; ++i) {
    MUST(-pthread_create(&threads[0], NULL, count_up, NULL));
    pthread_join(threads[0], NULL);
  }
  FACT("threads leave nothing", total);
}

static void robust(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_t* shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutex_init(shared, &attributes);
  pthread_t thread;
  MUST(-pthread_create(&thread, NULL, die_with_it, shared));
  pthread_join(thread, NULL);
  FACT("owner's thread died", pthread_mutex_lock(shared) == EOWNERDEAD);
  FACT("made consistent", pthread_mutex_consistent(shared));
  pthread_mutex_unlock(shared);
  const int child = MUST(fork());
  if (child == 0) {
    pthread_mutex_lock(shared);
    raise(SIGKILL);
  }
  waitpid(child, NULL, 0);
  FACT("owner's process died", pthread_mutex_lock(shared) == EOWNERDEAD);
  pthread_mutex_consistent(shared);
  pthread_mutex_unlock(shared);
  pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  pthread_mutex_t inherit;
  pthread_mutex_init(&inherit, &attributes);
  FACT("priority inheritance", pthread_mutex_lock(&inherit));
  pthread_mutex_unlock(&inherit);
}

static void semaphores(void) {
  sem_t* named = sem_open("/conformance", O_CREAT | O_EXCL, 0600, 1);
  FACT("named semaphore", named != SEM_FAILED);
  CALL("exclusive", sem_open("/conformance", O_CREAT | O_EXCL, 0600, 1) == SEM_FAILED ? -1 : 0);
  FACT("wait", sem_wait(named));
  CALL("trywait", sem_trywait(named));
  const int child = MUST(fork());
  if (child == 0) {
    sem_post(named);
    _exit(0);
  }
  FACT("posted by a child", sem_wait(named));
  waitpid(child, NULL, 0);
  FACT("unlink", sem_unlink("/conformance"));
}

static void futexes(void) {
  _Atomic int* word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CALL("changed before", syscall(SYS_futex, word, FUTEX_WAIT, 1, NULL));
  const struct timespec soon = {0, 5000000};
  CALL("nobody wakes", syscall(SYS_futex, word, FUTEX_WAIT, 0, &soon));
  CALL("unaligned", syscall(SYS_futex, (char*)word + 1, FUTEX_WAIT, 0, &soon));
  CALL("unmapped", syscall(SYS_futex, 64, FUTEX_WAIT, 0, &soon));
  FACT("wake nobody", syscall(SYS_futex, word, FUTEX_WAKE, 9));
  const int child = MUST(fork());
  if (child == 0) {
    while (syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL) < 0 && *word == 0) {
    }
    _exit(*word);
  }
  usleep(20000);
  *word = 4;
  syscall(SYS_futex, word, FUTEX_WAKE, 1);
  int status;
  waitpid(child, &status, 0);
  FACT("woken across processes", WEXITSTATUS(status));
}

static void identities(void) {
  FACT("main thread is the process", gettid() == getpid());
  CALL("yield", sched_yield());
  CALL("membarrier query", syscall(SYS_membarrier, 0, 0, 0));
  CALL("real-time priority", sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1}));
  FACT("policy", sched_getscheduler(0));
  errno = 0;
  CALL("nicer", nice(3) == -1 && errno != 0 ? -1 : 0);
  CALL("less nice", nice(-3) == -1 && errno != 0 ? -1 : 0);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  basics();
  robust();
  semaphores();
  futexes();
  identities();
  return 0;
}
