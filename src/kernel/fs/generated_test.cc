// /proc, /dev and /sys, as programs see them.
#include "kernel/fs/generated.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <set>

#include "kernel/fs/dev.h"
#include "kernel/fs/proc.h"
#include "kernel/fs/sys.h"
#include "kernel/fs/test_tree.h"
#include "kernel/task/sandbox_facts.h"

namespace belljar::kernel {
namespace {

class Generated : public FileSystemTest {
 protected:
  static std::set<std::string> names(const char* path) {
    std::set<std::string> found;
    const long fd = open(path, O_RDONLY | O_DIRECTORY);
    EXPECT_GE(fd, 0) << path;
    alignas(8) char block[200];  // a few entries each time
    while (true) {
      const long size = call(sys_getdents64, fd, block, sizeof block);
      EXPECT_GE(size, 0);
      if (size <= 0) break;
      for (long at = 0; at < size;) {
        const auto* const entry = reinterpret_cast<const dirent64*>(block + at);
        EXPECT_TRUE(found.insert(entry->d_name).second) << entry->d_name;
        at += entry->d_reclen;
      }
    }
    call(sys_close, fd);
    return found;
  }
  static std::string link(const char* path) {
    char target[256];
    const long size = call(sys_readlink, path, target, sizeof target);
    return size < 0 ? "error " + std::to_string(size) : std::string(target, static_cast<std::size_t>(size));
  }
};

TEST_F(Generated, FoldersFollowFromPaths) {
  EXPECT_EQ(names("/sys/devices/system"), (std::set<std::string>{".", "..", "cpu", "node"}));
  EXPECT_EQ(read_path("/sys/devices/system/node/online"), "0\n");
  EXPECT_EQ(read_path("/sys/devices/system/none"), "error -2");
  EXPECT_EQ(open("/sys/devices/system/node/online", O_WRONLY), -EACCES);
  EXPECT_EQ(call(sys_mkdir, "/sys/new", 0755), -EACCES);
}

TEST_F(Generated, CpusAreNumbered) {
  sandbox_facts().cpu_count = 2;
  EXPECT_EQ(read_path("/sys/devices/system/cpu/online"), "0-1\n");
  EXPECT_EQ(read_path("/sys/devices/system/cpu/cpu1/topology/core_id"), "1\n");
  EXPECT_EQ(read_path("/sys/devices/system/cpu/cpu2/topology/core_id"), "error -2");
  EXPECT_EQ(read_path("/sys/devices/system/cpu/cpu01/topology/core_id"), "error -2");
  const std::set<std::string> found = names("/sys/devices/system/cpu");
  EXPECT_TRUE(found.contains("cpu0"));
  EXPECT_TRUE(found.contains("cpu1"));
  EXPECT_FALSE(found.contains("cpu2"));
}

TEST_F(Generated, DevicesDoWhatTheyDo) {
  char bytes[16] = "xxxxxxxxxxxxxxx";
  const long null = open("/dev/null", O_RDWR);
  EXPECT_EQ(call(sys_read, null, bytes, 8), 0);
  EXPECT_EQ(call(sys_write, null, bytes, 8), 8);
  EXPECT_EQ(call(sys_lseek, null, 0, SEEK_END), 0);
  const long zero = open("/dev/zero", O_RDWR);
  EXPECT_EQ(call(sys_read, zero, bytes, 8), 8);
  EXPECT_EQ(bytes[7], '\0');
  EXPECT_EQ(bytes[8], 'x');
  const long full = open("/dev/full", O_RDWR);
  EXPECT_EQ(call(sys_write, full, bytes, 8), -ENOSPC);
  const long random = open("/dev/urandom", O_RDONLY);
  char more[16] = {};
  EXPECT_EQ(call(sys_read, random, bytes, 16), 16);
  EXPECT_EQ(call(sys_read, random, more, 16), 16);
  EXPECT_NE(std::memcmp(bytes, more, 16), 0);
  struct stat status{};
  EXPECT_EQ(call(sys_fstat, null, &status), 0);
  EXPECT_EQ(status.st_mode, static_cast<mode_t>(S_IFCHR | 0666));
  EXPECT_EQ(status.st_rdev, 0x103U);
  EXPECT_TRUE(names("/dev").contains("shm"));
  EXPECT_EQ(write_path("/dev/shm/file", "text"), 4);
}

TEST_F(Generated, ProcShowsTheRunningProcess) {
  std::memcpy(kernel.task().name, "test", 5);
  EXPECT_EQ(link("/proc/self"), "1");
  EXPECT_EQ(link("/proc/thread-self"), "1/task/1");
  EXPECT_EQ(read_path("/proc/self/comm"), "test\n");
  EXPECT_EQ(read_path("/proc/1/stat").substr(0, 10), "1 (test) R");
  EXPECT_EQ(read_path("/proc/self/task/1/comm"), "test\n");
  EXPECT_EQ(read_path("/proc/2/comm"), "error -2");
  EXPECT_NE(read_path("/proc/self/status").find("\nUid:\t1000\t1000\t1000\t1000\n"), std::string::npos);
  EXPECT_NE(read_path("/proc/self/limits")
                .find("Max open files            unlimited            unlimited            files     \n"),
            std::string::npos);
  EXPECT_EQ(write_path("/proc/self/comm", "other\n"), 6);
  EXPECT_STREQ(kernel.task().name, "other");
  EXPECT_TRUE(names("/proc").contains("1"));
  EXPECT_TRUE(names("/proc").contains("sys"));
  EXPECT_EQ(names("/proc/self/task"), (std::set<std::string>{".", "..", "1"}));
  EXPECT_EQ(link("/proc/self/cwd"), "/");
}

TEST_F(Generated, StatHasAllItsFields) {
  const std::string text = read_path("/proc/self/stat");
  EXPECT_EQ(std::count(text.begin(), text.end(), ' '), 51);
  EXPECT_EQ(text.back(), '\n');
}

TEST_F(Generated, OpenFilesAreLinks) {
  EXPECT_EQ(write_path("/tmp/file", "text"), 4);
  const long fd = open("/tmp/file", O_RDONLY);
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  EXPECT_EQ(link(path.c_str()), "/tmp/file");
  EXPECT_EQ(read_path(path.c_str()), "text");
  EXPECT_EQ(read_path(("/dev/fd/" + std::to_string(fd)).c_str()), "text");
  EXPECT_EQ(call(sys_unlink, "/tmp/file"), 0);
  EXPECT_EQ(link(path.c_str()), "/tmp/file (deleted)");
  EXPECT_EQ(read_path(path.c_str()), "text");
  EXPECT_NE(read_path(("/proc/self/fdinfo/" + std::to_string(fd)).c_str()).find("pos:\t0\nflags:\t0"),
            std::string::npos);
  EXPECT_EQ(link("/proc/self/fd/77"), "error -2");
  EXPECT_TRUE(names("/proc/self/fd").contains(std::to_string(fd)));
}

TEST_F(Generated, PipesCanBeOpenedAnew) {
  int ends[2];
  EXPECT_EQ(call(sys_pipe, ends), 0);
  const std::string writer = "/proc/self/fd/" + std::to_string(ends[1]);
  EXPECT_EQ(link(writer.c_str()).substr(0, 6), "pipe:[");
  const long again = open(writer.c_str(), O_WRONLY);
  ASSERT_GE(again, 0);
  EXPECT_EQ(call(sys_close, ends[1]), 0);
  EXPECT_EQ(call(sys_write, again, "text", 4), 4);
  EXPECT_EQ(call(sys_close, again), 0);
  EXPECT_EQ(read_all(ends[0]), "text");
}

TEST_F(Generated, AFileReadFromItsBeginningIsMadeAnew) {
  const long fd = open("/proc/self/comm", O_RDONLY);
  std::memcpy(kernel.task().name, "one", 4);
  EXPECT_EQ(read_all(fd), "one\n");
  std::memcpy(kernel.task().name, "two", 4);
  char block[8];
  EXPECT_EQ(call(sys_read, fd, block, 8), 0);
  EXPECT_EQ(call(sys_lseek, fd, 0, SEEK_SET), 0);
  EXPECT_EQ(read_all(fd), "two\n");
}

TEST_F(Generated, TheMachineIsTheSandboxs) {
  sandbox_facts().memory_bytes = 512U << 20;
  EXPECT_EQ(read_path("/proc/meminfo").substr(0, 28), "MemTotal:         524288 kB\n");
  EXPECT_EQ(read_path("/proc/sys/kernel/ostype"), "Linux\n");
  EXPECT_EQ(read_path("/proc/sys/kernel/random/boot_id"), read_path("/proc/sys/kernel/random/boot_id"));
  EXPECT_NE(read_path("/proc/sys/kernel/random/uuid"), read_path("/proc/sys/kernel/random/uuid"));
  EXPECT_EQ(read_path("/proc/sys/kernel/random/uuid").size(), 37U);
  EXPECT_NE(read_path("/proc/cpuinfo").find("processor\t: 0\n"), std::string::npos);
  EXPECT_NE(read_path("/proc/mounts").find("proc /proc proc rw,relatime 0 0\n"), std::string::npos);
  EXPECT_EQ(read_path("/proc/stat").substr(0, 5), "cpu  ");
  EXPECT_EQ(open("/proc/sys/kernel/hostname", O_WRONLY), -EACCES);
}

TEST_F(Generated, OthersMayBeMadeLikelierToBeKilledOnly) {
  EXPECT_EQ(read_path("/proc/self/oom_score_adj"), "0\n");
  EXPECT_EQ(write_path("/proc/self/oom_score_adj", "300\n"), 4);
  EXPECT_EQ(read_path("/proc/self/oom_score_adj"), "300\n");
  EXPECT_EQ(write_path("/proc/self/oom_score_adj", "-300"), -EACCES);
  EXPECT_EQ(write_path("/proc/self/oom_score_adj", "x"), -EINVAL);
}

}  // namespace
}  // namespace belljar::kernel
