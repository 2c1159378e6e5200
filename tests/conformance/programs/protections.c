// Protections: mprotect on parts, faults and what siginfo tells, execution, guard pages, fixed mappings.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define PAGE 4096

static sigjmp_buf back;
static volatile sig_atomic_t caught, code, at_right_place;
static char* volatile expected;

static void on_fault(int signal, siginfo_t* info, void* context) {
  (void)context;
  caught = signal;
  code = info->si_code;
  at_right_place = info->si_addr == expected;
  siglongjmp(back, 1);
}

static void touch(const char* what, volatile char* at, int is_write) {
  caught = code = at_right_place = 0;
  expected = (char*)at;
  if (sigsetjmp(back, 1) == 0) {
    if (is_write) {
      *at = 'w';
    } else {
      (void)*at;
    }
  }
  if (caught == 0) {
    printf("%s: fine\n", what);
  } else {
    printf("%s: %s %d %s\n", what, sigabbrev_np(caught), (int)code, at_right_place ? "there" : "elsewhere");
  }
}

static void parts(void) {
  char* map = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(map, 'x', 8 * PAGE);
  CALL("middle read only", mprotect(map + 2 * PAGE, 2 * PAGE, PROT_READ));
  touch("read", map + 2 * PAGE, 0);
  touch("write", map + 3 * PAGE, 1);
  touch("before", map + PAGE, 1);
  touch("after", map + 4 * PAGE, 1);
  CALL("nothing allowed", mprotect(map, 8 * PAGE, PROT_NONE));
  touch("read", map + PAGE + 7, 0);
  CALL("back", mprotect(map, 8 * PAGE, PROT_READ | PROT_WRITE));
  FACT("contents stay", map[3 * PAGE]);
  CALL("unaligned", mprotect(map + 1, PAGE, PROT_READ));
  CALL("no size", mprotect(map, 0, PROT_READ));
  munmap(map + 4 * PAGE, PAGE);
  CALL("over a hole", mprotect(map, 8 * PAGE, PROT_READ));
  touch("what comes before it has changed", map, 1);
  touch("the hole", map + 4 * PAGE, 0);
  touch("null", (char*)8, 0);
}

static void code_pages(void) {
  static const unsigned char kReturn42[] = {0xb8, 42, 0, 0, 0, 0xc3};
  unsigned char* map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(map, kReturn42, sizeof kReturn42);
  int (*function)(void) = (int (*)(void))(uintptr_t)map;
  expected = (char*)map;
  caught = 0;
  if (sigsetjmp(back, 1) == 0) function();
  printf("not executable: %s %d\n", caught != 0 ? sigabbrev_np(caught) : "fine", (int)code);
  CALL("made executable", mprotect(map, PAGE, PROT_READ | PROT_EXEC));
  FACT("runs", function());
  touch("not writable", (char*)map, 1);
  CALL("all at once", mprotect(map, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
  map[1] = 43;
  FACT("changed in place", function());
}

static void fixed(void) {
  char* map = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(map, 'o', 4 * PAGE);
  FACT("over one's own",
       mmap(map + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == map + PAGE);
  FACT("is new", map[PAGE]);
  FACT("the rest stays", map[2 * PAGE]);
  CALL("no replace", (long)mmap(map, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
  CALL("unaligned", (long)mmap(map + 1, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
  munmap(map, PAGE);
  FACT("no replace, free", mmap(map, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == map);
  FACT("unmap twice", munmap(map, PAGE) + munmap(map, PAGE));
  CALL("unmap nothing", munmap(map, 0));
}

// A shared mapping of a file can't be given what the file was not opened for.
static void of_files(void) {
  const int made = MUST(open("file", O_CREAT | O_RDWR, 0600));
  MUST(ftruncate(made, 2 * PAGE));
  const int fd = MUST(open("file", O_RDONLY));
  char* shared = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
  char* own = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
  char* writable = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, made, 0);
  CALL("shared, for writing", mprotect(shared, PAGE, PROT_READ | PROT_WRITE));
  CALL("its second page", mprotect(shared + PAGE, PAGE, PROT_WRITE));
  CALL("nothing at all", mprotect(shared, PAGE, PROT_NONE));
  CALL("private", mprotect(own, PAGE, PROT_READ | PROT_WRITE));
  CALL("of a file open for both", mprotect(writable, PAGE, PROT_READ | PROT_WRITE));
  writable[0] = 'w';
  own[0] = 'o';
  CALL("to be read", mprotect(shared, PAGE, PROT_READ));
  printf("shared %c, private %c\n", shared[0], own[0]);
}

static void across_fork(void) {
  char* map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  map[0] = shared[0] = 'p';
  const int pid = MUST(fork());
  if (pid == 0) {
    map[0] = shared[0] = 'c';
    mprotect(map, PAGE, PROT_NONE);
    signal(SIGSEGV, SIG_DFL);
    map[0] = 'x';
    _exit(0);
  }
  int status;
  MUST(waitpid(pid, &status, 0));
  FACT("the child's signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  printf("private %c, shared %c\n", map[0], shared[0]);
  touch("the parent's stays writable", map, 1);
}

int main(void) {
  const struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  MUST(sigaction(SIGSEGV, &action, NULL));
  MUST(sigaction(SIGBUS, &action, NULL));
  parts();
  code_pages();
  fixed();
  of_files();
  across_fork();
}
