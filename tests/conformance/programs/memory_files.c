// Files in memory: memfd_create, seals, shared memory by name, mappings across processes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void seals(void) {
  const int fd = MUST(memfd_create("name", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  FACT("close-on-exec", fcntl(fd, F_GETFD));
  FACT("seals", fcntl(fd, F_GET_SEALS));
  FACT("write", write(fd, "hello", 5));
  CALL("no shrinking", fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
  CALL("shrink", ftruncate(fd, 1));
  CALL("grow", ftruncate(fd, 100));
  CALL("no growing", fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
  CALL("grow", ftruncate(fd, 200));
  CALL("write past the end", pwrite(fd, "x", 1, 100));
  char* map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CALL("no writing while mapped", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
  MUST(munmap(map, 4096));
  CALL("no writing", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
  CALL("write", pwrite(fd, "x", 1, 0));
  CALL("map to write", (long)mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0));
  FACT("map to read", mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
  CALL("no more seals", fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL));
  CALL("another", fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
  FACT("seals", fcntl(fd, F_GET_SEALS));
  const int plain = MUST(memfd_create("plain", 0));
  FACT("without sealing", fcntl(plain, F_GET_SEALS));
  CALL("seal it", fcntl(plain, F_ADD_SEALS, F_SEAL_WRITE));
  CALL("of a file", fcntl(MUST(open("file", O_CREAT | O_RDWR, 0600)), F_GET_SEALS) >= 0 || errno == EINVAL ? 0 : -1);
  char name[400];
  memset(name, 'n', sizeof name);
  name[249] = '\0';
  CALL("longest name", memfd_create(name, 0));
  name[249] = 'n';
  name[250] = '\0';
  CALL("too long a name", memfd_create(name, 0));
  CALL("odd flags", memfd_create("x", 1 << 20));
  struct stat status;
  MUST(fstat(plain, &status));
  FACT("mode", status.st_mode);
  FACT("links", status.st_nlink);
  char path[64], target[64] = "";
  sprintf(path, "/proc/self/fd/%d", plain);
  MUST(readlink(path, target, sizeof target - 1));
  printf("called %s\n", target);
  const int again = MUST(open(path, O_RDWR));
  MUST(write(again, "anew", 4));
  FACT("opened anew", pread(plain, target, 4, 0));
}

static void across(void) {
  const int fd = MUST(memfd_create("shared", 0));
  MUST(ftruncate(fd, 8192));
  volatile int* map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  for (int child = 0; child < 4; ++child) {
    if (MUST(fork()) == 0) {
      for (int i = 0; i < 1000; ++i) __sync_fetch_and_add(map, 1);
      _exit(0);
    }
  }
  while (wait(NULL) > 0) continue;
  FACT("added by four", *map);
  const int pid = MUST(fork());
  if (pid == 0) {
    char number[32];
    sprintf(number, "/proc/self/fd/%d", fd);
    execl("/bin/sh", "sh", "-c", "printf later > \"$0\"", number, NULL);
    _exit(1);
  }
  wait(NULL);
  FACT("written by another program", memcmp((const char*)map, "later", 5));
  const int shm = MUST(shm_open("/conformance-across", O_CREAT | O_EXCL | O_RDWR, 0600));
  CALL("by name, taken", shm_open("/conformance-across", O_CREAT | O_EXCL | O_RDWR, 0600));
  MUST(ftruncate(shm, 4096));
  char* one = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, shm, 0);
  char* two = mmap(NULL, 4096, PROT_READ, MAP_SHARED, MUST(shm_open("/conformance-across", O_RDONLY, 0)), 0);
  one[7] = 'x';
  FACT("two mappings of a name", two[7]);
  MUST(shm_unlink("/conformance-across"));
  one[8] = 'y';
  FACT("without a name", two[8]);
}

// A process that writes to it ends by the signal.
static void ends(void) {
  const int fd = MUST(memfd_create("ends", 0));
  char* map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  for (int size = 0; size < 2; ++size) {
    MUST(ftruncate(fd, size));
    if (MUST(fork()) == 0) {
      map[4095] = 'x';
      _exit(0);
    }
    int status;
    wait(&status);
    FACT(size == 0 ? "empty" : "with a byte", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  }
}

static void advice(void) {
  char* map = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(map, 'x', 4 * 4096);
  CALL("give back", madvise(map, 4096, MADV_DONTNEED));
  FACT("is zero", map[0]);
  FACT("the next stays", map[4096]);
  CALL("huge pages", madvise(map, 4096, MADV_NOHUGEPAGE) == 0 || errno == EINVAL ? 0 : -1);
  CALL("unaligned", madvise(map + 1, 4096, MADV_NORMAL));
  CALL("odd advice", madvise(map, 4096, 9999));
  munmap(map + 2 * 4096, 4096);
  CALL("a hole", madvise(map, 4 * 4096, MADV_NORMAL));
  CALL("a hole to free", madvise(map, 4 * 4096, MADV_DONTNEED));
  mmap(map + 2 * 4096, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  unsigned char there[4];
  CALL("mincore", mincore(map, 4 * 4096, there));
  CALL("mincore, unaligned", mincore(map + 1, 4096, there));
  void* start = sbrk(0);
  FACT("sbrk", sbrk(100000) == start);
  memset(start, 'b', 100000);
  FACT("and back", brk(start));
  FACT("where it was", sbrk(0) == start);
}

int main(void) {
  seals();
  across();
  ends();
  advice();
}
