// What threads and processes wait on: mutexes of all kinds, conditions, barriers, read-write locks, semaphores,
// futexes.
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

// Errors of pthread functions are their results.
#define RESULT(what, call)                                                   \
  do {                                                                       \
    const int result_ = (call);                                              \
    printf("%s: %s\n", what, result_ == 0 ? "0" : strerrorname_np(result_)); \
  } while (0)

static struct timespec in_milliseconds(clockid_t clock, int milliseconds) {
  struct timespec time;
  clock_gettime(clock, &time);
  time.tv_nsec += milliseconds * 1000000L;
  time.tv_sec += time.tv_nsec / 1000000000;
  time.tv_nsec %= 1000000000;
  return time;
}

static void kinds(void) {
  pthread_mutexattr_t kind;
  pthread_mutex_t mutex;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&mutex, &kind);
  RESULT("lock", pthread_mutex_lock(&mutex));
  RESULT("lock again", pthread_mutex_lock(&mutex));
  RESULT("try", pthread_mutex_trylock(&mutex));
  RESULT("unlock", pthread_mutex_unlock(&mutex));
  RESULT("unlock again", pthread_mutex_unlock(&mutex));
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&mutex, &kind);
  pthread_mutex_lock(&mutex);
  RESULT("recursive", pthread_mutex_lock(&mutex));
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_NORMAL);
  pthread_mutex_init(&mutex, &kind);
  pthread_mutex_lock(&mutex);
  const struct timespec soon = in_milliseconds(CLOCK_REALTIME, 20);
  RESULT("timed", pthread_mutex_timedlock(&mutex, &soon));
}

struct shared {
  pthread_mutex_t mutex, robust;
  pthread_cond_t condition;
  pthread_barrier_t barrier;
  sem_t semaphore;
  int counter, turn;
};

static void between_processes(void) {
  struct shared* all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t mutex_kind;
  pthread_condattr_t condition_kind;
  pthread_barrierattr_t barrier_kind;
  pthread_mutexattr_init(&mutex_kind);
  pthread_mutexattr_setpshared(&mutex_kind, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&all->mutex, &mutex_kind);
  pthread_mutexattr_setrobust(&mutex_kind, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&all->robust, &mutex_kind);
  pthread_condattr_init(&condition_kind);
  pthread_condattr_setpshared(&condition_kind, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&all->condition, &condition_kind);
  pthread_barrierattr_init(&barrier_kind);
  pthread_barrierattr_setpshared(&barrier_kind, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&all->barrier, &barrier_kind, 5);
  sem_init(&all->semaphore, 1, 0);
  for (int child = 0; child < 4; ++child) {
    if (MUST(fork()) == 0) {
      pthread_barrier_wait(&all->barrier);
      for (int i = 0; i < 500; ++i) {
        pthread_mutex_lock(&all->mutex);
        ++all->counter;
        pthread_mutex_unlock(&all->mutex);
      }
      pthread_mutex_lock(&all->mutex);
      while (all->turn != child) pthread_cond_wait(&all->condition, &all->mutex);
      ++all->turn;
      pthread_cond_broadcast(&all->condition);
      pthread_mutex_unlock(&all->mutex);
      sem_post(&all->semaphore);
      _exit(0);
    }
  }
  pthread_barrier_wait(&all->barrier);
  for (int i = 0; i < 4; ++i) sem_wait(&all->semaphore);
  while (wait(NULL) > 0) continue;
  FACT("counted", all->counter);
  FACT("turns", all->turn);
  CALL("semaphore is empty", sem_trywait(&all->semaphore));
  const struct timespec soon = in_milliseconds(CLOCK_REALTIME, 20);
  CALL("and stays so", sem_timedwait(&all->semaphore, &soon));
  if (MUST(fork()) == 0) {
    pthread_mutex_lock(&all->robust);
    _exit(0);
  }
  wait(NULL);
  RESULT("its owner died", pthread_mutex_lock(&all->robust));
  RESULT("made good", pthread_mutex_consistent(&all->robust));
  RESULT("unlock", pthread_mutex_unlock(&all->robust));
  RESULT("lock", pthread_mutex_lock(&all->robust));
}

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static void* try_both(void* results) {
  ((int*)results)[0] = pthread_rwlock_tryrdlock(&lock);
  if (((int*)results)[0] == 0) pthread_rwlock_unlock(&lock);
  ((int*)results)[1] = pthread_rwlock_trywrlock(&lock);
  if (((int*)results)[1] == 0) pthread_rwlock_unlock(&lock);
  return NULL;
}

static void readers(void) {
  pthread_t thread;
  int results[2];
  for (int i = 0; i < 3; ++i) {
    if (i == 1) pthread_rwlock_rdlock(&lock);
    if (i == 2) pthread_rwlock_wrlock(&lock);
    pthread_create(&thread, NULL, try_both, results);
    pthread_join(thread, NULL);
    printf("%s: reader %d writer %d\n", i == 0 ? "free" : i == 1 ? "read" : "written", results[0], results[1]);
    if (i > 0) pthread_rwlock_unlock(&lock);
  }
}

static int futex(int* word, int operation, int value, const struct timespec* time, int* second, int third) {
  return (int)syscall(SYS_futex, word, operation, value, time, second, third);
}

static int words[2];
static void* sleeper(void* operation) {
  futex(&words[0], *(int*)operation, 0, NULL, NULL, 1);
  return NULL;
}

static void futexes(void) {
  int word = 5;
  const struct timespec soon = {0, 10000000}, wrong = {0, -1};
  CALL("another value", futex(&word, FUTEX_WAIT, 4, NULL, NULL, 0));
  CALL("timeout", futex(&word, FUTEX_WAIT, 5, &soon, NULL, 0));
  CALL("wrong time", futex(&word, FUTEX_WAIT, 5, &wrong, NULL, 0));
  CALL("past", futex(&word, FUTEX_WAIT_BITSET, 5, &soon, NULL, -1));
  CALL("no bits", futex(&word, FUTEX_WAIT_BITSET, 5, NULL, NULL, 0));
  CALL("unaligned", futex((int*)((char*)words + 1), FUTEX_WAIT, 0, &soon, NULL, 0));
  CALL("bad address", futex((int*)8, FUTEX_WAIT, 0, &soon, NULL, 0));
  FACT("wake nobody", futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0));
  CALL("unknown", futex(&word, 77, 0, NULL, NULL, 0));
  pthread_t threads[3];
  int operation = FUTEX_WAIT_BITSET_PRIVATE;
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, sleeper, &operation);
  usleep(100000);
  FACT("other bits", futex(&words[0], FUTEX_WAKE_BITSET_PRIVATE, 9, NULL, NULL, 2));
  FACT("one", futex(&words[0], FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 1));
  FACT("moved", futex(&words[0], FUTEX_CMP_REQUEUE_PRIVATE, 0, (const struct timespec*)9L, &words[1], 0));
  FACT("none left", futex(&words[0], FUTEX_WAKE_PRIVATE, 9, NULL, NULL, 0));
  FACT("woken there", futex(&words[1], FUTEX_WAKE_PRIVATE, 9, NULL, NULL, 0));
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  CALL("moving with another value",
       futex(&words[0], FUTEX_CMP_REQUEUE_PRIVATE, 0, (const struct timespec*)9L, &words[1], 7));
}

int main(void) {
  kinds();
  between_processes();
  readers();
  futexes();
}
