// Reading and writing in parts: readv, writev, preadv, pwritev and their second versions, bad addresses in the middle.
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check.h"

static void files(void) {
  const int fd = MUST(open("file", O_CREAT | O_RDWR, 0644));
  char one[] = "one", two[] = "twotwo", three[] = "";
  struct iovec out[3] = {{one, 3}, {three, 0}, {two, 6}};
  FACT("writev", writev(fd, out, 3));
  FACT("pwritev", pwritev(fd, out, 3, 20));
  FACT("position", lseek(fd, 0, SEEK_CUR));
  char a[4] = "", b[20] = "";
  struct iovec in[2] = {{a, 3}, {b, 19}};
  FACT("preadv", preadv(fd, in, 2, 0));
  printf("parts: %s %s\n", a, b);
  FACT("readv at the end", readv(fd, in, 2));
  MUST(lseek(fd, 26, SEEK_SET));
  FACT("a short one", readv(fd, in, 2));
  FACT("none", readv(fd, in, 0));
  CALL("too many", readv(fd, in, IOV_MAX + 1));
  CALL("negative", readv(fd, in, -1));
  struct iovec huge[2] = {{a, SIZE_MAX / 2}, {b, SIZE_MAX / 2}};
  CALL("too much", writev(fd, huge, 2));
  CALL("no vector", readv(fd, (struct iovec*)8, 1));
  FACT("preadv2", preadv2(fd, in, 2, 0, 0));
  FACT("preadv2 at the position", preadv2(fd, in, 1, -1, 0));
  CALL("unknown flag", preadv2(fd, in, 1, 0, 1 << 20));
  FACT("appending", pwritev2(fd, out, 1, 0, RWF_APPEND));
  CALL("negative offset", preadv(fd, in, 1, -1));
}

static void bad_addresses(void) {
  char* pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(pages, 'p', 8192);
  MUST(munmap(pages + 4096, 4096));
  int ends[2];
  MUST(pipe(ends));
  char good[] = "good";
  struct iovec out[2] = {{good, 4}, {(void*)8, 4}};
  const ssize_t written = writev(ends[1], out, 2);
  FACT("good, then bad", written == 4 || (written < 0 && errno == EFAULT));
  struct iovec bad[1] = {{(void*)8, 4}};
  CALL("bad", writev(ends[1], bad, 1));
  CALL("read to a bad place", read(MUST(open("file", O_RDONLY)), (void*)8, 4));
  const int fd = MUST(open("over", O_CREAT | O_RDWR, 0644));
  CALL("write from a hole", write(fd, pages + 4096, 10));
  FACT("nothing of nothing", write(fd, NULL, 0));
  FACT("read nothing", read(fd, NULL, 0));
  CALL("closed", write(999, good, 4));
  CALL("of a folder", write(MUST(open(".", O_RDONLY)), good, 4));
}

static void streams(void) {
  int ends[2];
  MUST(pipe(ends));
  char text[] = "stream", got[8] = "";
  struct iovec part = {text, 6};
  FACT("pipe", writev(ends[1], &part, 1));
  CALL("pread of a pipe", pread(ends[0], got, 1, 0));
  CALL("pwrite of a pipe", pwrite(ends[1], got, 1, 0));
  CALL("lseek of a pipe", lseek(ends[0], 0, SEEK_SET));
  FACT("preadv2 without a place", preadv2(ends[0], &part, 1, -1, 0));
  CALL("read of the writing end", read(ends[1], got, 1));
  CALL("write of the reading end", write(ends[0], got, 1));
}

int main(void) {
  files();
  bad_addresses();
  streams();
}
