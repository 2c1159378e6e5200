// Memory: anonymous, shared and file mappings, protection, remapping, advice, sealed memfds, limits.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static sigjmp_buf back;
static void leave(int number) {
  siglongjmp(back, number);
}

static int fault_of(volatile char* address, int write) {
  const int number = sigsetjmp(back, 1);
  if (number != 0) return number;
  if (write) {
    *address = 1;
  } else {
    (void)*address;
  }
  return 0;
}

static void anonymous(void) {
  char* block = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  block[0] = 'a';
  CALL("unmap a part", munmap(block + 65536, 4096));
  FACT("hole", fault_of(block + 65536, 0));
  CALL("read only", mprotect(block, 4096, PROT_READ));
  FACT("write", fault_of(block, 1));
  CALL("none", mprotect(block, 4096, PROT_NONE));
  FACT("read", fault_of(block, 0));
  CALL("protect a hole", mprotect(block + 65536, 4096, PROT_READ));
  CALL("again", mprotect(block, 4096, PROT_READ | PROT_WRITE));
  FACT("kept", block[0]);
  CALL("drop", madvise(block, 4096, MADV_DONTNEED));
  FACT("zero again", block[0]);
  char* moved = mremap(block, 4096, 8192, MREMAP_MAYMOVE);
  FACT("grown", moved != MAP_FAILED && moved[8191] == 0);
  CALL("map over nothing", mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0);
  CALL("page 0", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ? -1 : 0);
  CALL("over another",
       mmap(moved, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED ? -1 : 0);
  unsigned char* code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(code, "\xb8\x2a\x00\x00\x00\xc3", 6);  // mov $42, %eax; ret
  CALL("executable", mprotect(code, 4096, PROT_READ | PROT_EXEC));
  int (*function)(void);
  memcpy(&function, &code, sizeof code);
  FACT("made code runs", function());
  CALL("break", brk((char*)sbrk(0) + 65536));
  CALL("huge reserve",
       mmap(NULL, 1UL << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED ? -1 : 0);
}

static void shared(void) {
  volatile int* word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  volatile int* copy = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const int child = MUST(fork());
  if (child == 0) {
    *word = 1;
    *copy = 1;
    _exit(0);
  }
  waitpid(child, NULL, 0);
  FACT("shared", *word);
  FACT("private", *copy);
}

static void files(void) {
  const int fd = MUST(open("file", O_RDWR | O_CREAT | O_TRUNC, 0600));
  MUST(write(fd, "hello", 5));
  char* view = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  char* copy = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  FACT("rest of the page is zero", view[5] == 0 && view[4095] == 0);
  FACT("past the end", fault_of(view + 4096, 0));
  view[0] = 'J';
  char text[8] = {0};
  MUST(pread(fd, text, 5, 0));
  printf("write through: %s\n", text);
  MUST(pwrite(fd, "C", 1, 0));
  FACT("read through", view[0]);
  copy[0] = 'X';
  FACT("private copy stays private", view[0]);
  CALL("msync", msync(view, 4096, MS_SYNC));
  MUST(ftruncate(fd, 0));
  FACT("truncated below", fault_of(view, 0));
  const int reader = MUST(open("file", O_RDONLY));
  CALL("writable view of a reader", mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, reader, 0) == MAP_FAILED ? -1 : 0);
  CALL("odd offset", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, reader, 100) == MAP_FAILED ? -1 : 0);
  unsigned char resident[2];
  CALL("mincore", mincore(copy, 4096, resident));
}

static void memfds(void) {
  const int fd = memfd_create("m", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  printf("memfd: %s\n", fd < 0 ? strerrorname_np(errno) : "0");
  if (fd >= 0) {
    MUST(ftruncate(fd, 4096));
    CALL("memfd seal", fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
    CALL("memfd write", write(fd, "x", 1));
    CALL("memfd grow", ftruncate(fd, 8192));
    FACT("memfd seals", fcntl(fd, F_GET_SEALS));
  }
  const int shm = MUST(shm_open("/conformance", O_RDWR | O_CREAT | O_EXCL, 0600));
  CALL("size", ftruncate(shm, 65536));
  CALL("shm_unlink", shm_unlink("/conformance"));
}

static void limits(void) {
  struct rlimit limit = {64 << 20, 64 << 20};
  CALL("lower", setrlimit(RLIMIT_AS, &limit));
  CALL("past it", mmap(NULL, 128 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0);
  limit.rlim_cur = limit.rlim_max = 128 << 20;
  CALL("raise", setrlimit(RLIMIT_AS, &limit));
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  signal(SIGSEGV, leave);
  signal(SIGBUS, leave);
  anonymous();
  shared();
  files();
  memfds();
  limits();
  return 0;
}
