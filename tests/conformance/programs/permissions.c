// Modes of files: chmod, umask, access, what an ordinary user may not do.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static int mode_of(const char* path) {
  struct stat status;
  MUST(stat(path, &status));
  return status.st_mode & 07777;
}

static void modes(void) {
  for (int mask = 0; mask <= 0777; mask += 077) {
    umask((mode_t)mask);
    char name[16];
    sprintf(name, "file%o", mask);
    close(MUST(open(name, O_CREAT | O_WRONLY, 0777)));
    printf("mask %o: %o\n", mask, mode_of(name));
  }
  FACT("umask told", umask(022));
  CALL("chmod", chmod("file0", 0750));
  FACT("mode", mode_of("file0"));
  CALL("sticky", chmod("file0", 01777));
  FACT("mode", mode_of("file0"));
  CALL("fchmodat", fchmodat(AT_FDCWD, "file0", 0640, 0));
  CALL("missing", chmod("none", 0644));
  CALL("another's", chmod("/etc/passwd", 0644) < 0 && (errno == EPERM || errno == EROFS) ? 0 : -1);
  MUST(mkdir("folder", 01755));
  printf("sticky of a new folder: %o\n", mode_of("folder") & 01000);
  MUST(mkdir("folder/inherits", 0755));
  printf("not inherited: %o\n", mode_of("folder/inherits") & 01000);
}

static void rights(void) {
  close(MUST(open("file", O_CREAT | O_WRONLY, 0644)));
  MUST(chmod("file", 0));
  CALL("read", open("file", O_RDONLY));
  CALL("write", open("file", O_WRONLY));
  CALL("is there", access("file", F_OK));
  CALL("access to read", access("file", R_OK));
  CALL("odd access", access("file", 9));
  MUST(chmod("file", 0400));
  CALL("read", open("file", O_RDONLY));
  CALL("write", open("file", O_WRONLY));
  CALL("truncate", truncate("file", 0));
  CALL("both", open("file", O_RDWR));
  CALL("remove it all the same", unlink("file"));
  MUST(mkdir("shut", 0755));
  close(MUST(open("shut/file", O_CREAT | O_WRONLY, 0644)));
  MUST(chmod("shut", 0600));
  CALL("search", access("shut/file", F_OK));
  CALL("list", open("shut", O_RDONLY | O_DIRECTORY));
  MUST(chmod("shut", 0500));
  CALL("search", access("shut/file", F_OK));
  CALL("create", open("shut/new", O_CREAT | O_WRONLY, 0644));
  CALL("remove", unlink("shut/file"));
  CALL("rename within", rename("shut/file", "shut/other"));
  CALL("rename out", rename("shut/file", "out"));
  MUST(chmod("shut", 0300));
  CALL("list", open("shut", O_RDONLY | O_DIRECTORY));
  CALL("create", open("shut/new", O_CREAT | O_WRONLY, 0644));
  CALL("enter", chdir("shut"));
  CALL("back", chdir(".."));
  MUST(chmod("shut", 0));
  CALL("enter", chdir("shut"));
  MUST(chmod("shut", 0700));
  CALL("root's", open("/etc/shadow", O_RDONLY) < 0 && (errno == EACCES || errno == ENOENT) ? 0 : -1);
  CALL("run what can't be run", execl("out of here", "x", NULL));
  close(MUST(open("plain", O_CREAT | O_WRONLY, 0644)));
  CALL("run what is no program", execl("./plain", "x", NULL));
  CALL("faccessat of a link", faccessat(AT_FDCWD, "plain", R_OK, AT_SYMLINK_NOFOLLOW));
  CALL("faccessat with effective ids", faccessat(AT_FDCWD, "plain", W_OK, AT_EACCESS));
}

int main(void) {
  modes();
  rights();
}
