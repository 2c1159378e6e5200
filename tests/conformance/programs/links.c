// Hard and symbolic links: counts, loops, dangling ones, what follows them and what does not.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static long links_of(const char* path) {
  struct stat status;
  return lstat(path, &status) == 0 ? (long)status.st_nlink : -errno;
}

static void hard(void) {
  close(MUST(open("file", O_CREAT | O_WRONLY, 0644)));
  FACT("one link", links_of("file"));
  CALL("link", link("file", "second"));
  FACT("two links", links_of("file"));
  CALL("taken", link("file", "second"));
  CALL("of missing", link("none", "x"));
  MUST(mkdir("folder", 0755));
  CALL("of a folder", link("folder", "x"));
  CALL("onto a folder's name", link("file", "folder"));
  CALL("with a slash", link("file", "x/"));
  CALL("unlink", unlink("file"));
  FACT("the other stays", links_of("second"));
  const int fd = MUST(open("second", O_RDWR));
  MUST(unlink("second"));
  struct stat status;
  MUST(fstat(fd, &status));
  FACT("none left", status.st_nlink);
  CALL("unlink a folder", unlink("folder"));
  CALL("unlink missing", unlink("none"));
  CALL("unlink with a slash", unlink("folder/"));
  FACT("folder's links", links_of("folder"));
  MUST(mkdir("folder/sub", 0755));
  FACT("with one below", links_of("folder"));
}

static void symbolic(void) {
  CALL("symlink", symlink("target", "dangling"));
  CALL("taken", symlink("other", "dangling"));
  CALL("empty target", symlink("", "x"));
  char text[8];
  memset(text, '.', sizeof text);
  FACT("readlink cuts", readlink("dangling", text, 3));
  printf("cut: %.4s\n", text);
  CALL("readlink of a folder", readlink("folder", text, sizeof text));
  CALL("readlink, no room", readlink("dangling", text, 0));
  CALL("open dangling", open("dangling", O_RDONLY));
  CALL("create through it", open("dangling", O_CREAT | O_WRONLY, 0644));
  FACT("its target is there", links_of("target"));
  CALL("exclusive through it", open("dangling", O_CREAT | O_EXCL | O_WRONLY, 0644));
  CALL("without following", open("dangling", O_NOFOLLOW | O_RDONLY));
  CALL("place of a link", open("dangling", O_PATH | O_NOFOLLOW));
  struct stat status;
  MUST(lstat("dangling", &status));
  FACT("size of a link", status.st_size);
  FACT("mode of a link", status.st_mode);
  MUST(symlink("loop2", "loop1"));
  MUST(symlink("loop1", "loop2"));
  CALL("a loop", open("loop1", O_RDONLY));
  CALL("stat of a loop", stat("loop1", &status));
  CALL("unlink of a loop", unlink("loop1"));
}

static void chains(void) {
  char name[16], target[16];
  close(MUST(open("link0", O_CREAT | O_WRONLY, 0644)));
  for (int i = 1; i <= 45; ++i) {
    sprintf(name, "link%d", i);
    sprintf(target, "link%d", i - 1);
    MUST(symlink(target, name));
  }
  CALL("40 links", access("link40", F_OK));
  CALL("41 links", access("link41", F_OK));
  MUST(symlink("folder", "to_folder"));
  CALL("through a folder", access("to_folder/sub", F_OK));
  CALL("and back", access("to_folder/../link0", F_OK));
  CALL("rmdir of a link", rmdir("to_folder"));
  CALL("mkdir on a link", mkdir("to_folder", 0755));
  CALL("linkat of the link", linkat(AT_FDCWD, "to_folder", AT_FDCWD, "copy", 0));
  FACT("is a link still", links_of("copy"));
  CALL("linkat following", linkat(AT_FDCWD, "link3", AT_FDCWD, "followed", AT_SYMLINK_FOLLOW));
  struct stat status;
  MUST(lstat("followed", &status));
  FACT("is the file", S_ISREG(status.st_mode));
}

int main(void) {
  hard();
  symbolic();
  chains();
}
