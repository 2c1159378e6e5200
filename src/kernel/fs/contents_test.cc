#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/file.h>
#include <sys/uio.h>

#include <random>
#include <thread>
#include <vector>

#include "kernel/fs/test_tree.h"

namespace belljar::kernel {
namespace {

TEST_F(FileSystemTest, HolesAreZerosAndFree) {
  const long fd = open("/tmp/h", O_CREAT | O_RDWR);
  const std::uint64_t before = space->space().blocks_free;
  EXPECT_EQ(call(sys_pwrite64, fd, "end", 3, 100'000), 3);
  EXPECT_EQ(before - space->space().blocks_free, 1U);
  EXPECT_EQ(size_of("/tmp/h"), 100'003);
  EXPECT_EQ(call(sys_lseek, fd, 0, SEEK_DATA), 98'304);
  EXPECT_EQ(call(sys_lseek, fd, 0, SEEK_HOLE), 0);
  EXPECT_EQ(call(sys_lseek, fd, 99'000, SEEK_HOLE), 100'003);
  EXPECT_EQ(call(sys_lseek, fd, 100'003, SEEK_DATA), -ENXIO);
  call(sys_lseek, fd, 0, SEEK_SET);
  EXPECT_EQ(read_all(fd), std::string(100'000, '\0') + "end");
  EXPECT_EQ(call(sys_ftruncate, fd, 99'000), 0);
  EXPECT_EQ(call(sys_ftruncate, fd, 100'003), 0);
  call(sys_lseek, fd, 0, SEEK_SET);
  EXPECT_EQ(read_all(fd), std::string(100'003, '\0'));
  EXPECT_EQ(call(sys_fallocate, fd, 0, 0, 8192), 0);
  EXPECT_EQ(before - space->space().blocks_free, 3U);
  EXPECT_EQ(call(sys_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
  EXPECT_EQ(before - space->space().blocks_free, 2U);
  EXPECT_EQ(call(sys_ftruncate, fd, 0), 0);
  EXPECT_EQ(before, space->space().blocks_free);
}

TEST_F(FileSystemTest, TheSpaceEnds) {
  const long fd = open("/tmp/big", O_CREAT | O_RDWR);
  const std::vector<char> block(1U << 20, 'b');
  long written = 0;
  while (true) {
    const long count = call(sys_write, fd, block.data(), block.size());
    if (count < 0) {
      EXPECT_EQ(count, -ENOSPC);
      break;
    }
    written += count;
  }
  EXPECT_EQ(written, static_cast<long>(kSpaceBytes));
  EXPECT_TRUE(space->was_full());
  EXPECT_EQ(call(sys_ftruncate, fd, 10), 0);
  EXPECT_EQ(write_path("/tmp/small", "fits"), 4);
  long made = 0;
  for (; made < 2000; ++made) {
    const long empty = open(("/tmp/n" + std::to_string(made)).c_str(), O_CREAT | O_WRONLY);
    if (empty < 0) {
      EXPECT_EQ(empty, -ENOSPC);
      break;
    }
    call(sys_close, empty);
  }
  EXPECT_LT(made, static_cast<long>(kSpaceInodes));
}

// Random writes, truncations and holes, beside the same on a plain string.
TEST_F(FileSystemTest, ContentsAreThoseOfAPlainBuffer) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); };
  const long fd = open("/tmp/r", O_CREAT | O_RDWR);
  std::string model;
  for (int i = 0; i < 3000; ++i) {
    const std::size_t at = below(below(4) == 0 ? 300'000 : 9000);
    const std::size_t count = 1 + below(below(4) == 0 ? 40'000 : 5000);
    switch (below(6)) {
      case 0:
        ASSERT_EQ(call(sys_ftruncate, fd, at), 0);
        model.resize(at);
        break;
      case 1:
        ASSERT_EQ(call(sys_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, count), 0);
        for (std::size_t j = at; j < at + count && j < model.size(); ++j) model[j] = '\0';
        break;
      default: {
        const std::string text(count, static_cast<char>('a' + below(26)));
        ASSERT_EQ(call(sys_pwrite64, fd, text.data(), count, at), static_cast<long>(count));
        if (model.size() < at + count) model.resize(at + count);
        model.replace(at, count, text);
        break;
      }
    }
    if (i % 20 != 0) continue;
    std::string seen(model.size() + 10, 'x');
    ASSERT_EQ(call(sys_pread64, fd, seen.data(), seen.size(), 0), static_cast<long>(model.size()));
    seen.resize(model.size());
    ASSERT_TRUE(seen == model) << "after step " << i;
  }
}

TEST_F(FileSystemTest, MappedRangesStayInPlace) {
  const long fd = open("/tmp/m", O_CREAT | O_RDWR);
  call(sys_write, fd, "start", 5);
  const Ref<File> file = *kernel.task().files->get(static_cast<int>(fd));
  const auto shared = file->map(0, 8192, true, true);
  ASSERT_TRUE(shared);
  EXPECT_TRUE(shared->may_write_shared);
  char* const memory = reinterpret_cast<char*>(kArenaBase + shared->offset);
  EXPECT_EQ(std::string(memory, 5), "start");
  memory[0] = 'S';
  char byte = 0;
  call(sys_pread64, fd, &byte, 1, 0);
  EXPECT_EQ(byte, 'S');
  const std::vector<char> block(500'000, 'g');
  EXPECT_EQ(call(sys_pwrite64, fd, block.data(), block.size(), 5), 500'000);
  EXPECT_EQ(memory[5], 'g') << "the file grew in place";
  EXPECT_EQ(file->map(0, 8192, true, true)->offset, shared->offset);
  EXPECT_EQ(call(sys_ftruncate, fd, 10), 0);
  memory[4000] = 'x';  // beyond the end, in the last page
  memory[6000] = 'y';
  EXPECT_EQ(call(sys_ftruncate, fd, 9000), 0);
  char both[2] = {1, 1};
  call(sys_pread64, fd, both, 1, 4000);
  call(sys_pread64, fd, both + 1, 1, 6000);
  EXPECT_EQ(both[0], 0);
  EXPECT_EQ(both[1], 0);
}

TEST_F(FileSystemTest, PrivateMappingsKeepTheirPages) {
  const long fd = open("/tmp/p", O_CREAT | O_RDWR);
  call(sys_write, fd, "old", 3);
  const Ref<File> file = *kernel.task().files->get(static_cast<int>(fd));
  const auto source = file->map(0, 4096, false, true);
  ASSERT_TRUE(source);
  const std::vector<char> block(200'000, 'n');
  call(sys_pwrite64, fd, block.data(), block.size(), 3);
  write_path("/tmp/other", std::string(4096, 'o'));
  EXPECT_EQ(std::string(reinterpret_cast<char*>(kArenaBase + source->offset), 3), "old");
}

TEST_F(FileSystemTest, SealsHold) {
  const long fd = call(sys_memfd_create, "name", 2);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(call(sys_write, fd, "12345678", 8), 8);
  EXPECT_EQ(call(sys_fcntl, fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK), 0);
  EXPECT_EQ(call(sys_ftruncate, fd, 4), -EPERM);
  EXPECT_EQ(call(sys_ftruncate, fd, 40), -EPERM);
  EXPECT_EQ(call(sys_pwrite64, fd, "abcd", 4, 6), 2);
  EXPECT_EQ(call(sys_pwrite64, fd, "abcd", 4, 8), -EPERM);
  EXPECT_EQ(call(sys_fcntl, fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL), 0);
  EXPECT_EQ(call(sys_pwrite64, fd, "a", 1, 0), -EPERM);
  EXPECT_EQ(call(sys_fcntl, fd, F_ADD_SEALS, F_SEAL_WRITE), -EPERM);
  EXPECT_EQ(call(sys_fcntl, fd, F_GET_SEALS), F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_SEAL);
  const long plain = call(sys_memfd_create, "name", 0);
  EXPECT_EQ(call(sys_fcntl, plain, F_ADD_SEALS, F_SEAL_WRITE), -EPERM);
  EXPECT_EQ(call(sys_fcntl, open("/etc/passwd", O_RDONLY), F_GET_SEALS), -EINVAL);
}

TEST_F(FileSystemTest, VectorsAndOffsets) {
  const long fd = open("/tmp/v", O_CREAT | O_RDWR);
  char one[] = "one", two[] = "two";
  const iovec parts[] = {{one, 3}, {two, 3}};
  EXPECT_EQ(call(sys_writev, fd, parts, 2), 6);
  EXPECT_EQ(call(sys_pwritev, fd, parts, 2, 1), 6);
  char a[2], b[100];
  const iovec places[] = {{a, 2}, {b, 100}};
  EXPECT_EQ(call(sys_preadv, fd, places, 2, 0), 7);
  EXPECT_EQ(std::string(a, 2) + std::string(b, 5), "oonetwo");
  EXPECT_EQ(call(sys_lseek, fd, 0, SEEK_CUR), 6) << "an offset of one's own does not move the file's";
  EXPECT_EQ(call(sys_lseek, fd, -7, SEEK_CUR), -EINVAL);
  EXPECT_EQ(call(sys_lseek, fd, 0, 9), -EINVAL);
  EXPECT_EQ(call(sys_read, open("/tmp/v", O_WRONLY), b, 1), -EBADF);
  EXPECT_EQ(call(sys_write, open("/tmp/v", O_RDONLY), b, 1), -EBADF);
  EXPECT_EQ(call(sys_read, open("/tmp", O_RDONLY), b, 1), -EISDIR);
  const long place = open("/tmp/v", O_PATH);
  EXPECT_EQ(call(sys_read, place, b, 1), -EBADF);
  EXPECT_EQ(call(sys_pread64, fd, 8, 1, 7), 0) << "at the end nothing is written";
  EXPECT_EQ(call(sys_pread64, fd, 8, 1, 0), -EFAULT);
  EXPECT_EQ(call(sys_pwrite64, fd, 8, 1, 0), -EFAULT);
  EXPECT_EQ(call(sys_preadv2, fd, places, 2, 0, 0, 8), -EOPNOTSUPP);
}

TEST_F(FileSystemTest, CopiesBetweenFiles) {
  const long from = open("/usr/bin/true", O_RDONLY);
  const long to = open("/tmp/copy", O_CREAT | O_RDWR);
  std::int64_t offset = 1000;
  EXPECT_EQ(call(sys_sendfile, to, from, &offset, 100'000), 4000);
  EXPECT_EQ(offset, 5000);
  EXPECT_EQ(call(sys_lseek, from, 0, SEEK_CUR), 0);
  EXPECT_EQ(call(sys_sendfile, to, from, nullptr, 5000), 5000);
  EXPECT_EQ(call(sys_lseek, from, 0, SEEK_CUR), 5000);
  EXPECT_EQ(size_of("/tmp/copy"), 9000);
  const long other = open("/tmp/other", O_CREAT | O_RDWR);
  std::int64_t begin = 0;
  EXPECT_EQ(call(sys_copy_file_range, to, &begin, other, nullptr, 1'000'000, 0), 9000);
  EXPECT_EQ(read_path("/tmp/other"), std::string(9000, 't'));
  EXPECT_EQ(call(sys_copy_file_range, from, nullptr, other, nullptr, 1, 0), -EXDEV);
  std::int64_t a = 0, b = 10;
  EXPECT_EQ(call(sys_copy_file_range, to, &a, to, &b, 100, 0), -EINVAL);
}

TEST_F(FileSystemTest, DescriptorsAreTheLowestFree) {
  const long a = open("/etc/passwd", O_RDONLY);
  const long b = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(b, a + 1);
  EXPECT_EQ(call(sys_fcntl, a, F_GETFD), 0);
  EXPECT_EQ(call(sys_fcntl, b, F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(call(sys_fcntl, b, F_GETFL), 0100000);
  call(sys_close, a);
  EXPECT_EQ(call(sys_dup, b), a);
  EXPECT_EQ(call(sys_dup2, b, 200), 200);
  EXPECT_EQ(call(sys_dup2, b, b), b);
  EXPECT_EQ(call(sys_dup3, b, b, 0), -EINVAL);
  EXPECT_EQ(call(sys_dup2, b, 5000), -EBADF) << "beyond the limit of 1024";
  EXPECT_EQ(call(sys_fcntl, b, F_DUPFD, 100), 100);
  kernel.task().files->close_on_exec();
  EXPECT_EQ(call(sys_fcntl, b, F_GETFD), -EBADF);
  EXPECT_EQ(call(sys_close_range, 0, ~0U, 0), 0);
  EXPECT_EQ(call(sys_fcntl, 200, F_GETFD), -EBADF);
  long fd = 0;
  for (int i = 0; i < 1024; ++i) fd = open("/etc/passwd", O_RDONLY);
  EXPECT_EQ(fd, 1023);
  EXPECT_EQ(open("/etc/passwd", O_RDONLY), -EMFILE);
}

TEST_F(FileSystemTest, LocksOfFiles) {
  write_path("/tmp/l", "0123456789");
  const long a = open("/tmp/l", O_RDWR);
  const long b = open("/tmp/l", O_RDWR);
  EXPECT_EQ(call(sys_flock, a, LOCK_SH), 0);
  EXPECT_EQ(call(sys_flock, b, LOCK_SH), 0);
  EXPECT_EQ(call(sys_flock, b, LOCK_EX | LOCK_NB), -EAGAIN);
  EXPECT_EQ(call(sys_flock, a, LOCK_EX | LOCK_NB), 0) << "a failed conversion gave the other's lock up";
  EXPECT_EQ(call(sys_flock, b, LOCK_SH | LOCK_NB), -EAGAIN);
  call(sys_close, a);
  EXPECT_EQ(call(sys_flock, b, LOCK_EX | LOCK_NB), 0);

  const auto lock = [&](long fd, int command, short type, long begin, long size) {
    struct flock wanted{};
    wanted.l_type = type;
    wanted.l_start = begin;
    wanted.l_len = size;
    const long result = call(sys_fcntl, fd, command, &wanted);
    return command == F_OFD_GETLK || command == F_GETLK ? std::make_tuple(result, wanted.l_type, wanted.l_start)
                                                        : std::make_tuple(result, short{0}, off_t{0});
  };
  const long c = open("/tmp/l", O_RDWR);
  EXPECT_EQ(std::get<0>(lock(b, F_OFD_SETLK, F_WRLCK, 2, 4)), 0);
  EXPECT_EQ(std::get<0>(lock(c, F_OFD_SETLK, F_RDLCK, 0, 2)), 0);
  EXPECT_EQ(std::get<0>(lock(c, F_OFD_SETLK, F_RDLCK, 0, 3)), -EAGAIN);
  EXPECT_EQ(std::get<0>(lock(b, F_OFD_SETLK, F_UNLCK, 3, 1)), 0) << "cuts the lock in two";
  EXPECT_EQ(std::get<0>(lock(c, F_OFD_SETLK, F_WRLCK, 3, 1)), 0);
  EXPECT_EQ(lock(c, F_OFD_GETLK, F_WRLCK, 0, 0), std::make_tuple(0L, short{F_WRLCK}, off_t{2}));
  EXPECT_EQ(lock(c, F_OFD_GETLK, F_WRLCK, 6, 0), std::make_tuple(0L, short{F_UNLCK}, off_t{6}));
  call(sys_close, b);
  EXPECT_EQ(std::get<0>(lock(c, F_OFD_SETLK, F_WRLCK, 0, 0)), 0) << "gone with the open file";
  EXPECT_EQ(std::get<0>(lock(c, F_SETLK, F_WRLCK, 0, 1)), -EAGAIN) << "a process is another owner";
  EXPECT_EQ(std::get<0>(lock(c, F_OFD_SETLK, F_UNLCK, 0, 0)), 0);
  EXPECT_EQ(std::get<0>(lock(c, F_SETLK, F_WRLCK, 0, 1)), 0);
  const long d = open("/tmp/l", O_RDONLY);
  EXPECT_EQ(std::get<0>(lock(d, F_SETLK, F_WRLCK, 5, 1)), -EBADF);
  EXPECT_EQ(std::get<0>(lock(d, F_OFD_SETLK, F_RDLCK, 0, 1)), -EAGAIN);
  call(sys_close, c);
  EXPECT_EQ(std::get<0>(lock(d, F_OFD_SETLK, F_RDLCK, 0, 1)), 0) << "any close gives a process's locks up";
}

// A model of one owner per byte, beside random locks of three open files.
TEST_F(FileSystemTest, RecordLocksAreThoseOfAModel) {
  constexpr int kFiles = 3, kBytes = 24;
  write_path("/tmp/l", "x");
  long fds[kFiles];
  for (long& fd : fds) fd = open("/tmp/l", O_RDWR);
  short held[kFiles][kBytes];
  for (auto& row : held) std::fill(std::begin(row), std::end(row), short{F_UNLCK});
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {
    const auto file = static_cast<int>(random() % kFiles);
    const auto begin = static_cast<int>(random() % kBytes);
    const auto end = begin + 1 + static_cast<int>(random() % static_cast<unsigned>(kBytes - begin));
    const short types[] = {F_RDLCK, F_WRLCK, F_UNLCK};
    const short type = types[random() % 3];
    bool is_free = true;
    for (int other = 0; other < kFiles; ++other) {
      for (int at = begin; at < end && other != file && type != F_UNLCK; ++at) {
        const short theirs = held[other][at];
        if (theirs == F_WRLCK || (theirs == F_RDLCK && type == F_WRLCK)) is_free = false;
      }
    }
    struct flock wanted{};
    wanted.l_type = type;
    wanted.l_start = begin;
    wanted.l_len = end - begin;
    ASSERT_EQ(call(sys_fcntl, fds[file], F_OFD_SETLK, &wanted), is_free ? 0 : -EAGAIN) << "step " << i;
    for (int at = begin; at < end && is_free; ++at) held[file][at] = type;
  }
}

TEST_F(FileSystemTest, NothingIsLeft) {
  const auto work = [&] {
    write_path("/tmp/a", std::string(100'000, 'x'));
    call(sys_mkdir, "/tmp/d", 0755);
    write_path("/tmp/d/with a name of more than sixteen bytes", "text");
    call(sys_rename, "/tmp/a", "/tmp/d/b");
    call(sys_symlink, "target", "/tmp/d/l");
    const long fd = open("/tmp/d/b", O_RDWR);
    call(sys_flock, fd, LOCK_EX);
    const long watcher = call(sys_inotify_init);
    call(sys_inotify_add_watch, watcher, "/tmp/d", 0xfff);
    call(sys_setxattr, "/tmp/d/b", "user.x", "value", 5, 0);
    for (const char* path : {"/tmp/d/b", "/tmp/d/with a name of more than sixteen bytes", "/tmp/d/l"}) {
      EXPECT_EQ(call(sys_unlink, path), 0);
    }
    size_of("/tmp/d/none");
    EXPECT_EQ(call(sys_rmdir, "/tmp/d"), 0);
    call(sys_close, fd);
    call(sys_close, watcher);
    size_of("/tmp/a");
  };
  work();
  work();
  const std::uint64_t before = heap_bytes_used();
  const Inode::Space space_before = space->space();
  for (int i = 0; i < 10; ++i) work();
  EXPECT_EQ(heap_bytes_used(), before);
  EXPECT_EQ(space->space().blocks_free, space_before.blocks_free);
  EXPECT_EQ(space->space().inodes_free, space_before.inodes_free);
}

}  // namespace
}  // namespace belljar::kernel
