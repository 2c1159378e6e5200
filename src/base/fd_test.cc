#include "base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace belljar {
namespace {

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

TEST(Fd, ClosesOnDestruction) {
  int number;
  {
    Fd fd(::open("/dev/null", O_RDONLY));
    number = fd.get();
    ASSERT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(Fd, MoveLeavesTheSourceEmpty) {
  Fd a(::open("/dev/null", O_RDONLY));
  const int number = a.get();
  Fd b(std::move(a));
  EXPECT_FALSE(a.is_open());  // NOLINT(bugprone-use-after-move): the moved-from state is the point
  EXPECT_EQ(b.get(), number);
}

TEST(Fd, ReadAllRefusesMoreThanTheBound) {
  Pipe pipe = *make_pipe();
  ASSERT_TRUE(write_all(pipe.write.get(), "12345"));
  pipe.write.reset();
  const auto content = read_all(pipe.read.get(), 4);
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().value, EFBIG);
}

TEST(Fd, OpenReportsErrno) {
  const auto fd = open_at(AT_FDCWD, "/nonexistent", O_RDONLY);
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().value, ENOENT);
}

}  // namespace
}  // namespace belljar
