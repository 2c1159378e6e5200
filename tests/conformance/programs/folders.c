// Folders: making, removing, reading in parts, working folders, names and their limits.
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static int count(const char* path) {
  DIR* folder = opendir(path);
  if (folder == NULL) return -errno;
  int entries = 0;
  while (readdir(folder) != NULL) ++entries;
  closedir(folder);
  return entries;
}

static void making(void) {
  CALL("mkdir", mkdir("a", 0755));
  CALL("taken", mkdir("a", 0755));
  CALL("below missing", mkdir("none/b", 0755));
  CALL("with slashes", mkdir("b///", 0755));
  CALL("dot", mkdir(".", 0755));
  CALL("the root", mkdir("/", 0755));
  CALL("rmdir of missing", rmdir("none"));
  CALL("rmdir of dot", rmdir("a/."));
  CALL("rmdir of dot dot", rmdir("a/.."));
  MUST(mkdir("a/sub", 0755));
  CALL("rmdir of a full one", rmdir("a"));
  CALL("unlinkat", unlinkat(AT_FDCWD, "a/sub", AT_REMOVEDIR));
  CALL("rmdir", rmdir("a"));
  close(MUST(open("file", O_CREAT | O_WRONLY, 0644)));
  CALL("rmdir of a file", rmdir("file"));
  CALL("unlinkat of a file as a folder", unlinkat(AT_FDCWD, "file", AT_REMOVEDIR));
  umask(027);
  MUST(mkdir("masked", 0777));
  struct stat status;
  MUST(stat("masked", &status));
  FACT("mode", status.st_mode & 07777);
  FACT("size", status.st_size);
  umask(022);
  MUST(symlink("x", "masked/link"));
  MUST(mkdir("masked/sub", 0755));
  MUST(stat("masked", &status));
  FACT("size with two names", status.st_size);
}

static void reading(void) {
  char name[32];
  MUST(mkdir("many", 0755));
  for (int i = 0; i < 1000; ++i) {
    sprintf(name, "many/entry-%d", i);
    close(MUST(open(name, O_CREAT | O_WRONLY, 0644)));
  }
  FACT("entries", count("many"));
  FACT("of a file", count("file"));
  FACT("of missing", count("none"));
  DIR* folder = opendir("many");
  for (int i = 0; i < 500; ++i) readdir(folder);
  const long place = telldir(folder);
  const struct dirent* entry = readdir(folder);
  char here[256];
  strcpy(here, entry->d_name);
  readdir(folder);
  seekdir(folder, place);
  FACT("seekdir", strcmp(readdir(folder)->d_name, here));
  rewinddir(folder);
  int types = 0, removed = 0;
  while ((entry = readdir(folder)) != NULL) {
    if (entry->d_type == DT_REG) ++types;
    if (entry->d_name[0] != '.' && unlinkat(dirfd(folder), entry->d_name, 0) == 0) ++removed;
  }
  closedir(folder);
  FACT("types", types);
  FACT("removed while reading", removed);
  FACT("left", count("many"));
  const int fd = MUST(open("many", O_RDONLY));
  char byte;
  CALL("read of a folder", read(fd, &byte, 1));
  CALL("open for writing", open("many", O_WRONLY));
  CALL("create over it", open("many", O_CREAT | O_RDONLY, 0644));
  close(fd);
}

static void working_folders(void) {
  char path[PATH_MAX], again[PATH_MAX];
  MUST(mkdir("here", 0755));
  getcwd(path, sizeof path);
  CALL("chdir", chdir("here"));
  getcwd(again, sizeof again);
  FACT("longer by", strlen(again) - strlen(path));
  CALL("no room", getcwd(again, 2) == NULL ? -1 : 0);
  CALL("chdir to a file", chdir("../file"));
  CALL("chdir to missing", chdir("none"));
  const int outside = MUST(open("..", O_RDONLY | O_DIRECTORY));
  MUST(rmdir("../here"));
  CALL("cwd is gone", getcwd(again, sizeof again) == NULL ? -1 : 0);
  CALL("create in it", open("file", O_CREAT | O_WRONLY, 0644));
  CALL("mkdir in it", mkdir("x", 0755));
  CALL("stat of it", access(".", F_OK));
  CALL("fchdir", fchdir(outside));
  CALL("fchdir to a file", fchdir(MUST(open("file", O_RDONLY))));
}

static void names(void) {
  char name[300];
  memset(name, 'n', sizeof name);
  name[255] = '\0';
  CALL("255 letters", mkdir(name, 0755));
  name[255] = 'n';
  name[256] = '\0';
  CALL("256 letters", mkdir(name, 0755));
  static char path[5000];
  memset(path, '/', 4095);
  path[0] = '.';
  CALL("path of 4095", access(path, F_OK));
  path[4095] = '/';
  CALL("path of 4096", access(path, F_OK));
  CALL("empty path", access("", F_OK));
  CALL("below a file", access("file/x", F_OK));
  CALL("dot below a file", access("file/.", F_OK));
  CALL("a file with a slash", access("file/", F_OK));
  CALL("odd letters", mkdir("a\nb\\\x80", 0755));
  FACT("and back", rmdir("a\nb\\\x80"));
}

int main(void) {
  making();
  reading();
  working_folders();
  names();
}
