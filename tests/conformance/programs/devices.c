// The devices that every program expects: null, zero, full, random, and the links of /dev.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "check.h"

static void kind(const char* path) {
  struct stat status;
  if (stat(path, &status) != 0) {
    printf("%s: %s\n", path, strerrorname_np(errno));
    return;
  }
  printf("%s: %o %u:%u\n", path, status.st_mode, major(status.st_rdev), minor(status.st_rdev));
}

static void transfers(const char* path) {
  const int fd = MUST(open(path, O_RDWR));
  char bytes[64];
  memset(bytes, 'x', sizeof bytes);
  printf("%s\n", path);
  FACT("  read", read(fd, bytes, sizeof bytes));
  int zeros = 0;
  for (size_t i = 0; i < sizeof bytes; ++i) zeros += bytes[i] == 0;
  FACT("  zeros", zeros);
  CALL("  write", write(fd, bytes, sizeof bytes));
  CALL("  write nothing", write(fd, bytes, 0));
  FACT("  seek", lseek(fd, 100, SEEK_SET) >= 0);
  FACT("  pread", pread(fd, bytes, 8, 1000));
  close(fd);
}

static void randomness(const char* path) {
  const int fd = MUST(open(path, O_RDONLY));
  unsigned char one[32], two[32];
  FACT("read", read(fd, one, sizeof one));
  FACT("again", read(fd, two, sizeof two));
  FACT("differ", memcmp(one, two, sizeof one) != 0);
  static char many[100000];
  FACT("many", read(fd, many, sizeof many));
  close(fd);
}

int main(void) {
  kind("/dev/null");
  kind("/dev/zero");
  kind("/dev/full");
  kind("/dev/random");
  kind("/dev/urandom");
  transfers("/dev/null");
  transfers("/dev/zero");
  transfers("/dev/full");
  randomness("/dev/urandom");
  randomness("/dev/random");
  const int zero = MUST(open("/dev/zero", O_RDWR));
  char* map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 0);
  FACT("zero can be mapped", map != MAP_FAILED);
  FACT("and is zero", map[5000]);
  map[5000] = 'x';
  FACT("private", map[5000]);
  CALL("null can't", (long)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, MUST(open("/dev/null", O_RDWR)), 0));
  int number = 0;
  CALL("an ioctl of null", ioctl(MUST(open("/dev/null", O_RDWR)), FIONREAD, &number));
  FACT("truncated by opening", MUST(open("/dev/null", O_WRONLY | O_TRUNC | O_CREAT, 0644)) > 0);
  char target[64] = "";
  FACT("stdin is a link", readlink("/dev/stdin", target, sizeof target));
  printf("to %s\n", target);
  int ends[2];
  MUST(pipe(ends));
  char path[32];
  sprintf(path, "/dev/fd/%d", ends[1]);
  const int again = MUST(open(path, O_WRONLY));
  MUST(write(again, "through", 7));
  char text[16] = "";
  FACT("a pipe opened by its number", read(ends[0], text, sizeof text));
  struct stat status;
  MUST(stat("/dev/shm", &status));
  FACT("shared memory", status.st_mode);
  const int shm = MUST(shm_open("/conformance", O_CREAT | O_RDWR, 0600));
  MUST(ftruncate(shm, 4096));
  FACT("a file of it", fstat(shm, &status) == 0 ? status.st_size : -1);
  CALL("removed", shm_unlink("/conformance"));
  CALL("removed twice", shm_unlink("/conformance"));
  unsigned char bytes[16];
  FACT("getrandom", getrandom(bytes, sizeof bytes, 0));
  FACT("getrandom, not waiting", getrandom(bytes, sizeof bytes, GRND_NONBLOCK | GRND_RANDOM));
  CALL("odd flags", getrandom(bytes, sizeof bytes, 0x80));
  CALL("bad address", getrandom((void*)8, 8, 0));
}
