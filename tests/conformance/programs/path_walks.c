// Paths: dots, slashes, links in the middle, *at calls from several folders, descriptors of folders that moved.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static int file_at(int folder, const char* path) {
  return openat(folder, path, O_CREAT | O_EXCL | O_WRONLY, 0644);
}

int main(void) {
  MUST(mkdir("a", 0755));
  MUST(mkdir("a/b", 0755));
  MUST(mkdir("c", 0755));
  close(MUST(file_at(AT_FDCWD, "a/b/file")));
  static const char* const kPaths[] = {"a/b/file",
                                       "./a/./b/./file",
                                       "a//b///file",
                                       "a/b/../b/file",
                                       "a/../a/b/file",
                                       "c/../a/b/file",
                                       "a/b/file/",
                                       "a/b/file/.",
                                       "a/b/file/..",
                                       "none/../a/b/file",
                                       "a/b/../../../../../../../../../../etc/passwd",
                                       "//etc//passwd",
                                       "/../etc/passwd"};
  for (size_t i = 0; i < sizeof kPaths / sizeof kPaths[0]; ++i) CALL(kPaths[i], access(kPaths[i], F_OK));
  MUST(symlink("b", "a/link"));
  MUST(symlink("../c", "a/up"));
  MUST(symlink("/etc", "etc"));
  MUST(symlink("a/link/", "slashed"));
  CALL("through a link", access("a/link/file", F_OK));
  CALL("a link up", mkdir("a/up/made", 0755));
  CALL("is there", access("c/made", F_OK));
  CALL("absolute", access("etc/passwd", F_OK));
  CALL("back from a link", access("a/up/../a/b", F_OK));
  CALL("a link with a slash", access("slashed/file", F_OK));
  struct stat one, two;
  MUST(stat("a/link", &one));
  MUST(stat("a/b", &two));
  FACT("the same folder", one.st_ino == two.st_ino);
  MUST(lstat("a/link/", &one));
  FACT("lstat with a slash follows", S_ISDIR(one.st_mode));

  const int a = MUST(open("a", O_RDONLY | O_DIRECTORY)), c = MUST(open("c", O_PATH));
  CALL("from a folder", file_at(a, "b/second"));
  CALL("absolute path, whatever folder", faccessat(999, "/etc/passwd", F_OK, 0));
  CALL("no folder", faccessat(999, "x", F_OK, 0));
  CALL("from a file", faccessat(MUST(open("a/b/file", O_RDONLY)), "x", F_OK, 0));
  CALL("mkdirat", mkdirat(c, "sub", 0700));
  CALL("symlinkat", symlinkat("target", c, "sub/link"));
  char text[16] = "";
  FACT("readlinkat", readlinkat(c, "sub/link", text, sizeof text));
  CALL("linkat", linkat(a, "b/file", c, "hard", 0));
  CALL("renameat", renameat(c, "hard", a, "b/hard"));
  CALL("unlinkat", unlinkat(a, "b/hard", 0));
  MUST(rename("a", "moved"));
  CALL("a folder that moved", faccessat(a, "b/file", F_OK, 0));
  CALL("its old name", access("a/b/file", F_OK));
  CALL("up from it", faccessat(a, "../c", F_OK, 0));
  MUST(rename("moved", "c/inner"));
  CALL("up from its new place", faccessat(a, "../sub", F_OK, 0));
  CALL("two up", faccessat(a, "../../etc", F_OK, 0));
  MUST(fchdir(a));
  CALL("from there", access("b/file", F_OK));
  CALL("and up", access("../made", F_OK));
  char path[512];
  FACT("getcwd ends with", strcmp(getcwd(path, sizeof path) + strlen(path) - 8, "/c/inner"));
  CALL("chdir up twice", chdir("../.."));
  const int gone = MUST(open("c/sub", O_RDONLY | O_DIRECTORY));
  MUST(unlink("c/sub/link"));
  MUST(rmdir("c/sub"));
  CALL("make in a removed folder", mkdirat(gone, "x", 0755));
  CALL("look in it", faccessat(gone, "x", F_OK, 0));
  CALL("dot of it", faccessat(gone, ".", F_OK, 0));
  MUST(fstat(gone, &one));
  FACT("links of it", one.st_nlink);
  FACT("AT_EMPTY_PATH", fstatat(gone, "", &two, AT_EMPTY_PATH) == 0 && one.st_ino == two.st_ino);
}
