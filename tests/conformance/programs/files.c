// Files and folders in the working folder: creation, links, renames, holes, permissions, errors, directory reading.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check.h"

static void creation(void) {
  CALL("open missing", open("a", O_RDONLY));
  CALL("create", open("a", O_RDWR | O_CREAT | O_EXCL, 0640));
  CALL("create again", open("a", O_RDWR | O_CREAT | O_EXCL, 0640));
  struct stat s;
  MUST(stat("a", &s));
  FACT("mode", s.st_mode & 07777);
  FACT("links", s.st_nlink);
  FACT("is mine", s.st_uid == getuid() && s.st_gid == getgid());
  CALL("folder as a file", open(".", O_WRONLY));
  CALL("file as a folder", open("a/b", O_RDONLY));
  CALL("O_DIRECTORY of a file", open("a", O_RDONLY | O_DIRECTORY));
  CALL("long name", open("nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
                         "nnnnnnnnnnnnnnnnnnnnnn"
                         "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
                         "nnnnnnnnnnnnnnnnnnnnnn"
                         "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn",
                         O_WRONLY | O_CREAT, 0600));
  CALL("O_TMPFILE", open(".", O_RDWR | O_TMPFILE, 0600));
  CALL("trailing slash", open("a/", O_RDONLY));
  CALL("empty path", open("", O_RDONLY));
}

static void contents(void) {
  const int fd = MUST(open("c", O_RDWR | O_CREAT | O_TRUNC, 0600));
  FACT("write", write(fd, "0123456789", 10));
  FACT("pread past the end", pread(fd, (char[4]){0}, 4, 100));
  FACT("seek", lseek(fd, -3, SEEK_END));
  char buffer[16] = {0};
  FACT("read", read(fd, buffer, sizeof buffer));
  printf("content: %s\n", buffer);
  CALL("seek before the start", lseek(fd, -1, SEEK_SET));
  FACT("pwrite makes a hole", pwrite(fd, "x", 1, 1 << 20));
  struct stat s;
  MUST(fstat(fd, &s));
  FACT("size", s.st_size);
  FACT("hole is not stored", s.st_blocks * 512 < 1 << 20);
  CALL("truncate", ftruncate(fd, 4));
  CALL("truncate to less than nothing", ftruncate(fd, -1));
  struct iovec parts[2] = {{"ab", 2}, {"cde", 3}};
  FACT("writev", pwritev(fd, parts, 2, 0));
  CALL("allocate", posix_fallocate(fd, 0, 100000) == 0 ? 0 : -1);
  CALL("punch a hole", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
  CALL("fsync", fsync(fd));
  close(fd);
  CALL("write to a closed one", write(fd, "x", 1));
  const int append = MUST(open("c", O_WRONLY | O_APPEND));
  MUST(pwrite(append, "end", 3, 0));
  MUST(fstat(append, &s));
  FACT("O_APPEND wins over the offset", s.st_size);
  CALL("read from a write-only one", read(append, buffer, 1));
  const int copy = MUST(open("d", O_RDWR | O_CREAT, 0600));
  const int source = MUST(open("c", O_RDONLY));
  FACT("copy_file_range", copy_file_range(source, NULL, copy, NULL, 1000, 0));
}

static void names(void) {
  CALL("mkdir", mkdir("dir", 0755));
  CALL("mkdir again", mkdir("dir", 0755));
  CALL("rmdir of a file", rmdir("a"));
  CALL("unlink of a folder", unlink("dir"));
  CALL("symlink", symlink("a", "dir/link"));
  char target[9] = {0};
  FACT("readlink", readlink("dir/link", target, sizeof target));
  CALL("through a dangling link", open("dir/link", O_RDONLY));
  CALL("O_NOFOLLOW", open("dir/link", O_RDONLY | O_NOFOLLOW));
  CALL("rmdir of a full folder", rmdir("dir"));
  CALL("link", link("a", "hard"));
  struct stat s;
  MUST(stat("hard", &s));
  FACT("links", s.st_nlink);
  CALL("rename over", rename("hard", "d"));
  CALL("rename of missing", rename("missing", "x"));
  CALL("rename folder into itself", rename("dir", "dir/sub"));
  CALL("rename file over folder", rename("d", "dir"));
  CALL("renameat2 NOREPLACE", renameat2(AT_FDCWD, "d", AT_FDCWD, "a", RENAME_NOREPLACE));
  CALL("renameat2 EXCHANGE", renameat2(AT_FDCWD, "d", AT_FDCWD, "dir", RENAME_EXCHANGE));
  MUST(stat("d", &s));
  FACT("now a folder", S_ISDIR(s.st_mode));
  CALL("loop", symlink("loop", "loop"));
  CALL("open loop", open("loop", O_RDONLY));
  CALL("chmod", chmod("a", 0400));
  CALL("access", access("a", W_OK));
  CALL("chown to root", chown("a", 0, 0));
  CALL("chown to myself", chown("a", getuid(), getgid()));
  const struct timespec times[2] = {{1000, 5}, {2000, 7}};
  CALL("utimensat", utimensat(AT_FDCWD, "a", times, 0));
  MUST(stat("a", &s));
  FACT("mtime", s.st_mtim.tv_sec);
  FACT("mtime ns", s.st_mtim.tv_nsec);
  CALL("device node", mknod("dev", S_IFCHR | 0600, 0x103));
  CALL("fifo", mkfifo("fifo", 0600));
}

static int by_name(const struct dirent** a, const struct dirent** b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static void folders(void) {
  struct dirent** entries;
  const int count = scandir(".", &entries, NULL, by_name);
  for (int i = 0; i < count; ++i) printf("entry: %s %d\n", entries[i]->d_name, entries[i]->d_type);
  MUST(mkdir("many", 0700));
  char name[32];
  for (int i = 0; i < 2000; ++i) {
    snprintf(name, sizeof name, "many/%d", i);
    close(MUST(open(name, O_CREAT | O_WRONLY, 0600)));
  }
  DIR* folder = opendir("many");
  int seen = 0;
  while (readdir(folder) != NULL) ++seen;
  FACT("entries of a large folder", seen);
  rewinddir(folder);
  int removed = 0;
  for (struct dirent* entry; (entry = readdir(folder)) != NULL;)
    removed += unlinkat(dirfd(folder), entry->d_name, 0) == 0;
  FACT("removed while reading", removed);
  closedir(folder);
  CALL("rmdir", rmdir("many"));
  MUST(chdir("d"));
  MUST(mkdir("../gone", 0700));
  MUST(chdir("../gone"));
  MUST(rmdir("../gone"));
  char path[64];
  printf("getcwd in a removed folder: %s\n", getcwd(path, sizeof path) == NULL ? strerrorname_np(errno) : path);
  CALL("create in a removed folder", open("x", O_CREAT | O_WRONLY, 0600));
  MUST(chdir(".."));
}

static void locks(void) {
  const int a = MUST(open("c", O_RDWR));
  const int b = MUST(open("c", O_RDWR));
  CALL("flock", flock(a, LOCK_EX));
  CALL("second flock", flock(b, LOCK_EX | LOCK_NB));
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 10};
  CALL("OFD lock", fcntl(a, F_OFD_SETLK, &lock));
  CALL("second OFD lock", fcntl(b, F_OFD_SETLK, &lock));
  CALL("POSIX lock over OFD lock", fcntl(b, F_SETLK, &lock));
  lock.l_start = 20;
  CALL("POSIX lock", fcntl(a, F_SETLK, &lock));
  CALL("own POSIX lock again", fcntl(b, F_SETLK, &lock));
}

int main(void) {
  umask(022);
  creation();
  contents();
  names();
  folders();
  locks();
  return 0;
}
