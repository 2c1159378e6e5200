// rename(2) and renameat2(2): what replaces what, which errors, exchange and no-replace, open files across it.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static void make(const char* path, const char* text) {
  const int fd = MUST(open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644));
  MUST(write(fd, text, strlen(text)));
  close(fd);
}

static void show(const char* what, const char* path) {
  char text[64] = "";
  const int fd = open(path, O_RDONLY);
  if (fd < 0) {
    printf("%s: %s\n", what, strerrorname_np(errno));
    return;
  }
  const ssize_t size = read(fd, text, sizeof text - 1);
  printf("%s: %s\n", what, size < 0 ? strerrorname_np(errno) : text);
  close(fd);
}

static void files(void) {
  make("a", "A");
  make("b", "B");
  CALL("onto a file", rename("a", "b"));
  show("source", "a");
  show("target", "b");
  CALL("missing", rename("none", "c"));
  CALL("onto itself", rename("b", "b"));
  make("c", "C");
  MUST(link("c", "hard"));
  CALL("onto its own link", rename("c", "hard"));
  show("both stay", "c");
  CALL("with a slash", rename("c", "d/"));
  CALL("below a file", rename("c", "b/c"));
  CALL("into a missing folder", rename("c", "none/c"));
  CALL("empty name", rename("c", ""));
  const int fd = MUST(open("c", O_RDWR));
  MUST(rename("c", "moved"));
  FACT("open file lives on", write(fd, "X", 1));
  show("and has moved", "moved");
  close(fd);
}

static void folders(void) {
  MUST(mkdir("empty", 0755));
  MUST(mkdir("full", 0755));
  make("full/file", "F");
  CALL("folder onto an empty one", rename("full", "empty"));
  show("its file", "empty/file");
  MUST(mkdir("other", 0755));
  CALL("onto a full one", rename("other", "empty"));
  CALL("folder onto a file", rename("other", "b"));
  CALL("file onto a folder", rename("b", "other"));
  CALL("into itself", rename("empty", "empty/sub"));
  MUST(mkdir("empty/sub", 0755));
  CALL("onto its ancestor", rename("empty/sub", "empty"));
  CALL("dot", rename("empty/.", "x"));
  CALL("dot dot", rename("empty/..", "x"));
  CALL("onto dot", rename("other", "empty/."));
  CALL("the root", rename("/", "x"));
  struct stat before, after;
  MUST(stat("empty", &before));
  MUST(rename("empty/sub", "sub"));
  MUST(stat("empty", &after));
  FACT("links lost", before.st_nlink - after.st_nlink);
  CALL("folder with a slash", rename("sub/", "sub2/"));
}

static void flags(void) {
  make("one", "1");
  make("two", "2");
  CALL("no replace, taken", renameat2(AT_FDCWD, "one", AT_FDCWD, "two", RENAME_NOREPLACE));
  CALL("no replace, free", renameat2(AT_FDCWD, "one", AT_FDCWD, "three", RENAME_NOREPLACE));
  CALL("exchange", renameat2(AT_FDCWD, "two", AT_FDCWD, "three", RENAME_EXCHANGE));
  show("two", "two");
  show("three", "three");
  CALL("exchange with missing", renameat2(AT_FDCWD, "two", AT_FDCWD, "none", RENAME_EXCHANGE));
  MUST(mkdir("folder", 0755));
  CALL("exchange file and folder", renameat2(AT_FDCWD, "two", AT_FDCWD, "folder", RENAME_EXCHANGE));
  show("folder is a file", "folder");
  CALL("both flags", renameat2(AT_FDCWD, "two", AT_FDCWD, "three", RENAME_EXCHANGE | RENAME_NOREPLACE));
  CALL("unknown flag", renameat2(AT_FDCWD, "two", AT_FDCWD, "three", 64));
  const int at = MUST(open("two", O_RDONLY | O_DIRECTORY));
  make("outside", "O");
  CALL("between folders", renameat(AT_FDCWD, "outside", at, "inside"));
  show("inside", "two/inside");
  MUST(symlink("three", "link"));
  CALL("a link itself", rename("link", "two/link"));
  char target[16] = "";
  FACT("its target", readlink("two/link", target, sizeof target));
}

int main(void) {
  files();
  folders();
  flags();
}
