// Mapped files: shared and private ones, sizes that change below them, what fork does, mremap and msync.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define PAGE 4096

static sigjmp_buf back;
static int caught, code;

static void on_fault(int signal, siginfo_t* info, void* context) {
  (void)context;
  caught = signal;
  code = info->si_code;
  siglongjmp(back, 1);
}

static void touch(const char* what, volatile char* at, int is_write) {
  caught = code = 0;
  if (sigsetjmp(back, 1) == 0) {
    if (is_write) {
      *at = 'w';
    } else {
      (void)*at;
    }
  }
  printf("%s: %s %d\n", what, caught == 0 ? "fine" : sigabbrev_np(caught), code);
}

static int file_of(const char* name, size_t size) {
  const int fd = MUST(open(name, O_CREAT | O_RDWR | O_TRUNC, 0644));
  MUST(ftruncate(fd, (off_t)size));
  return fd;
}

static void shared(void) {
  const int fd = file_of("shared", 2 * PAGE);
  char* map = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  char* again = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, PAGE);
  map[PAGE] = 'm';
  FACT("seen by another mapping", again[0]);
  char byte = 0;
  MUST(pread(fd, &byte, 1, PAGE));
  FACT("seen by read", byte);
  MUST(pwrite(fd, "p", 1, 0));
  FACT("write is seen", map[0]);
  if (MUST(fork()) == 0) {
    map[1] = 'c';
    _exit(0);
  }
  wait(NULL);
  FACT("a child's write is seen", map[1]);
  CALL("msync", msync(map, 2 * PAGE, MS_SYNC));
  CALL("msync, odd flags", msync(map, PAGE, MS_SYNC | MS_ASYNC));
  CALL("msync of a hole", msync(map + (64L << 30), PAGE, MS_SYNC));
  close(fd);
  MUST(unlink("shared"));
  map[2] = 'x';
  FACT("lives on without a name", map[2]);
  munmap(again, PAGE);
  touch("unmapped", again, 0);
}

static void private(void) {
  const int fd = file_of("private", 2 * PAGE);
  MUST(pwrite(fd, "file", 4, 0));
  char* map = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  map[0] = 'M';
  char text[5] = "";
  MUST(pread(fd, text, 4, 0));
  printf("the file is as it was: %s\n", text);
  MUST(pwrite(fd, "FILE", 4, 0));
  printf("the page is one's own: %.4s\n", map);
  MUST(pwrite(fd, "later", 5, PAGE));
  printf("an untouched page is the file's: %.5s\n", map + PAGE);
  MUST(madvise(map, PAGE, MADV_DONTNEED));
  printf("given back: %.4s\n", map);
  const int reader = MUST(open("private", O_RDONLY));
  FACT("private and writable of a reader",
       mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, reader, 0) != MAP_FAILED);
  CALL("shared and writable of a reader", (long)mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, reader, 0));
  char* only = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, reader, 0);
  CALL("made writable later", mprotect(only, PAGE, PROT_READ | PROT_WRITE));
  touch("write to it", only, 1);
  const int writer = MUST(open("private", O_WRONLY));
  CALL("of a writer", (long)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, writer, 0));
}

static void sizes(void) {
  const int fd = file_of("sizes", PAGE + 10);
  char* map = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  touch("in the last page", map + PAGE + 100, 1);
  touch("past the last page", map + 2 * PAGE, 0);
  MUST(ftruncate(fd, 3 * PAGE));
  touch("grown", map + 2 * PAGE, 1);
  FACT("what was past the end is zero", map[PAGE + 100]);
  MUST(ftruncate(fd, PAGE));
  touch("cut", map + PAGE, 0);
  CALL("offset between pages", (long)mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 100));
  CALL("no size", (long)mmap(NULL, 0, PROT_READ, MAP_SHARED, fd, 0));
  CALL("no kind", (long)mmap(NULL, PAGE, PROT_READ, 0, fd, 0));
  CALL("closed", (long)mmap(NULL, PAGE, PROT_READ, MAP_SHARED, 999, 0));
  CALL("a folder", (long)mmap(NULL, PAGE, PROT_READ, MAP_SHARED, MUST(open(".", O_RDONLY)), 0));
  FACT("unaligned unmap", munmap(map + 1, PAGE) < 0 && errno == EINVAL);
}

static void moving(void) {
  const int fd = file_of("moving", 4 * PAGE);
  char* map = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  map[0] = 'a';
  map[PAGE] = 'b';
  char* grown = mremap(map, 2 * PAGE, 4 * PAGE, MREMAP_MAYMOVE);
  FACT("grown", grown != MAP_FAILED);
  printf("contents: %c%c\n", grown[0], grown[PAGE]);
  grown[3 * PAGE] = 'd';
  char byte = 0;
  MUST(pread(fd, &byte, 1, 3 * PAGE));
  FACT("is the file", byte);
  char* place = mmap(NULL, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* fixed = mremap(grown, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
  FACT("moved to a place", fixed == place);
  touch("the old one is gone", grown, 0);
  FACT("shrunk", mremap(fixed, 4 * PAGE, PAGE, 0) == fixed);
  touch("what was cut", fixed + 2 * PAGE, 0);
  CALL("fixed without may-move", (long)mremap(fixed, PAGE, PAGE, MREMAP_FIXED, place + 4 * PAGE));
  CALL("of a hole", (long)mremap(grown, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
}

int main(void) {
  const struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  MUST(sigaction(SIGSEGV, &action, NULL));
  MUST(sigaction(SIGBUS, &action, NULL));
  shared();
  private();
  sizes();
  moving();
}
