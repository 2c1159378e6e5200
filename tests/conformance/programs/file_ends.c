// Where a mapped file ends: SIGBUS past it, also after its size changed, here, in another thread and in another
// process.
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "check.h"

#define PAGE 4096

static sigjmp_buf back;
static siginfo_t fault;
static long long trap;

static void on_fault(int signal, siginfo_t* info, void* context) {
  (void)signal;
  fault = *info;
  trap = ((ucontext_t*)context)->uc_mcontext.gregs[REG_TRAPNO];
  siglongjmp(back, 1);
}

static void touch(const char* what, volatile char* at, int is_write) {
  fault.si_signo = 0;
  if (sigsetjmp(back, 1) == 0) {
    if (is_write) {
      *at = 'w';
    } else {
      (void)*at;
    }
  }
  if (fault.si_signo == 0) {
    printf("%s: fine\n", what);
  } else {
    printf("%s: %s %d, at the address %d, trap %lld\n", what, sigabbrev_np(fault.si_signo), fault.si_code,
           fault.si_addr == at, trap);
  }
}

static int file_of(const char* name, size_t size) {
  const int fd = MUST(open(name, O_CREAT | O_RDWR | O_TRUNC, 0644));
  MUST(ftruncate(fd, (off_t)size));
  return fd;
}

static char* map_of(int fd, int pages, int protection, int flags) {
  char* map = mmap(NULL, (size_t)pages * PAGE, protection, flags, fd, 0);
  if (map == MAP_FAILED) {
    printf("mmap: %s\n", strerrorname_np(errno));
    exit(1);
  }
  return map;
}

static void past_the_end(const char* kind, int flags) {
  printf("%s\n", kind);
  const int fd = file_of("ends", PAGE + 100);
  char* map = map_of(fd, 4, PROT_READ | PROT_WRITE, flags);
  touch("last byte of the last page", map + 2 * PAGE - 1, 1);
  touch("read past it", map + 2 * PAGE, 0);
  touch("write past it", map + 3 * PAGE, 1);
  CALL("read(2) into it", read(MUST(open("/dev/zero", O_RDONLY)), map + 2 * PAGE, 1));
  CALL("write(2) from it", write(fd, map + 2 * PAGE, 1));
  MUST(ftruncate(fd, 3 * PAGE));
  CALL("read(2) into what has grown", read(MUST(open("/dev/zero", O_RDONLY)), map + 2 * PAGE, 1));
  touch("what has grown", map + 2 * PAGE + 1, 1);
  touch("past that", map + 3 * PAGE, 0);
  MUST(pwrite(fd, "x", 1, 3 * PAGE));
  FACT("grown by write", map[3 * PAGE]);
  map[PAGE + 8] = 'o';
  MUST(ftruncate(fd, PAGE));
  touch("cut", map + PAGE, 0);
  touch("cut further on", map + 3 * PAGE, 1);
  touch("not cut", map + PAGE - 1, 1);
  MUST(ftruncate(fd, 2 * PAGE));
  FACT("grown again, anew", map[PAGE + 8]);
  MUST(ftruncate(fd, 0));
  touch("all of it", map, 0);
  MUST(munmap(map, 4 * PAGE));
  close(fd);
}

static void protections(void) {
  const int fd = file_of("protections", PAGE);
  char* map = map_of(fd, 3, PROT_READ, MAP_SHARED);
  touch("write where reading is allowed", map, 1);
  touch("and past the end", map + PAGE, 1);
  touch("read past the end", map + PAGE, 0);
  MUST(mprotect(map, 3 * PAGE, PROT_READ | PROT_WRITE));
  touch("allowed", map, 1);
  touch("but not past the end", map + PAGE, 1);
  MUST(mprotect(map + PAGE, PAGE, PROT_NONE));
  touch("no access", map + PAGE, 0);
  MUST(ftruncate(fd, 3 * PAGE));
  touch("no access, grown", map + PAGE, 0);
  touch("grown", map + 2 * PAGE, 1);
  MUST(munmap(map, 3 * PAGE));
  map = map_of(fd, 2, PROT_READ | PROT_WRITE, MAP_SHARED);
  MUST(ftruncate(fd, PAGE));
  char* moved = mremap(map, 2 * PAGE, 4 * PAGE, MREMAP_MAYMOVE);
  FACT("grown by mremap", moved != MAP_FAILED);
  touch("the file's page", moved, 1);
  touch("past it", moved + PAGE, 1);
  touch("and at the end", moved + 3 * PAGE, 0);
  FACT("shrunk", mremap(moved, 4 * PAGE, 2 * PAGE, 0) == moved);
  touch("still past it", moved + PAGE, 1);
  char* tail = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 8 * PAGE);
  touch("all past it", tail, 0);
  MUST(ftruncate(fd, 9 * PAGE));
  touch("until it grows", tail, 0);
}

static void others(void) {
  const int fd = file_of("others", 4 * PAGE);
  char* map = map_of(fd, 4, PROT_READ | PROT_WRITE, MAP_SHARED);
  map[3 * PAGE] = 'x';
  int status;
  fflush(stdout);
  if (MUST(fork()) == 0) {
    touch("a child's", map + 3 * PAGE, 0);
    fflush(stdout);
    _exit(ftruncate(fd, 2 * PAGE));
  }
  wait(&status);
  touch("cut by a child", map + 2 * PAGE, 0);
  touch("the rest", map + PAGE, 1);
  fflush(stdout);
  if (MUST(fork()) == 0) {
    touch("cut in a new child too", map + 3 * PAGE, 0);
    fflush(stdout);
    _exit(ftruncate(fd, 4 * PAGE));
  }
  wait(&status);
  CALL("read(2) into what a child made grow", read(MUST(open("/dev/zero", O_RDONLY)), map + 3 * PAGE, 1));
  // A child that makes no call finds out as well.
  volatile char* go = map;
  *go = 'g';
  if (MUST(fork()) == 0) {
    signal(SIGBUS, SIG_DFL);
    *go = 'r';
    while (*(volatile char*)(map + 3 * PAGE) != 'y') {
    }
    _exit(0);
  }
  while (*go != 'r') usleep(1000);
  MUST(ftruncate(fd, PAGE));
  wait(&status);
  FACT("a child that looks all the time ends by", WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status));
}

static void* cut(void* fd) {
  return (void*)(long)ftruncate(*(int*)fd, 0);
}

static void threads_and_more(void) {
  int fd = file_of("threads", PAGE);
  char* map = map_of(fd, 1, PROT_READ, MAP_SHARED);
  touch("before", map, 0);
  pthread_t thread;
  pthread_create(&thread, NULL, cut, &fd);
  pthread_join(thread, NULL);
  touch("cut by a thread", map, 0);
  const int memory = MUST(open(".", O_TMPFILE | O_RDWR, 0600));
  char* empty = map_of(memory, 1, PROT_READ | PROT_WRITE, MAP_SHARED);
  touch("an empty file without a name", empty, 1);
  MUST(ftruncate(memory, 1));
  touch("with a byte", empty + PAGE - 1, 1);
  const int program = MUST(open("/proc/self/exe", O_RDONLY));
  const off_t size = (MUST(lseek(program, 0, SEEK_END)) + PAGE - 1) / PAGE * PAGE;
  char* image = mmap(NULL, (size_t)size + PAGE, PROT_READ, MAP_PRIVATE, program, 0);
  touch("the last page of the program", image + size - 1, 0);
  touch("past the program", image + size, 0);
  char* text = mmap(NULL, (size_t)size + PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, program, 0);
  touch("as text", text + size, 0);
  fd = MUST(open("threads", O_RDWR | O_TRUNC));
  MUST(write(fd, "abc", 3));
  touch("opened anew and written", map, 0);
  MUST(truncate("threads", 0));
  touch("truncate by name", map, 0);
  MUST(fallocate(fd, 0, 0, 10));
  touch("fallocate", map, 0);
}

int main(void) {
  const struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  MUST(sigaction(SIGSEGV, &action, NULL));
  MUST(sigaction(SIGBUS, &action, NULL));
  past_the_end("shared", MAP_SHARED);
  past_the_end("private", MAP_PRIVATE);
  protections();
  threads_and_more();
  others();
}
