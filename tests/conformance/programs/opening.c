// open(2): what its flags do, what F_GETFL tells, files without a name, places.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

static long size_of(const char* path) {
  struct stat status;
  return stat(path, &status) == 0 ? (long)status.st_size : -errno;
}

static void creating(void) {
  CALL("missing", open("a", O_RDONLY));
  CALL("create", open("a", O_CREAT | O_RDWR, 0600));
  CALL("exclusive, taken", open("a", O_CREAT | O_EXCL | O_RDWR, 0600));
  struct stat status;
  MUST(stat("a", &status));
  FACT("mode", status.st_mode & 07777);
  const int fd = MUST(open("a", O_WRONLY));
  MUST(write(fd, "hello", 5));
  char byte;
  CALL("read of a written one", read(fd, &byte, 1));
  close(fd);
  const int reader = MUST(open("a", O_RDONLY));
  CALL("write of a read one", write(reader, "x", 1));
  CALL("truncate on opening", open("a", O_WRONLY | O_TRUNC));
  FACT("size", size_of("a"));
  FACT("read at its end", read(reader, &byte, 1));
  CALL("a folder, for O_DIRECTORY", open(".", O_RDONLY | O_DIRECTORY));
  CALL("a file, for O_DIRECTORY", open("a", O_RDONLY | O_DIRECTORY));
  CALL("create a folder", open("b/", O_CREAT | O_WRONLY, 0644));
  CALL("mode with odd bits", open("odd", O_CREAT | O_WRONLY, 01777));
  MUST(stat("odd", &status));
  FACT("mode of it", status.st_mode & 07777);
  const int none = MUST(open("closed", O_CREAT | O_WRONLY, 0));
  FACT("writing without a right in the mode", write(none, "x", 1));
  CALL("opening it again", open("closed", O_WRONLY));
}

static void appending(void) {
  const int fd = MUST(open("log", O_CREAT | O_RDWR | O_APPEND, 0644));
  MUST(write(fd, "one", 3));
  MUST(lseek(fd, 0, SEEK_SET));
  MUST(write(fd, "two", 3));
  FACT("position", lseek(fd, 0, SEEK_CUR));
  FACT("pwrite appends", pwrite(fd, "six", 3, 0));
  char text[16] = "";
  FACT("all", pread(fd, text, sizeof text, 0));
  printf("text: %s\n", text);
  FACT("flags", (fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK)));
  MUST(fcntl(fd, F_SETFL, O_NONBLOCK));
  FACT("flags set", (fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK)));
  MUST(pwrite(fd, "TWO", 3, 0));
  MUST(pread(fd, text, sizeof text, 0));
  printf("text: %s\n", text);
}

static void places(void) {
  const int fd = MUST(open("log", O_PATH));
  char byte;
  struct stat status;
  CALL("read of a place", read(fd, &byte, 1));
  CALL("stat of a place", fstat(fd, &status));
  CALL("ioctl of a place", fchmod(fd, 0600));
  FACT("flags", fcntl(fd, F_GETFL) & (O_PATH | O_ACCMODE));
  const int folder = MUST(open(".", O_PATH | O_DIRECTORY));
  CALL("below a place", openat(folder, "log", O_RDONLY));
  CALL("below a file's place", openat(fd, "x", O_RDONLY));
  CALL("empty path", fstatat(fd, "", &status, AT_EMPTY_PATH));
  CALL("empty path without the flag", fstatat(fd, "", &status, 0));
  char path[64];
  sprintf(path, "/proc/self/fd/%d", fd);
  CALL("opened anew", open(path, O_RDONLY));
}

static void nameless(void) {
  const int fd = open(".", O_TMPFILE | O_RDWR, 0600);
  CALL("O_TMPFILE", fd);
  FACT("write", write(fd, "text", 4));
  struct stat status;
  MUST(fstat(fd, &status));
  FACT("links", status.st_nlink);
  char path[64];
  sprintf(path, "/proc/self/fd/%d", fd);
  CALL("gets a name", linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
  FACT("size", size_of("named"));
  CALL("read only", open(".", O_TMPFILE | O_RDONLY, 0600));
}

static void resolving(void) {
  MUST(mkdir("in", 0755));
  MUST(symlink("/", "in/root"));
  MUST(symlink("../log", "in/up"));
  const int folder = MUST(open("in", O_PATH | O_DIRECTORY));
  struct open_how how = {.flags = O_RDONLY, .resolve = RESOLVE_BENEATH};
  CALL("beneath: dot dot", syscall(SYS_openat2, folder, "../log", &how, sizeof how));
  CALL("beneath: absolute", syscall(SYS_openat2, folder, "/etc", &how, sizeof how));
  CALL("beneath: a link up", syscall(SYS_openat2, folder, "up", &how, sizeof how));
  how.resolve = RESOLVE_IN_ROOT;
  CALL("in root: a link to /", syscall(SYS_openat2, folder, "root", &how, sizeof how));
  how.resolve = RESOLVE_NO_SYMLINKS;
  CALL("no links", syscall(SYS_openat2, folder, "root", &how, sizeof how));
  how.resolve = 1 << 20;
  CALL("unknown", syscall(SYS_openat2, folder, "root", &how, sizeof how));
  how.resolve = 0;
  CALL("too small", syscall(SYS_openat2, folder, "root", &how, 8));
  how.mode = 0600;
  CALL("mode without O_CREAT", syscall(SYS_openat2, folder, "root", &how, sizeof how));
}

int main(void) {
  creating();
  appending();
  places();
  nameless();
  resolving();
}
