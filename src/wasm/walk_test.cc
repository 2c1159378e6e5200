#include "wasm/walk.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace belljar::wasm {
namespace {

class Walk : public testing::Test {
 protected:
  Walk() {
    char name[] = "/tmp/walk-XXXXXX";
    top_ = ::mkdtemp(name);
    std::filesystem::create_directories(top_ + "/in/a/b");
    std::ofstream(top_ + "/secret") << "secret";
    std::ofstream(top_ + "/in/a/file") << "inside";
    root_ = Fd(::open((top_ + "/in").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~Walk() override { std::filesystem::remove_all(top_); }

  void link(const char* target, const std::string& name) {
    ASSERT_EQ(::symlink(target, (top_ + "/in/" + name).c_str()), 0);
  }

  std::string read(std::string_view path, LastLink last = LastLink::follow) {
    auto file = walk_and_open(root_.get(), path, last, O_RDONLY);
    if (!file) return std::to_string(static_cast<int>(file.error()));
    return read_all(file->get(), 100).value_or("unreadable");
  }

  static std::string number(WasiErrno error) { return std::to_string(static_cast<int>(error)); }

  std::string top_;
  Fd root_;
};

TEST_F(Walk, FindsWhatLiesInside) {
  for (const char* path : {"a/file", "./a/file", "a//file", "a/b/../file", "a/b/../../a/./file"}) {
    EXPECT_EQ(read(path), "inside") << path;
  }
  EXPECT_EQ(read("a/none"), number(WasiErrno::noent));
  EXPECT_EQ(read("a/file/x"), number(WasiErrno::notdir));
  EXPECT_EQ(read("a/file/"), number(WasiErrno::notdir));
}

TEST_F(Walk, LeadsNowhereElse) {
  link("..", "up");
  link("../secret", "out");
  link((top_ + "/secret").c_str(), "absolute");
  link("../../../secret", "a/b/far");
  EXPECT_EQ(::access((top_ + "/in/out").c_str(), R_OK), 0) << "the kernel would follow it";
  for (const char* path :
       {"..", "../secret", "a/../../secret", "/etc/passwd", "out", "absolute", "up/secret", "a/b/far", "up"}) {
    EXPECT_EQ(read(path), number(WasiErrno::notcapable)) << path;
  }
}

TEST_F(Walk, FollowsLinksThatStay) {
  link("a", "folder");
  link("../a/file", "a/again");
  link("folder/b/../again", "twice");
  EXPECT_EQ(read("folder/file"), "inside");
  EXPECT_EQ(read("twice"), "inside");
  EXPECT_EQ(read("twice", LastLink::keep), number(WasiErrno::loop)) << "O_NOFOLLOW of the kernel";
}

TEST_F(Walk, EndsOnLinksThatNeverDo) {
  link("loop", "loop");
  link("pong", "ping");
  link("ping", "pong");
  EXPECT_EQ(read("loop"), number(WasiErrno::loop));
  EXPECT_EQ(read("ping/x"), number(WasiErrno::loop));
}

TEST_F(Walk, NamesThePlaceOfWhatIsToBeMade) {
  const auto place = walk(root_.get(), "a/new/", LastLink::keep);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->name, "new");
  EXPECT_TRUE(place->must_be_folder);
  EXPECT_EQ(walk(root_.get(), "none/new", LastLink::keep).error(), WasiErrno::noent);
  EXPECT_EQ(walk(root_.get(), "a/..", LastLink::keep)->name, ".");
}

TEST_F(Walk, RefusesOddPaths) {
  EXPECT_EQ(read(""), number(WasiErrno::noent));
  EXPECT_EQ(read(std::string_view("a\0b", 3)), number(WasiErrno::ilseq));
  EXPECT_EQ(read(std::string(5000, 'a')), number(WasiErrno::nametoolong));
  EXPECT_EQ(read(std::string(300, 'a')), number(WasiErrno::nametoolong));
}

}  // namespace
}  // namespace belljar::wasm
