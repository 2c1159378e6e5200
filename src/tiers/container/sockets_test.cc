#include "tiers/container/sockets.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/fd.h"

namespace belljar::container {
namespace {

namespace fs = std::filesystem;

class Sockets : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/belljar-sockets-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void bind_at(const fs::path& path) {
    const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }

  std::vector<std::string> found() {
    const auto folder = open_at(AT_FDCWD, folder_.c_str(), O_PATH | O_DIRECTORY);
    return *sockets_below(folder->get());
  }

  fs::path folder_;
};

TEST_F(Sockets, AreFoundWhateverTheyWereCalledWhenBound) {
  fs::create_directories(folder_ / "a" / "b c");
  bind_at(folder_ / "a" / "b c" / "one");
  fs::rename(folder_ / "a", folder_ / "renamed");
  bind_at(folder_ / "two\nlines");
  fs::create_hard_link(folder_ / "two\nlines", folder_ / "linked");
  EXPECT_THAT(found(), testing::UnorderedElementsAre("renamed/b c/one", "two\nlines", "linked"));
}

TEST_F(Sockets, LinksAreNotFollowedAndOtherFilesAreNone) {
  fs::create_directories(folder_ / "plain");
  fs::create_symlink("/run", folder_ / "run");
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(found(), testing::IsEmpty());
}

}  // namespace
}  // namespace belljar::container
