// Times of files: what sets them, utimensat in its forms, what stat and statx tell.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include "check.h"

static struct stat status;

static const struct stat* look(const char* path) {
  MUST(stat(path, &status));
  return &status;
}

static int later(const struct timespec* one, const struct timespec* other) {
  return one->tv_sec > other->tv_sec || (one->tv_sec == other->tv_sec && one->tv_nsec > other->tv_nsec);
}

static void changes(void) {
  const int fd = MUST(open("file", O_CREAT | O_RDWR, 0644));
  struct stat before = *look("file");
  usleep(20000);
  MUST(write(fd, "x", 1));
  look("file");
  printf("write: m %d c %d\n", later(&status.st_mtim, &before.st_mtim), later(&status.st_ctim, &before.st_ctim));
  before = status;
  usleep(20000);
  MUST(chmod("file", 0600));
  look("file");
  printf("chmod: m %d c %d\n", later(&status.st_mtim, &before.st_mtim), later(&status.st_ctim, &before.st_ctim));
  before = status;
  usleep(20000);
  MUST(link("file", "second"));
  look("file");
  printf("link: m %d c %d\n", later(&status.st_mtim, &before.st_mtim), later(&status.st_ctim, &before.st_ctim));
  MUST(mkdir("folder", 0755));
  before = *look("folder");
  usleep(20000);
  close(MUST(open("folder/new", O_CREAT | O_WRONLY, 0644)));
  look("folder");
  printf("a name more: m %d c %d\n", later(&status.st_mtim, &before.st_mtim), later(&status.st_ctim, &before.st_ctim));
  before = status;
  usleep(20000);
  MUST(unlink("folder/new"));
  look("folder");
  printf("a name less: m %d c %d\n", later(&status.st_mtim, &before.st_mtim), later(&status.st_ctim, &before.st_ctim));
  before = *look("file");
  usleep(20000);
  MUST(ftruncate(fd, 1));
  look("file");
  printf("truncate to its size: m %d c %d\n", later(&status.st_mtim, &before.st_mtim),
         later(&status.st_ctim, &before.st_ctim));
}

static void setting(void) {
  const struct timespec times[2] = {{1000000000, 123456789}, {2000000000, 987654321}};
  CALL("utimensat", utimensat(AT_FDCWD, "file", times, 0));
  look("file");
  printf("a %ld.%09ld m %ld.%09ld\n", status.st_atim.tv_sec, status.st_atim.tv_nsec, status.st_mtim.tv_sec,
         status.st_mtim.tv_nsec);
  const struct timespec partly[2] = {{0, UTIME_OMIT}, {5, 6}};
  CALL("one of them", utimensat(AT_FDCWD, "file", partly, 0));
  look("file");
  printf("a %ld m %ld.%09ld\n", status.st_atim.tv_sec, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  const struct timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  CALL("now", utimensat(AT_FDCWD, "file", now, 0));
  look("file");
  printf("a is now %d m %ld\n", status.st_atim.tv_sec > 1700000000, status.st_mtim.tv_sec);
  const struct timespec neither[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
  CALL("neither", utimensat(AT_FDCWD, "file", neither, 0));
  const struct timespec wrong[2] = {{0, 1000000000}, {0, 0}};
  CALL("wrong time", utimensat(AT_FDCWD, "file", wrong, 0));
  CALL("missing", utimensat(AT_FDCWD, "none", times, 0));
  CALL("odd flags", utimensat(AT_FDCWD, "file", times, 0x800000));
  MUST(symlink("file", "link"));
  CALL("of a link", utimensat(AT_FDCWD, "link", times, AT_SYMLINK_NOFOLLOW));
  MUST(lstat("link", &status));
  FACT("the link's", status.st_mtim.tv_sec);
  FACT("not the file's", look("file")->st_mtim.tv_sec);
  const struct timeval old[2] = {{77, 5}, {88, 6}};
  CALL("utimes", utimes("file", old));
  look("file");
  printf("a %ld.%09ld m %ld.%09ld\n", status.st_atim.tv_sec, status.st_atim.tv_nsec, status.st_mtim.tv_sec,
         status.st_mtim.tv_nsec);
  const struct utimbuf oldest = {11, 22};
  CALL("utime", utime("file", &oldest));
  FACT("m", look("file")->st_mtim.tv_sec);
  CALL("futimens", futimens(MUST(open("file", O_RDONLY)), NULL));
  FACT("is now", look("file")->st_mtim.tv_sec > 1700000000);
  CALL("another's file",
       utimensat(AT_FDCWD, "/etc/passwd", times, 0) < 0 && (errno == EPERM || errno == EROFS) ? 0 : -1);
}

static void extended(void) {
  struct statx facts;
  CALL("statx", statx(AT_FDCWD, "file", 0, STATX_BASIC_STATS | STATX_BTIME, &facts));
  FACT("mask", (facts.stx_mask & STATX_BASIC_STATS) == STATX_BASIC_STATS);
  FACT("mode", facts.stx_mode);
  FACT("links", facts.stx_nlink);
  FACT("size", facts.stx_size);
  FACT("born before now", facts.stx_btime.tv_sec > 1700000000);
  look("file");
  FACT("same inode", facts.stx_ino == status.st_ino);
  CALL("of a descriptor", statx(MUST(open("file", O_RDONLY)), "", AT_EMPTY_PATH, STATX_SIZE, &facts));
  CALL("missing", statx(AT_FDCWD, "none", 0, STATX_SIZE, &facts));
  CALL("odd mask", statx(AT_FDCWD, "file", 0, 0x80000000, &facts));
  CALL("odd flags", statx(AT_FDCWD, "file", 0x1000000, STATX_SIZE, &facts));
  CALL("bad address", statx(AT_FDCWD, "file", 0, STATX_SIZE, (struct statx*)8));
  CALL("stat, bad address", stat("file", (struct stat*)8));
  CALL("stat, bad path", stat((char*)8, &status));
}

int main(void) {
  changes();
  setting();
  extended();
}
