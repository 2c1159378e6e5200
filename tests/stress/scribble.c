// scribble SEED: a guest that knows where the user-space kernel keeps what all processes of the sandbox and the broker
// share, and writes over it: all of it, the rings, the counts of streams, or requests, while the kernel goes on being
// used.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// As src/kernel/arena/layout.h and src/kernel/broker/rings_shm.h have it.
static const uint64_t kArena = 0x6f1000000000, kRings = 0x400000, kUsed = 0x480000;

static uint64_t state;
static uint32_t next(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 32);
}

static volatile uint32_t* word_below(uint64_t size) {
  return (volatile uint32_t*)(kArena + (((uint64_t)next() << 8 | next() >> 24) % size & ~3ull));
}

static uint32_t value(void) {
  switch (next() % 4) {
    case 0:
      return next() % 16;  // states, operations, descriptors
    case 1:
      return 0xffffffff - next() % 16;
    case 2:
      return (uint32_t)(kArena + next() % kUsed);
    default:
      return next();
  }
}

// Random words, once or again and again while children live.
static void scribble(uint64_t size, int words) {
  for (int i = 0; i < words; ++i) *word_below(size) = value();
}

// Small values over whole stretches: posted requests, counts that run ahead, an end.
static void sweep(uint64_t begin, uint64_t size) {
  for (uint64_t at = begin; at < begin + size; at += 4) *(volatile uint32_t*)(kArena + at) = value();
}

static void use_kernel(void) {
  for (int i = 0; i < 20; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      scribble(kRings, 1000);
      if (access("/usr/bin/env", F_OK) == 0) printf("%d\n", i);
      fflush(stdout);
      _exit(0);
    }
    if (pid > 0 && next() % 2) waitpid(pid, 0, WNOHANG);
  }
}

int main(int argc, char** argv) {
  state = argc > 1 ? strtoull(argv[1], 0, 10) : 0;
  switch (next() % 5) {
    case 0:
      scribble(kUsed, 300000);
      break;
    case 1:
      scribble(kRings, 300000);
      break;
    case 2:
      sweep(next() % kRings & ~3ull, 4096 * (1 + next() % 16));
      break;
    case 3:
      scribble(kUsed, (int)(1 + next() % 50));
      break;
    default:
      sweep(0, kRings);
      break;
  }
  use_kernel();
  if (next() % 2) memset((void*)kArena, (int)next(), kRings);
  use_kernel();
  return 0;
}
