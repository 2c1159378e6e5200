// System call instructions of every shape, in text that several threads run through for the first time at once: where
// calls are patched into jumps, no thread may see a torn or a wrong one, nor lose a register.
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define THREADS 4
#define ROUNDS 20
#define COPIES 100
#define PAGE 4096

// Groups of stubs, one of each shape, in pages of their own. They take the call's number in %rdx where they don't have
// it.
__asm__(
    ".pushsection stubs,\"ax\",@progbits\n"
    ".balign 4096\n.globl stubs_begin\nstubs_begin:\n"
    ".skip 64,0xcc\n"
    ".rept 100\n"
    ".balign 128,0xcc\n mov $110,%eax\n syscall\n ret\n"                                   // plain
    ".balign 16,0xcc\n mov $110,%eax\n xor %r8d,%r8d\n lea 1(%rbx),%r9\n syscall\n ret\n"  // with a chain
    ".balign 16,0xcc\n mov $110,%rax\n syscall\n ret\n"                                    // wide
    ".balign 32,0xcc\n xor %eax,%eax\n syscall\n ret\n .skip 12,0xcc\n"                    // read
    ".balign 16,0xcc\n mov %rdx,%rax\n syscall\n ret\n"                                    // too short to patch
    // Entered in its middle: the number comes from elsewhere then.
    ".balign 16,0xcc\n mov %edx,%eax\n test %edx,%edx\n jnz 1f\n mov $110,%eax\n 1: xor %r8d,%r8d\n syscall\n ret\n"
    ".endr\n"
    ".balign 4096,0xcc\n.globl stubs_end\nstubs_end:\n.skip 4096*24,0xcc\n"  // rounds map more and more of this
    ".popsection\n");
extern char stubs_begin[], stubs_end[];

static const struct {
  const char* name;
  size_t offset;  // in a group
  long number;    // of the call that is made
} kShapes[] = {{"plain", 0, SYS_getppid},           {"chain", 16, SYS_getppid},
               {"wide", 32, SYS_getppid},           {"read", 64, SYS_read},
               {"short", 96, SYS_getpgid},          {"middle", 112, SYS_getpgid},
               {"not the middle", 112, SYS_getppid}};
#define SHAPES (sizeof kShapes / sizeof *kShapes)

static char* text;  // where the stubs are in this round
static pthread_barrier_t barrier;
static atomic_long wrong[SHAPES], lost;
static pid_t parent, group;

// Calls a stub with known registers, and sees that they stay.
static long call_stub(const void* stub, long argument, long number) {
  long result;
  register long rdi __asm__("rdi") = argument;
  register long rsi __asm__("rsi") = 0x1111;
  register long rdx __asm__("rdx") = number;
  register long r10 __asm__("r10") = 0x2222;
  register long rbx __asm__("rbx") = 0x3333;
  register long r12 __asm__("r12") = 0x4444;
  double kept = 1.5;
  __asm__ volatile("movq %[kept], %%xmm7\n call *%[stub]\n movq %%xmm7, %[kept]\n"
                   : "=a"(result), "+r"(rdi), "+r"(rsi), "+r"(rdx), "+r"(r10), "+r"(rbx), "+r"(r12), [kept] "+m"(kept)
                   : [stub] "r"(stub)
                   : "rcx", "r8", "r9", "r11", "xmm7", "memory", "cc");
  if (rdi != argument || rsi != 0x1111 || rdx != number || r10 != 0x2222 || rbx != 0x3333 || r12 != 0x4444 ||
      kept != 1.5)
    ++lost;
  return result;
}

static void run_stubs(unsigned first) {
  for (unsigned i = 0; i < COPIES; ++i) {
    for (unsigned each = 0; each < SHAPES; ++each) {
      const unsigned shape = (each + first) % SHAPES;
      const void* const stub = text + 128 + (size_t)((i * 7 + first * 31) % COPIES) * 256 + kShapes[shape].offset;
      const int is_last = shape == SHAPES - 1;
      const long seen =
          call_stub(stub, kShapes[shape].number == SYS_read ? -1 : 0, is_last ? 0 : kShapes[shape].number);
      const long expected = kShapes[shape].number == SYS_read      ? -EBADF
                            : kShapes[shape].number == SYS_getppid ? parent
                                                                   : group;
      if (seen != expected) ++wrong[shape];
    }
  }
}

static void* run_thread(void* number) {
  for (int round = 0; round < ROUNDS; ++round) {
    pthread_barrier_wait(&barrier);
    run_stubs((unsigned)(uintptr_t)number);
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

// Where in the program's file the stubs are.
static int find_stubs(struct dl_phdr_info* info, size_t size, void* offset) {
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const part = &info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + part->p_vaddr, wanted = (uintptr_t)stubs_begin;
    if (part->p_type != PT_LOAD || wanted < begin || wanted >= begin + part->p_filesz) continue;
    *(size_t*)offset = part->p_offset + (wanted - begin);
    return 1;
  }
  return 0;
}

// As a dynamic loader maps a library: a size of text that was not there before is text that was not run before.
static void map_round(int fd, size_t offset, int round) {
  const size_t stubs_size = (size_t)(stubs_end - stubs_begin), size = stubs_size + (size_t)(round + 1) * PAGE;
  char* const base = mmap(NULL, offset + size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (base == MAP_FAILED ||
      mmap(base + offset, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, (off_t)offset) == MAP_FAILED) {
    printf("no mapping: %s\n", strerrorname_np(errno));
    exit(1);
  }
  text = base + offset;
}

static void print_wrong(const char* when) {
  for (unsigned shape = 0; shape < SHAPES; ++shape) {
    printf("%s, %s: %ld wrong\n", when, kShapes[shape].name, atomic_exchange(&wrong[shape], 0));
  }
  printf("%s: registers lost %ld times\n", when, atomic_exchange(&lost, 0));
}

static void threads_at_once(int fd, size_t offset) {
  pthread_t threads[THREADS];
  pthread_barrier_init(&barrier, NULL, THREADS + 1);
  for (uintptr_t i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, run_thread, (void*)i);
  for (int round = 0; round < ROUNDS; ++round) {
    map_round(fd, offset, round);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  print_wrong("threads");
}

static void children_at_once(int fd, size_t offset) {
  map_round(fd, offset, ROUNDS);
  const pid_t self = getpid();
  int failed = 0;
  for (int i = 0; i < THREADS; ++i) {
    if (fork() != 0) continue;
    parent = self;
    run_stubs((unsigned)i);
    for (unsigned shape = 0; shape < SHAPES; ++shape) failed += wrong[shape] != 0;
    _exit(failed + (lost != 0));
  }
  for (int status; wait(&status) > 0;) failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  printf("children: %d failed\n", failed);
}

static atomic_long ticks;
static void on_tick(int signal) {
  (void)signal;
  ++ticks;
}

// Signals that come anywhere in it.
static void under_signals(int fd, size_t offset) {
  const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
  const struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
  map_round(fd, offset, ROUNDS + 1);
  for (int i = 0; i < 10000 && (i < 100 || ticks < 100); ++i) run_stubs((unsigned)i % 5);
  setitimer(ITIMER_REAL, &never, NULL);
  printf("ticks: %s\n", ticks >= 100 ? "enough" : "too few");
  print_wrong("signals");
}

// Code that a program writes itself, again and again at the same place, while its threads run it.
static long (*written[1000])(void);
static atomic_long wrong_written;

static void* run_written(void* unused) {
  for (int round = 0; round < ROUNDS; ++round) {
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 1000; ++i) wrong_written += written[i]() != (i % 3 == 2 ? getpgrp() : parent);
    pthread_barrier_wait(&barrier);
  }
  return unused;
}

static void written_code(const char* name, int while_writing, int while_running) {
  unsigned char* const code = mmap(NULL, 1 << 16, while_writing, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, run_written, NULL);
  for (int round = 0; round < ROUNDS; ++round) {
    mprotect(code, 1 << 16, while_writing);
    size_t at = PAGE;
    for (int i = 0; i < 1000; ++i) {
      at += (size_t)((i * 7 + round) % 13 + 1);
      const unsigned char call[] = {0xb8, i % 3 == 2 ? SYS_getpgrp : SYS_getppid, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05,
                                    0xc3};
      memcpy(code + at, call, sizeof call);
      written[i] = (long (*)(void))(void*)(code + at);
      at += sizeof call;
    }
    mprotect(code, 1 << 16, while_running);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  munmap(code, 1 << 16);
  printf("%s: %ld wrong\n", name, atomic_exchange(&wrong_written, 0));
}

int main(void) {
  parent = getppid();
  group = getpgrp();
  size_t offset = 0;
  const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  printf("found: %d\n", fd >= 0 && dl_iterate_phdr(find_stubs, &offset) == 1 && offset % PAGE == 0);
  threads_at_once(fd, offset);
  children_at_once(fd, offset);
  under_signals(fd, offset);
  written_code("written, then run", PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC);
  written_code("written and run", PROT_READ | PROT_WRITE | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC);
  return 0;
}
