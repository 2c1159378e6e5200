// Sizes and holes: truncate, sparse files, SEEK_DATA and SEEK_HOLE, fallocate, reads and writes past the end.
#include <fcntl.h>
#include <linux/falloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static long size_of(int fd) {
  struct stat status;
  MUST(fstat(fd, &status));
  return (long)status.st_size;
}

static long blocks_of(int fd) {
  struct stat status;
  MUST(fstat(fd, &status));
  return (long)status.st_blocks;
}

static int zeros(int fd, off_t from, size_t size) {
  char bytes[4096];
  for (size_t done = 0; done < size; done += sizeof bytes) {
    if (pread(fd, bytes, sizeof bytes, from + (off_t)done) != sizeof bytes) return -1;
    for (size_t i = 0; i < sizeof bytes; ++i) {
      if (bytes[i] != 0) return 0;
    }
  }
  return 1;
}

int main(void) {
  const int fd = MUST(open("file", O_CREAT | O_RDWR, 0644));
  FACT("write far out", pwrite(fd, "end", 3, 1 << 20));
  FACT("size", size_of(fd));
  FACT("is sparse", blocks_of(fd) < 2048);
  FACT("hole reads as zeros", zeros(fd, 0, 1 << 20));
  FACT("first data", lseek(fd, 0, SEEK_DATA));
  FACT("first hole", lseek(fd, 0, SEEK_HOLE));
  FACT("hole after the data", lseek(fd, 1 << 20, SEEK_HOLE));
  CALL("data after the end", lseek(fd, 2 << 20, SEEK_DATA));
  CALL("hole after the end", lseek(fd, 2 << 20, SEEK_HOLE));
  CALL("before the start", lseek(fd, -1, SEEK_SET));
  CALL("unknown whence", lseek(fd, 0, 99));
  FACT("past the end", lseek(fd, 10, SEEK_END) - size_of(fd));
  CALL("cut", ftruncate(fd, 100));
  FACT("size", size_of(fd));
  CALL("grow", ftruncate(fd, 20000));
  FACT("zeros", zeros(fd, 0, 16384));
  CALL("negative", ftruncate(fd, -1));
  CALL("by path", truncate("file", 8192));
  FACT("size", size_of(fd));
  CALL("of a folder", truncate(".", 0));
  CALL("of missing", truncate("none", 0));
  const int reader = MUST(open("file", O_RDONLY));
  CALL("of one opened to read", ftruncate(reader, 0));

  char page[8192];
  memset(page, 'x', sizeof page);
  MUST(pwrite(fd, page, sizeof page, 0));
  CALL("allocate more", fallocate(fd, 0, 0, 65536));
  FACT("size", size_of(fd));
  CALL("keeping the size", fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 1 << 20));
  FACT("size", size_of(fd));
  CALL("punch", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
  FACT("is zero", zeros(fd, 0, 4096));
  FACT("the rest is not", zeros(fd, 4096, 4096));
  CALL("punch alone", fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 4096));
  CALL("nothing", fallocate(fd, 0, 0, 0));
  CALL("read only", fallocate(reader, 0, 0, 1));
  CALL("posix_fallocate", posix_fallocate(fd, 0, 100) == 0 ? 0 : -1);

  signal(SIGXFSZ, SIG_IGN);
  const struct rlimit limit = {100000, RLIM_INFINITY};
  MUST(setrlimit(RLIMIT_FSIZE, &limit));
  FACT("up to the limit", pwrite(fd, page, sizeof page, 99000));
  CALL("at the limit", pwrite(fd, page, 1, 100000));
  CALL("growing past it", ftruncate(fd, 200000));
  FACT("size", size_of(fd));
  FACT("read past the end", pread(fd, page, 10, 1 << 22));
  CALL("write at a negative place", pwrite(fd, page, 1, -5));
}
