#include "image/confined.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "spec/errors.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using namespace std::chrono_literals;

class ConfinedTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "confined.XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    fs::create_directory(folder_ / "work");
    std::ofstream(folder_ / "secret") << "secret";
    std::ofstream(folder_ / "work" / "own") << "own";
  }
  void TearDown() override { fs::remove_all(folder_); }

  Result<std::string> run(std::function<std::string(const ConfinedPlaces&)> body,
                          FolderAccess access = FolderAccess::read_write, std::chrono::milliseconds time = 20s) {
    ConfinedWork work;
    work.folder = folder_ / "work";
    work.access = access;
    work.file_bytes_max = 1 << 20;
    work.cpu_seconds_max = 20;
    work.run = std::move(body);
    auto process = ConfinedProcess::start(work);
    if (!process) return std::unexpected(process.error());
    return process->finish(std::chrono::steady_clock::now() + time);
  }

  // A call that the filter should end the process for.
  void expect_killed(const char* what, std::function<void()> body) {
    const auto result = run([body = std::move(body)](const ConfinedPlaces&) {
      body();
      return std::string("survived");
    });
    ASSERT_FALSE(result.has_value()) << what;
    EXPECT_EQ(result.error().code, ErrorCode::bad_image);
    EXPECT_THAT(result.error().message, HasSubstr("signal 31")) << what;
  }

  fs::path folder_;
};

TEST_F(ConfinedTest, HandsBackWhatTheWorkSays) {
  EXPECT_EQ(run([](const ConfinedPlaces&) { return std::string(300'000, 'r'); }).value_or(""),
            std::string(300'000, 'r'));
}

TEST_F(ConfinedTest, SeesItsFolderAndNothingElse) {
  const std::string secret = folder_ / "secret";
  const auto result = run([&](const ConfinedPlaces& places) {
    std::string seen;
    for (const std::string& path :
         {std::string("own"), std::string("/own"), std::string("../secret"), std::string("/../secret"), secret,
          std::string("/etc/passwd"), std::string("/proc")}) {
      seen += ::openat(places.folder_fd, path.c_str(), O_RDONLY) >= 0 ? 'y' : 'n';
    }
    return seen;
  });
  EXPECT_EQ(result.value_or(result.error().message), "yynnnnn");
}

TEST_F(ConfinedTest, WritesOnlyWhereItMay) {
  const auto write = [](const ConfinedPlaces& places) {
    return std::string(::openat(places.folder_fd, "new", O_WRONLY | O_CREAT, 0600) >= 0 ? "made" : "refused");
  };
  EXPECT_EQ(run(write, FolderAccess::read_only).value_or(""), "refused");
  EXPECT_FALSE(fs::exists(folder_ / "work" / "new"));
  EXPECT_EQ(run(write, FolderAccess::read_write).value_or(""), "made");
  EXPECT_TRUE(fs::exists(folder_ / "work" / "new"));
}

TEST_F(ConfinedTest, SeesASourceFolderReadOnly) {
  fs::create_directory(folder_ / "source");
  std::ofstream(folder_ / "source" / "file") << "x";
  ConfinedWork work;
  work.folder = folder_ / "work";
  work.source_folder = folder_ / "source";
  work.cpu_seconds_max = 20;
  work.run = [](const ConfinedPlaces& places) {
    std::string seen;
    for (const auto& [path, flags] :
         {std::pair{"file", O_RDONLY}, std::pair{"file", O_WRONLY}, std::pair{"../secret", O_RDONLY}}) {
      seen += ::openat(places.source_fd, path, flags) >= 0 ? 'y' : 'n';
    }
    return seen;
  };
  auto process = ConfinedProcess::start(work);
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(process->finish(std::chrono::steady_clock::now() + 20s).value_or(""), "ynn");
}

TEST_F(ConfinedTest, HasOnlyTheDescriptorsItWasGiven) {
  const Fd secret(::open((folder_ / "secret").c_str(), O_RDONLY));
  const Fd given(::open((folder_ / "secret").c_str(), O_RDONLY));
  ConfinedWork work;
  work.folder = folder_ / "work";
  work.cpu_seconds_max = 20;
  work.input_fd = given.get();
  work.run = [&](const ConfinedPlaces&) {
    char byte = 0;
    return std::string(::read(secret.get(), &byte, 1) == 1 ? "y" : "n") +
           (::read(given.get(), &byte, 1) == 1 ? "y" : "n");
  };
  auto process = ConfinedProcess::start(work);
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(process->finish(std::chrono::steady_clock::now() + 20s).value_or(""), "ny");
}

TEST_F(ConfinedTest, ForgetsTheEnvironment) {
  ASSERT_EQ(::setenv("BELLJAR_TEST_SECRET", "canary", 1), 0);
  const char* const value = ::getenv("BELLJAR_TEST_SECRET");
  EXPECT_EQ(run([value](const ConfinedPlaces&) { return std::string(value); }).value_or("error"), "");
  EXPECT_STREQ(value, "canary");
}

TEST_F(ConfinedTest, DiesOfCallsThatReadingNeverMakes) {
  expect_killed("socket", [] { ::socket(AF_INET, SOCK_STREAM, 0); });
  expect_killed("fork", [] { ::syscall(SYS_fork); });
  expect_killed("execve", [] { ::execl("/own", "own", nullptr); });
  expect_killed("kill", [] { ::kill(-1, 0); });
  expect_killed("mount", [] { ::syscall(SYS_mount, "a", "/", "tmpfs", 0, nullptr); });
  expect_killed("setuid file", [] { ::openat(AT_FDCWD, "/s", O_CREAT | O_WRONLY, 04755); });
  expect_killed("setuid bit", [] { ::fchmod(::openat(AT_FDCWD, "/s", O_CREAT | O_WRONLY, 0755), 04755); });
  expect_killed("device", [] { ::mknodat(AT_FDCWD, "/d", S_IFCHR | 0666, 0x103); });
  expect_killed("attribute", [] { ::syscall(SYS_setxattr, "/own", "user.a", "b", 1, 0); });
  expect_killed("new code", [] { ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); });
  expect_killed("rename", [] { ::renameat(AT_FDCWD, "/own", AT_FDCWD, "/other"); });
}

TEST_F(ConfinedTest, IsStoppedAtTheDeadline) {
  const auto start = std::chrono::steady_clock::now();
  const auto result = run(
      [](const ConfinedPlaces&) -> std::string {
        while (true) ::sched_yield();
      },
      FolderAccess::read_only, 100ms);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message, HasSubstr("too long"));
}

TEST_F(ConfinedTest, HoldsTheSizeOfFiles) {
  const auto result = run([](const ConfinedPlaces& places) {
    const int fd = ::openat(places.folder_fd, "big", O_WRONLY | O_CREAT, 0600);
    return std::string(::ftruncate(fd, 2 << 20) == 0 ? "made" : "refused");
  });
  EXPECT_NE(result.value_or(""), "made");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(ConfinedTest, HoldsMemory) {
  const auto result = run([](const ConfinedPlaces&) {
    std::vector<std::string> all;
    while (true) all.emplace_back(1 << 20, 'x');
    return std::string();
  });
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message, HasSubstr("more than 1024 MiB of memory"));
}
#endif

TEST_F(ConfinedTest, TellsACrash) {
  const auto result = run([](const ConfinedPlaces&) -> std::string { __builtin_trap(); });
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::bad_image);
  EXPECT_THAT(result.error().message, HasSubstr("bad end"));
}

TEST_F(ConfinedTest, RefusesAFolderThatIsNotThere) {
  ConfinedWork work;
  work.folder = folder_ / "missing";
  work.run = [](const ConfinedPlaces&) { return std::string(); };
  EXPECT_FALSE(ConfinedProcess::start(work).has_value());
}

}  // namespace
}  // namespace belljar
