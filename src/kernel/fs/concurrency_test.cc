// Threads that work in the same folders at once: what is left must be consistent, and nothing lost.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>

#include <random>
#include <thread>
#include <vector>

#include "kernel/fs/test_tree.h"

namespace belljar::kernel {
namespace {

constexpr int kThreads = 3;
constexpr int kSteps = 3000;

TEST_F(FileSystemTest, ThreadsWorkInTheSameFolders) {
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    const auto path = [&] {
      return "/tmp/" + std::string(random() % 2 == 0 ? "d/" : "") +
             std::string(1, static_cast<char>('a' + random() % 4));
    };
    std::vector<char> block(20'000, 'x');
    struct stat status{};
    for (int i = 0; i < kSteps; ++i) {
      const std::string one = path(), other = path();
      switch (random() % 12) {
        case 0:
          call(sys_mkdir, "/tmp/d", 0755);
          break;
        case 1:
          call(sys_rename, one.c_str(), other.c_str());
          break;
        case 2:
          call(sys_unlink, one.c_str());
          break;
        case 3:
          call(sys_link, one.c_str(), other.c_str());
          break;
        case 4:
          call(sys_stat, one.c_str(), &status);
          break;
        case 5:
          call(sys_chmod, one.c_str(), 0700 | random() % 64);
          break;
        case 6:
          call(sys_rmdir, "/tmp/d");
          break;
        case 7:
          call(sys_truncate, one.c_str(), random() % 30'000);
          break;
        default: {
          const long fd = open(one.c_str(), O_CREAT | O_RDWR);
          if (fd < 0) break;
          call(sys_flock, fd, random() % 2 == 0 ? LOCK_SH : LOCK_EX);
          call(sys_pwrite64, fd, block.data(), random() % block.size(), random() % 40'000);
          call(sys_pread64, fd, block.data(), block.size(), 0);
          call(sys_fstat, fd, &status);
          call(sys_close, fd);
          break;
        }
      }
    }
  };
  const long watcher = call(sys_inotify_init1, IN_NONBLOCK);
  call(sys_inotify_add_watch, watcher, "/tmp", IN_ALL_EVENTS);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      HostedThread thread(kernel);
      Credentials& who = current().credentials;
      who.uid = who.euid = who.suid = who.fsuid = 1000;
      who.gid = who.egid = who.sgid = who.fsgid = 1000;
      work(static_cast<unsigned>(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  call(sys_close, watcher);
  remove_below("/tmp");
  EXPECT_EQ(space->space().blocks_free, kSpaceBytes / kPageSize);
  EXPECT_EQ(space->space().inodes_free, kSpaceInodes - 2) << "the roots of /tmp and /dev/shm";
  struct stat status{};
  call(sys_stat, "/tmp", &status);
  EXPECT_EQ(status.st_nlink, 2U);
  EXPECT_EQ(status.st_size, 40);
}

TEST_F(FileSystemTest, ALockIsWaitedFor) {
  write_path("/tmp/l", "x");
  const long held = open("/tmp/l", O_RDWR);
  ASSERT_EQ(call(sys_flock, held, LOCK_EX), 0);
  struct flock range{};
  range.l_type = F_WRLCK;
  ASSERT_EQ(call(sys_fcntl, held, F_OFD_SETLK, &range), 0);
  std::atomic<int> got = 0;
  std::thread waiter([&] {
    HostedThread thread(kernel);
    current().credentials = kernel.task().credentials;
    const long fd = open("/tmp/l", O_RDWR);
    EXPECT_EQ(call(sys_flock, fd, LOCK_EX), 0);
    ++got;
    struct flock wanted{};
    wanted.l_type = F_WRLCK;
    EXPECT_EQ(call(sys_fcntl, fd, F_OFD_SETLKW, &wanted), 0);
    ++got;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(got, 0);
  call(sys_flock, held, LOCK_UN);
  while (got != 1) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(got, 1);
  call(sys_close, held);
  waiter.join();
  EXPECT_EQ(got, 2);
}

}  // namespace
}  // namespace belljar::kernel
