#include "host/own_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <filesystem>

namespace belljar::host {
namespace {

constexpr const char* kName = "belljar-own-program-test";

class OwnProgram : public testing::Test {
 protected:
  OwnProgram() {
    std::array<char, PATH_MAX> own{};
    if (::readlink("/proc/self/exe", own.data(), own.size() - 1) < 0) std::abort();
    path_ = std::filesystem::path(own.data()).parent_path() / kName;
    make();
  }
  ~OwnProgram() override { std::filesystem::remove(path_); }

  void make() {
    std::filesystem::remove(path_);
    const Fd made(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0755));
    ASSERT_TRUE(made.is_open());
  }

  std::filesystem::path path_;
};

TEST_F(OwnProgram, IsFoundBesideThisOne) {
  const auto found = open_own_program(kName);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, path_);
  EXPECT_FALSE(open_own_program("belljar-no-such-program"));
}

TEST_F(OwnProgram, IsPassedOverWhereOthersCouldWriteIt) {
  ::chmod(path_.c_str(), 0757);
  const auto found = open_own_program(kName);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().value, EPERM);
}

TEST_F(OwnProgram, IsPassedOverAsALink) {
  std::filesystem::remove(path_);
  std::filesystem::create_symlink("/bin/sh", path_);
  EXPECT_FALSE(open_own_program(kName));
}

TEST_F(OwnProgram, IsPassedOverWhereItIsAnothersFile) {
  if (::geteuid() != 0) GTEST_SKIP() << "NOT COVERED: a file of another user: needs root";
  ASSERT_EQ(::chown(path_.c_str(), 54321, 54321), 0);
  EXPECT_FALSE(open_own_program(kName));
}

}  // namespace
}  // namespace belljar::host
