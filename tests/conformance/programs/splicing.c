// Moving bytes inside the kernel: splice, tee, sendfile, copy_file_range.
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static int file_of(const char* name, const char* text) {
  const int fd = MUST(open(name, O_CREAT | O_RDWR | O_TRUNC, 0644));
  MUST(write(fd, text, strlen(text)));
  MUST(lseek(fd, 0, SEEK_SET));
  return fd;
}

static void show(const char* what, int fd) {
  char text[64] = "";
  const ssize_t size = read(fd, text, sizeof text - 1);
  printf("%s: %s\n", what, size < 0 ? strerrorname_np(errno) : text);
}

static void show_file(const char* what, const char* name) {
  const int fd = MUST(open(name, O_RDONLY));
  show(what, fd);
  close(fd);
}

static void splices(void) {
  const int in = file_of("in", "0123456789"), out = file_of("out", "");
  int ends[2], more[2];
  MUST(pipe(ends));
  MUST(pipe2(more, O_NONBLOCK));
  FACT("file to pipe", splice(in, NULL, ends[1], NULL, 4, 0));
  FACT("position", lseek(in, 0, SEEK_CUR));
  off_t at = 8;
  FACT("from a place", splice(in, &at, ends[1], NULL, 10, 0));
  FACT("place after", at);
  FACT("tee", tee(ends[0], more[1], 100, 0));
  show("copy", more[0]);
  FACT("pipe to file", splice(ends[0], NULL, out, NULL, 100, 0));
  show_file("file", "out");
  CALL("file to file", splice(in, NULL, out, NULL, 1, 0));
  CALL("a place in a pipe", splice(ends[0], &at, out, NULL, 1, 0));
  CALL("empty, not waiting", splice(more[0], NULL, out, NULL, 1, SPLICE_F_NONBLOCK));
  CALL("tee of a file", tee(in, ends[1], 1, 0));
  CALL("to itself", tee(ends[0], ends[1], 1, 0));
  FACT("at the end", splice(in, &(off_t){100}, ends[1], NULL, 5, 0));
  MUST(write(ends[1], "Memory", 6));
  FACT("pipe to pipe", splice(ends[0], NULL, more[1], NULL, 3, 0));
  char got[8] = "";
  FACT("moved", read(more[0], got, 8));
  FACT("left", read(ends[0], got, 8));
  close(ends[1]);
  FACT("no writer", splice(ends[0], NULL, out, NULL, 1, 0));
}

static void sends(void) {
  const int in = file_of("source", "abcdefghij"), out = file_of("target", "");
  int pair[2];
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  FACT("to a socket", sendfile(pair[0], in, NULL, 5));
  show("received", pair[1]);
  off_t at = 2;
  FACT("to a file, from a place", sendfile(out, in, &at, 3));
  FACT("place after", at);
  FACT("position", lseek(in, 0, SEEK_CUR));
  FACT("more than there is", sendfile(out, in, NULL, 1000));
  FACT("at the end", sendfile(out, in, NULL, 1000));
  show_file("file", "target");
  CALL("from a socket", sendfile(out, pair[1], NULL, 5));
  CALL("to a reader", sendfile(MUST(open("target", O_RDONLY)), in, &(off_t){0}, 5));
  CALL("negative place", sendfile(out, in, &(off_t){-1}, 5));
  CALL("appending", sendfile(MUST(open("target", O_WRONLY | O_APPEND)), in, &(off_t){0}, 5));
}

static void copies(void) {
  const int in = file_of("from", "ABCDEFGHIJ"), out = file_of("to", "..........");
  FACT("copied", copy_file_range(in, NULL, out, NULL, 4, 0));
  off_t from = 6, to = 8;
  FACT("between places", copy_file_range(in, &from, out, &to, 100, 0));
  printf("places: %ld %ld\n", (long)from, (long)to);
  show_file("file", "to");
  FACT("at the end", copy_file_range(in, &(off_t){50}, out, NULL, 5, 0));
  CALL("odd flags", copy_file_range(in, NULL, out, NULL, 1, 1));
  CALL("overlapping", copy_file_range(in, &(off_t){0}, in, &(off_t){2}, 5, 0));
  FACT("apart in one file", copy_file_range(in, &(off_t){0}, in, &(off_t){20}, 5, 0));
  int ends[2];
  MUST(pipe(ends));
  CALL("a pipe", copy_file_range(ends[0], NULL, out, NULL, 1, 0));
  CALL("a folder", copy_file_range(MUST(open(".", O_RDONLY)), NULL, out, NULL, 1, 0));
  CALL("appending", copy_file_range(in, &(off_t){0}, MUST(open("to", O_WRONLY | O_APPEND)), NULL, 1, 0));
  struct stat status;
  MUST(fstat(in, &status));
  FACT("grown", status.st_size);
}

int main(void) {
  splices();
  sends();
  copies();
}
