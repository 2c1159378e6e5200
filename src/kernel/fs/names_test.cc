#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/mman.h>

#include "kernel/fs/test_tree.h"

namespace belljar::kernel {
namespace {

constexpr unsigned kNoReplace = 1, kExchange = 2;

TEST_F(FileSystemTest, MakesAndRemovesFolders) {
  EXPECT_EQ(call(sys_mkdir, "/tmp/d", 0755), 0);
  EXPECT_EQ(call(sys_mkdir, "/tmp/d", 0755), -EEXIST);
  EXPECT_EQ(call(sys_mkdir, "/tmp/none/d", 0755), -ENOENT);
  EXPECT_EQ(call(sys_mkdir, "/tmp/d/e/", 0755), 0) << "a slash at the end is allowed";
  EXPECT_EQ(call(sys_rmdir, "/tmp/d"), -ENOTEMPTY);
  EXPECT_EQ(call(sys_rmdir, "/tmp/d/."), -EINVAL);
  EXPECT_EQ(call(sys_rmdir, "/tmp/d/e/.."), -ENOTEMPTY);
  EXPECT_EQ(call(sys_rmdir, "/"), -EBUSY);
  EXPECT_EQ(call(sys_rmdir, "/tmp"), -EROFS);
  EXPECT_EQ(call(sys_mkdir, "/etc/new", 0755), -EROFS);
  EXPECT_EQ(call(sys_mkdir, "/etc", 0755), -EEXIST);
  struct stat status{};
  EXPECT_EQ(call(sys_stat, "/tmp/d", &status), 0);
  EXPECT_EQ(status.st_nlink, 3U);
  EXPECT_EQ(call(sys_rmdir, "/tmp/d/e"), 0);
  EXPECT_EQ(call(sys_unlink, "/tmp/d"), -EISDIR);
  EXPECT_EQ(call(sys_unlinkat, AT_FDCWD, "/tmp/d", AT_REMOVEDIR), 0);
  EXPECT_EQ(call(sys_stat, "/tmp/d", &status), -ENOENT);
  EXPECT_EQ(call(sys_mkdir, "/tmp/s", 04755), 0);
  EXPECT_EQ(call(sys_stat, "/tmp/s", &status), 0);
  EXPECT_EQ(status.st_mode, S_IFDIR | 0755U) << "mkdir(2) takes no set-id bits";
}

TEST_F(FileSystemTest, RemovedFoldersStayWhole) {
  call(sys_mkdir, "/tmp/d", 0755);
  ASSERT_EQ(call(sys_chdir, "/tmp/d"), 0);
  ASSERT_EQ(call(sys_rmdir, "/tmp/d"), 0);
  char text[100];
  EXPECT_EQ(call(sys_getcwd, text, sizeof text), -ENOENT);
  EXPECT_EQ(open("x", O_CREAT | O_WRONLY), -ENOENT);
  EXPECT_EQ(call(sys_mkdir, "x", 0755), -ENOENT);
  EXPECT_EQ(call(sys_chdir, ".."), 0);
  EXPECT_EQ(call(sys_getcwd, text, sizeof text), 5);
  EXPECT_STREQ(text, "/tmp");
  EXPECT_EQ(call(sys_getcwd, text, 4), -ERANGE);
}

TEST_F(FileSystemTest, LinksAndUnlinksOpenFiles) {
  write_path("/tmp/a", "text");
  EXPECT_EQ(call(sys_link, "/tmp/a", "/tmp/b"), 0);
  EXPECT_EQ(call(sys_link, "/tmp/a", "/tmp/b"), -EEXIST);
  EXPECT_EQ(call(sys_link, "/tmp", "/tmp/t"), -EPERM);
  EXPECT_EQ(call(sys_link, "/tmp/a", "/dev/shm/b"), -EXDEV);
  struct stat status{};
  call(sys_stat, "/tmp/b", &status);
  EXPECT_EQ(status.st_nlink, 2U);
  const long fd = open("/tmp/a", O_RDWR);
  EXPECT_EQ(call(sys_unlink, "/tmp/a"), 0);
  EXPECT_EQ(call(sys_unlink, "/tmp/a"), -ENOENT);
  EXPECT_EQ(call(sys_unlink, "/tmp/b/"), -ENOTDIR);
  EXPECT_EQ(call(sys_unlink, "/tmp/b"), 0);
  EXPECT_EQ(read_all(fd), "text");
  EXPECT_EQ(call(sys_fstat, fd, &status), 0);
  EXPECT_EQ(status.st_nlink, 0U);
  const std::uint64_t free_before = space->space().blocks_free;
  call(sys_close, fd);
  EXPECT_EQ(space->space().blocks_free, free_before + 1);
  EXPECT_EQ(write_path("/tmp/a", "new"), 3);
  EXPECT_EQ(read_path("/tmp/a"), "new");
}

TEST_F(FileSystemTest, FollowsSymlinks) {
  EXPECT_EQ(call(sys_symlink, "target", "/tmp/l"), 0);
  EXPECT_EQ(size_of("/tmp/l"), -ENOENT);
  EXPECT_EQ(write_path("/tmp/l", "via link"), 8) << "O_CREAT makes a dangling link's target";
  EXPECT_EQ(read_path("/tmp/target"), "via link");
  EXPECT_EQ(open("/tmp/l", O_CREAT | O_EXCL | O_WRONLY), -EEXIST);
  char text[10];
  EXPECT_EQ(call(sys_readlink, "/tmp/l", text, sizeof text), 6);
  EXPECT_EQ(call(sys_readlink, "/tmp/l", text, 3), 3);
  EXPECT_EQ(call(sys_readlink, "/tmp/target", text, sizeof text), -EINVAL);
  struct stat status{};
  EXPECT_EQ(call(sys_lstat, "/tmp/l", &status), 0);
  EXPECT_TRUE(S_ISLNK(status.st_mode));
  EXPECT_EQ(status.st_size, 6);
  call(sys_symlink, "/tmp", "/tmp/up");
  EXPECT_EQ(read_path("/tmp/up/up/up/l"), "via link");
  EXPECT_EQ(call(sys_lstat, "/tmp/up/", &status), 0);
  EXPECT_TRUE(S_ISDIR(status.st_mode));
  std::string chain = "/tmp";
  for (int i = 0; i < 40; ++i) chain += "/up";
  EXPECT_EQ(size_of((chain + "/target").c_str()), 8);
  EXPECT_EQ(size_of((chain + "/up/target").c_str()), -ELOOP);
  EXPECT_EQ(call(sys_unlink, "/tmp/l"), 0);
  EXPECT_EQ(size_of("/tmp/target"), 8);
}

TEST_F(FileSystemTest, Renames) {
  write_path("/tmp/a", "a");
  write_path("/tmp/b", "bb");
  EXPECT_EQ(call(sys_renameat2, AT_FDCWD, "/tmp/a", AT_FDCWD, "/tmp/b", kNoReplace), -EEXIST);
  EXPECT_EQ(call(sys_renameat2, AT_FDCWD, "/tmp/a", AT_FDCWD, "/tmp/b", kExchange), 0);
  EXPECT_EQ(read_path("/tmp/a"), "bb");
  EXPECT_EQ(read_path("/tmp/b"), "a");
  EXPECT_EQ(call(sys_rename, "/tmp/a", "/tmp/b"), 0);
  EXPECT_EQ(read_path("/tmp/b"), "bb");
  EXPECT_EQ(size_of("/tmp/a"), -ENOENT);
  call(sys_mkdir, "/tmp/d", 0755);
  call(sys_mkdir, "/tmp/d/e", 0755);
  call(sys_mkdir, "/tmp/f", 0755);
  EXPECT_EQ(call(sys_rename, "/tmp/d", "/tmp/d/e/x"), -EINVAL) << "into itself";
  EXPECT_EQ(call(sys_rename, "/tmp/d", "/tmp/d"), 0);
  EXPECT_EQ(call(sys_rename, "/tmp/d/e", "/tmp/d"), -ENOTEMPTY);
  EXPECT_EQ(call(sys_rename, "/tmp/b", "/tmp/d"), -EISDIR);
  EXPECT_EQ(call(sys_rename, "/tmp/d", "/tmp/b"), -ENOTDIR);
  EXPECT_EQ(call(sys_rename, "/tmp/f", "/tmp/d"), -ENOTEMPTY);
  EXPECT_EQ(call(sys_rename, "/tmp/d", "/tmp/f"), 0) << "over an empty folder";
  EXPECT_EQ(size_of("/tmp/f/e") >= 0, true);
  EXPECT_EQ(call(sys_rename, "/tmp/b", "/dev/shm/b"), -EXDEV);
  EXPECT_EQ(call(sys_rename, "/etc/passwd", "/etc/x"), -EROFS);
  EXPECT_EQ(call(sys_rename, "/tmp/.", "/tmp/x"), -EBUSY);
  EXPECT_EQ(call(sys_renameat2, AT_FDCWD, "/tmp/f", AT_FDCWD, "/tmp/f/e", kExchange), -EINVAL);
  struct stat status{};
  call(sys_stat, "/tmp", &status);
  EXPECT_EQ(status.st_nlink, 3U);
}

TEST_F(FileSystemTest, StickyFoldersKeepOthersFiles) {
  write_path("/tmp/mine", "x");
  Credentials& who = kernel.task().credentials;
  who.fsuid = who.uid = who.euid = 2000;
  EXPECT_EQ(call(sys_unlink, "/tmp/mine"), -EPERM);
  EXPECT_EQ(call(sys_rename, "/tmp/mine", "/tmp/x"), -EPERM);
  EXPECT_EQ(call(sys_chmod, "/tmp/mine", 0777), -EPERM);
  EXPECT_EQ(call(sys_link, "/tmp/mine", "/tmp/x"), -EPERM);
  EXPECT_EQ(open("/tmp/mine", O_WRONLY), -EACCES);
  who.fsuid = who.uid = who.euid = 1000;
  EXPECT_EQ(call(sys_chmod, "/tmp/mine", 0600), 0);
  EXPECT_EQ(call(sys_chown, "/tmp/mine", 1000, -1), 0);
  EXPECT_EQ(call(sys_chown, "/tmp/mine", 0, -1), -EPERM);
  EXPECT_EQ(call(sys_chmod, "/tmp/mine", 04755), 0);
  EXPECT_EQ(call(sys_truncate, "/tmp/mine", 0), 0);
  struct stat status{};
  EXPECT_EQ(call(sys_stat, "/tmp/mine", &status), 0);
  EXPECT_EQ(status.st_mode, S_IFREG | 0755U) << "a change of the contents takes them away";
}

TEST_F(FileSystemTest, ModesDecide) {
  call(sys_mkdir, "/tmp/closed", 0600);
  EXPECT_EQ(size_of("/tmp/closed/x"), -EACCES);
  EXPECT_EQ(call(sys_access, "/tmp/closed", 4), 0);
  EXPECT_EQ(call(sys_access, "/tmp/closed", 1), -EACCES);
  EXPECT_EQ(call(sys_access, "/etc/passwd", 2), -EROFS);
  EXPECT_EQ(call(sys_access, "/etc/passwd", 0), 0);
  EXPECT_EQ(call(sys_umask, 077), 022);
  const long fd = open("/tmp/m", O_CREAT | O_RDWR, 0666);
  struct stat status{};
  call(sys_fstat, fd, &status);
  EXPECT_EQ(status.st_mode, S_IFREG | 0600U);
  EXPECT_EQ(call(sys_fchmod, fd, 0), 0);
  EXPECT_EQ(open("/tmp/m", O_RDONLY), -EACCES);
  EXPECT_EQ(call(sys_write, fd, "x", 1), 1) << "an open file stays what it is";
}

TEST_F(FileSystemTest, NamelessFilesGetNames) {
  const long fd = open("/tmp", O_TMPFILE | O_RDWR);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(call(sys_write, fd, "abc", 3), 3);
  EXPECT_EQ(call(sys_linkat, fd, "", AT_FDCWD, "/tmp/named", AT_EMPTY_PATH), 0);
  EXPECT_EQ(read_path("/tmp/named"), "abc");
  EXPECT_EQ(open("/tmp", O_TMPFILE | O_RDONLY), -EINVAL);
  EXPECT_EQ(open("/etc", O_TMPFILE | O_RDWR), -EROFS);
  const long secret = open("/tmp", O_TMPFILE | O_RDWR | O_EXCL);
  EXPECT_EQ(call(sys_linkat, secret, "", AT_FDCWD, "/tmp/other", AT_EMPTY_PATH), -ENOENT);
}

TEST_F(FileSystemTest, PathsOfDentries) {
  const auto path = [&](long fd) {
    const Ref<File> file = *kernel.task().files->get_any(static_cast<int>(fd));
    char text[100];
    LockGuard guard(tree_lock());
    const auto size = path_of(*file->dentry(), *kernel.task().fs->places.root, text, sizeof text);
    return size ? std::string(text, *size) : "error " + std::to_string(value_of(size.error()));
  };
  EXPECT_EQ(path(open("/", O_PATH)), "/");
  EXPECT_EQ(path(open("/bin/true", O_PATH)), "/usr/bin/true");
  EXPECT_EQ(path(open("/dev/shm", O_PATH)), "/dev/shm");
  write_path("/dev/shm/x", "");
  const long fd = open("/dev/shm/x", O_PATH);
  EXPECT_EQ(path(fd), "/dev/shm/x");
  call(sys_rename, "/dev/shm/x", "/dev/shm/a name of more than sixteen bytes");
  EXPECT_EQ(path(fd), "/dev/shm/a name of more than sixteen bytes");
  call(sys_unlink, "/dev/shm/a name of more than sixteen bytes");
  EXPECT_EQ(path(fd), "/dev/shm/a name of more than sixteen bytes (deleted)");
  EXPECT_EQ(path(call(sys_memfd_create, "m", 0)), "/memfd:m (deleted)");
}

TEST_F(FileSystemTest, WatchesTellWhatHappens) {
  const long fd = call(sys_inotify_init1, IN_NONBLOCK);
  ASSERT_GE(fd, 0);
  const long watch =
      call(sys_inotify_add_watch, fd, "/tmp", IN_CREATE | IN_DELETE | IN_MOVE | IN_CLOSE_WRITE | IN_MODIFY);
  EXPECT_EQ(watch, 1);
  const auto events = [&] {
    std::string all;
    char block[4096];
    const long size = call(sys_read, fd, block, sizeof block);
    for (long at = 0; at < size;) {
      inotify_event event;
      std::memcpy(&event, block + at, sizeof event);
      char text[100];
      std::snprintf(text, sizeof text, "%x:%s ", event.mask, event.len != 0 ? block + at + sizeof event : "");
      all += text;
      at += static_cast<long>(sizeof event) + event.len;
    }
    return all;
  };
  write_path("/tmp/a", "x");
  EXPECT_EQ(events(), "100:a 2:a 8:a ");
  call(sys_rename, "/tmp/a", "/tmp/b");
  EXPECT_EQ(events(), "40:a 80:b ");
  call(sys_unlink, "/tmp/b");
  call(sys_mkdir, "/tmp/d", 0755);
  EXPECT_EQ(events(), "200:b 40000100:d ");
  char none[100];
  EXPECT_EQ(call(sys_read, fd, none, sizeof none), -EAGAIN);
  call(sys_inotify_add_watch, fd, "/tmp/d", IN_DELETE_SELF);
  call(sys_rmdir, "/tmp/d");
  EXPECT_EQ(events(), "40000200:d 400: 8000: ");
  EXPECT_EQ(call(sys_inotify_rm_watch, fd, watch), 0);
  EXPECT_EQ(call(sys_inotify_rm_watch, fd, watch), -EINVAL);
  EXPECT_EQ(events(), "8000: ");
}

TEST_F(FileSystemTest, KeepsUsersAttributes) {
  write_path("/tmp/a", "");
  char text[20];
  EXPECT_EQ(call(sys_getxattr, "/tmp/a", "user.x", text, sizeof text), -ENODATA);
  EXPECT_EQ(call(sys_setxattr, "/tmp/a", "user.x", "value", 5, 0), 0);
  EXPECT_EQ(call(sys_setxattr, "/tmp/a", "user.x", "value", 5, 1), -EEXIST);
  EXPECT_EQ(call(sys_setxattr, "/tmp/a", "user.y", "value", 5, 2), -ENODATA);
  EXPECT_EQ(call(sys_getxattr, "/tmp/a", "user.x", text, sizeof text), 5);
  EXPECT_EQ(call(sys_getxattr, "/tmp/a", "user.x", text, 0), 5);
  EXPECT_EQ(call(sys_getxattr, "/tmp/a", "user.x", text, 3), -ERANGE);
  EXPECT_EQ(call(sys_listxattr, "/tmp/a", text, sizeof text), 7);
  EXPECT_EQ(call(sys_removexattr, "/tmp/a", "user.x"), 0);
  EXPECT_EQ(call(sys_listxattr, "/tmp/a", text, sizeof text), 0);
  EXPECT_EQ(call(sys_setxattr, "/tmp/a", "trusted.x", "v", 1, 0), -EPERM);
  EXPECT_EQ(call(sys_setxattr, "/tmp/a", "nothing", "v", 1, 0), -EOPNOTSUPP);
  EXPECT_EQ(call(sys_setxattr, "/etc/passwd", "user.x", "v", 1, 0), -EROFS);
}

}  // namespace
}  // namespace belljar::kernel
