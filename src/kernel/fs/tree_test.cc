#include <fcntl.h>
#include <linux/openat2.h>

#include "kernel/arena/roots.h"
#include "kernel/fs/test_tree.h"

namespace belljar::kernel {
namespace {

TEST_F(FileSystemTest, ReadsTheHostTree) {
  EXPECT_EQ(read_path("/etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n");
  EXPECT_EQ(read_path("/bin/true"), std::string(5000, 't'));
  EXPECT_EQ(read_path("/absolute/true"), std::string(5000, 't'));
  EXPECT_EQ(host.fetches, 2) << "contents are brought in once";
  EXPECT_EQ(size_of("/usr/bin/true"), 5000);
}

TEST_F(FileSystemTest, ReadsInPartsWhatIsNotCopied) {
  host.in_parts = true;
  std::string text;
  for (int i = 0; i < 700; ++i) text += std::to_string(i);
  host.add("etc/long", S_IFREG | 0644, text);
  EXPECT_EQ(read_path("/etc/long"), text);
  EXPECT_EQ(read_path("/etc/long"), text);
  EXPECT_EQ(host.fetches, 1) << "asked for once";
  const long fd = open("/etc/long", O_RDONLY);
  EXPECT_EQ(call(sys_lseek, fd, -5, SEEK_END), static_cast<long>(text.size()) - 5);
  EXPECT_EQ(read_all(fd), text.substr(text.size() - 5));
  char block[4000];
  EXPECT_EQ(call(sys_pread64, fd, block, 1200, 700), 1200);
  EXPECT_EQ(std::string_view(block, 1200), text.substr(700, 1200));
  EXPECT_EQ(call(sys_pread64, fd, block, sizeof block, text.size()), 0);
  EXPECT_EQ(size_of("/etc/long"), static_cast<long>(text.size()));

  const int reads = host.reads;
  const Ref<File> file = *kernel.task().files->get(static_cast<int>(fd));
  const auto mapped = file->map(0, 4096, false, false);
  ASSERT_TRUE(mapped.has_value()) << "to be mapped it is brought in whole";
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(kContentBase + mapped->offset), text.size()), text);
  EXPECT_EQ(read_path("/etc/long"), text);
  EXPECT_EQ(host.fetches, 2);
  EXPECT_EQ(host.reads, reads) << "and then read from there";
}

TEST_F(FileSystemTest, ShowsHostPlacesInWritableFolders) {
  host.add("tmp/a", S_IFDIR | 0755);
  host.add("tmp/a/deep", S_IFDIR | 0755);
  host.add("tmp/a/deep/data", S_IFDIR | 0755);
  host.add("tmp/a/deep/data/f", S_IFREG | 0644, "in a folder");
  host.add("tmp/file", S_IFREG | 0644, "a file");
  const Places& places = kernel.task().fs->places;
  EXPECT_TRUE(mount_host_place(places, host, "/tmp/a/deep/data"));
  EXPECT_TRUE(mount_host_place(places, host, "/tmp/file"));
  EXPECT_TRUE(make_boot_link(places, "/tmp/b/link", "../a/deep"));
  EXPECT_EQ(read_path("/tmp/a/deep/data/f"), "in a folder");
  EXPECT_EQ(read_path("/tmp/b/link/data/f"), "in a folder");
  EXPECT_EQ(read_path("/tmp/file"), "a file");
  EXPECT_EQ(open("/tmp/file", O_WRONLY), -EROFS);
  EXPECT_EQ(open("/tmp/a/deep/data/new", O_CREAT | O_WRONLY), -EROFS);
  EXPECT_EQ(call(sys_unlink, "/tmp/file"), -EBUSY);
  EXPECT_EQ(call(sys_rmdir, "/tmp/a/deep/data"), -EACCES) << "the folder on the way is uid 0's";
  EXPECT_EQ(write_path("/tmp/mine", "x"), 1);
  EXPECT_EQ(names_in("/tmp"), (std::vector<std::string>{"a", "file", "b", "mine"}));
}

TEST_F(FileSystemTest, HasFoldersOfItsOwnBesideTmp) {
  host.add("out", S_IFDIR | 0755);
  EXPECT_TRUE(mount_own_folder(kernel.task().fs->places, "/out", 1000, 1000));
  EXPECT_EQ(write_path("/out/f", "kept"), 4);
  EXPECT_EQ(read_path("/out/f"), "kept");
  EXPECT_EQ(call(sys_rename, "/out/f", "/tmp/f"), -EXDEV);
  EXPECT_EQ(arena_roots().writable_count, 2U);
}

TEST_F(FileSystemTest, AsksEachNameOnce) {
  size_of("/etc/passwd");
  size_of("/etc/none");
  const int before = host.stats;
  for (int i = 0; i < 10; ++i) {
    EXPECT_GT(size_of("/etc/passwd"), 0);
    EXPECT_EQ(size_of("/etc/none"), -ENOENT);
  }
  EXPECT_EQ(host.stats, before);
}

TEST_F(FileSystemTest, ReadsAFolderAsAWholeAfterSomeNames) {
  for (int i = 0; i < 30; ++i) EXPECT_EQ(size_of(("/usr/bin/none" + std::to_string(i)).c_str()), -ENOENT);
  EXPECT_EQ(host.lists, 1);
  EXPECT_LT(host.stats, 20);
  EXPECT_EQ(size_of("/usr/bin/true"), 5000);
}

TEST_F(FileSystemTest, KnowsTheErrorsOfPaths) {
  EXPECT_EQ(size_of("/none/x"), -ENOENT);
  EXPECT_EQ(size_of("/etc/passwd/x"), -ENOTDIR);
  EXPECT_EQ(size_of("/etc/passwd/"), -ENOTDIR);
  EXPECT_EQ(size_of("/etc/passwd/."), -ENOTDIR);
  EXPECT_EQ(size_of(""), -ENOENT);
  EXPECT_EQ(size_of("/loop"), -ELOOP);
  EXPECT_EQ(size_of(("/" + std::string(256, 'n')).c_str()), -ENAMETOOLONG);
  EXPECT_EQ(size_of(("/" + std::string(255, 'n')).c_str()), -ENOENT);
  EXPECT_EQ(size_of(std::string(5000, '/').c_str()), -ENAMETOOLONG);
  EXPECT_EQ(call(sys_stat, nullptr, nullptr), -EFAULT);
  EXPECT_GT(size_of("/etc/../etc/./passwd"), 0);
  EXPECT_GT(size_of("//../../etc//passwd"), 0);
  EXPECT_EQ(size_of("/bin/../tmp"), -ENOENT) << "a link's .. is that of its target";
  EXPECT_EQ(open("/etc/shadow", O_RDONLY), -EACCES);
  EXPECT_EQ(open("/etc/passwd", O_WRONLY), -EROFS);
  EXPECT_EQ(open("/etc/none", O_CREAT | O_WRONLY), -EROFS);
  EXPECT_EQ(open("/etc", O_WRONLY), -EISDIR);
  EXPECT_EQ(open("/etc", O_CREAT | O_RDONLY), -EISDIR);
  EXPECT_EQ(open("/bin", O_NOFOLLOW), -ELOOP);
  EXPECT_EQ(open("/etc/passwd", O_DIRECTORY), -ENOTDIR);
}

TEST_F(FileSystemTest, WritesAndReadsBack) {
  EXPECT_EQ(write_path("/tmp/a", "hello"), 5);
  EXPECT_EQ(read_path("/tmp/a"), "hello");
  EXPECT_EQ(open("/tmp/a", O_CREAT | O_EXCL | O_RDWR), -EEXIST);
  const long fd = open("/tmp/a", O_RDWR | O_APPEND);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(call(sys_write, fd, " world", 6), 6);
  EXPECT_EQ(call(sys_lseek, fd, 0, SEEK_SET), 0);
  EXPECT_EQ(read_all(fd), "hello world");
  EXPECT_EQ(call(sys_lseek, fd, -5, SEEK_END), 6);
  EXPECT_EQ(read_all(fd), "world");
  EXPECT_EQ(call(sys_close, fd), 0);
  EXPECT_EQ(call(sys_close, fd), -EBADF);
  EXPECT_EQ(write_path("/dev/shm/x", "x"), 1);
}

TEST_F(FileSystemTest, ScopedWalksStayBelow) {
  const long etc = open("/etc", O_PATH | O_DIRECTORY);
  ASSERT_GE(etc, 0);
  const auto open2 = [&](const char* path, std::uint64_t resolve) {
    const open_how how{O_RDONLY, 0, resolve};
    return call(sys_openat2, etc, path, &how, sizeof how);
  };
  EXPECT_GE(open2("passwd", RESOLVE_BENEATH), 0);
  EXPECT_EQ(open2("../etc/passwd", RESOLVE_BENEATH), -EXDEV);
  EXPECT_EQ(open2("/etc/passwd", RESOLVE_BENEATH), -EXDEV);
  EXPECT_GE(open2("/passwd", RESOLVE_IN_ROOT), 0);
  EXPECT_GE(open2("../../passwd", RESOLVE_IN_ROOT), 0);
  EXPECT_EQ(open2("/bin/true", RESOLVE_NO_SYMLINKS), -ELOOP);
  EXPECT_EQ(open2("/tmp", RESOLVE_NO_XDEV), -EXDEV);
  EXPECT_EQ(open2("passwd", 1ULL << 40), -EINVAL);
}

TEST_F(FileSystemTest, ListsFolders) {
  const auto names = [&](const char* path) {
    std::string all;
    const long fd = open(path, O_DIRECTORY);
    char block[128];
    for (long size = 0; (size = call(sys_getdents64, fd, block, sizeof block)) != 0;) {
      if (size < 0) return "error " + std::to_string(size);
      for (long at = 0; at < size; at += *reinterpret_cast<std::uint16_t*>(block + at + 16)) {
        all += std::string(block + at + 19) + " ";
      }
    }
    call(sys_close, fd);
    return all;
  };
  EXPECT_EQ(names("/etc"), ". .. passwd shadow ");
  std::string expected = ". .. ";
  for (int i = 0; i < 50; ++i) {
    write_path(("/tmp/" + std::to_string(i)).c_str(), "");
    expected += std::to_string(i) + " ";
  }
  EXPECT_EQ(names("/tmp"), expected);
}

}  // namespace
}  // namespace belljar::kernel
