// Locks between processes: fcntl(2) record locks, open file description locks, flock(2).
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int lock(int fd, int command, short type, off_t start, off_t size) {
  struct flock wanted = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = size};
  return fcntl(fd, command, &wanted);
}

// What a child sees at a place: "free", or the type, range and whether its owner is the parent.
static void look(const char* what, off_t start, off_t size) {
  fflush(stdout);
  if (MUST(fork()) == 0) {
    const int fd = MUST(open("file", O_RDWR));
    struct flock found = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = size};
    MUST(fcntl(fd, F_GETLK, &found));
    if (found.l_type == F_UNLCK) {
      printf("%s: free\n", what);
    } else {
      printf("%s: %s from %ld, %ld bytes, of %s\n", what, found.l_type == F_RDLCK ? "read" : "write",
             (long)found.l_start, (long)found.l_len,
             found.l_pid == getppid() ? "the parent"
             : found.l_pid == -1      ? "a description"
                                      : "another");
    }
    fflush(stdout);
    _exit(0);
  }
  wait(NULL);
}

static void records(void) {
  const int fd = MUST(open("file", O_RDWR));
  CALL("write lock", lock(fd, F_SETLK, F_WRLCK, 10, 20));
  look("inside", 15, 1);
  look("before", 0, 10);
  look("all", 0, 0);
  CALL("a hole in it", lock(fd, F_SETLK, F_UNLCK, 15, 5));
  look("in the hole", 15, 5);
  look("after it", 20, 5);
  CALL("part of it to read", lock(fd, F_SETLK, F_RDLCK, 20, 5));
  look("read part", 20, 1);
  look("rest", 25, 1);
  CALL("one's own is no obstacle", lock(fd, F_SETLK, F_WRLCK, 0, 0));
  look("to the end", 1000, 1);
  CALL("negative size", lock(fd, F_SETLK, F_UNLCK, 100, -50));
  look("freed", 60, 10);
  CALL("before the start", lock(fd, F_SETLK, F_WRLCK, 10, -20));
  CALL("odd type", lock(fd, F_SETLK, 77, 0, 1));
  const int reader = MUST(open("file", O_RDONLY));
  CALL("write lock of a reader", lock(reader, F_SETLK, F_WRLCK, 0, 1));
  close(reader);
  look("any close frees all", 0, 0);
}

static void blocking(void) {
  const int fd = MUST(open("file", O_RDWR));
  MUST(lock(fd, F_SETLK, F_WRLCK, 0, 1));
  int ends[2];
  MUST(pipe(ends));
  fflush(stdout);
  if (MUST(fork()) == 0) {
    const int own = MUST(open("file", O_RDWR));
    CALL("taken", lock(own, F_SETLK, F_WRLCK, 0, 1));
    fflush(stdout);
    MUST(write(ends[1], "x", 1));
    CALL("after waiting", lock(own, F_SETLKW, F_WRLCK, 0, 1));
    fflush(stdout);
    _exit(0);
  }
  char byte;
  MUST(read(ends[0], &byte, 1));
  usleep(20000);
  MUST(lock(fd, F_SETLK, F_UNLCK, 0, 1));
  wait(NULL);
}

static void descriptions(void) {
  const int fd = MUST(open("file", O_RDWR)), other = MUST(open("file", O_RDWR));
  CALL("of a description", lock(fd, F_OFD_SETLK, F_WRLCK, 0, 10));
  CALL("another of the same process", lock(other, F_OFD_SETLK, F_WRLCK, 5, 1));
  look("seen by others", 0, 1);
  const int copy = MUST(dup(fd));
  close(fd);
  CALL("a copy keeps it", lock(other, F_OFD_SETLK, F_WRLCK, 5, 1));
  close(copy);
  CALL("the last close frees", lock(other, F_OFD_SETLK, F_WRLCK, 5, 1));
  close(other);
}

static void whole_files(void) {
  const int fd = MUST(open("file", O_RDWR)), other = MUST(open("file", O_RDONLY));
  CALL("shared", flock(fd, LOCK_SH));
  CALL("another shared", flock(other, LOCK_SH | LOCK_NB));
  CALL("exclusive", flock(fd, LOCK_EX | LOCK_NB));
  CALL("one goes", flock(other, LOCK_UN));
  CALL("exclusive", flock(fd, LOCK_EX | LOCK_NB));
  CALL("taken", flock(other, LOCK_SH | LOCK_NB));
  fflush(stdout);
  if (MUST(fork()) == 0) {
    CALL("a child has it too", flock(fd, LOCK_EX | LOCK_NB));
    fflush(stdout);
    _exit(0);
  }
  wait(NULL);
  CALL("taken still", flock(other, LOCK_SH | LOCK_NB));
  CALL("records are apart", lock(fd, F_SETLK, F_WRLCK, 0, 1));
  CALL("no kind", flock(fd, LOCK_NB));
  close(fd);
  CALL("freed", flock(other, LOCK_EX | LOCK_NB));
}

int main(void) {
  const int fd = MUST(open("file", O_CREAT | O_RDWR, 0644));
  MUST(ftruncate(fd, 100));
  close(fd);
  records();
  blocking();
  descriptions();
  whole_files();
}
