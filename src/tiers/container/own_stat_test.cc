#include "tiers/container/own_stat.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace belljar::container {
namespace {

TEST(OwnStat, ThisProcessIsAliveUnderItsOwnStartTimeOnly) {
  const auto own = read_own_stat();
  ASSERT_TRUE(own);
  EXPECT_TRUE(is_alive(::getpid(), own->start_time));
  EXPECT_FALSE(is_alive(::getpid(), own->start_time + "0"));
  EXPECT_FALSE(is_alive(::getpid(), ""));
  EXPECT_FALSE(is_alive(0, own->start_time));
}

// A parent that does not reap must not keep what its killed child left from being swept.
TEST(OwnStat, AZombieIsNotAlive) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto own = read_own_stat();
    const bool told = own && ::write(ends[1], own->start_time.data(), own->start_time.size()) > 0;
    ::_exit(told ? 0 : 1);
  }
  ::close(ends[1]);
  char text[64];
  const ssize_t count = ::read(ends[0], text, sizeof text);
  ::close(ends[0]);
  ASSERT_GT(count, 0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(is_alive(child, std::string_view(text, static_cast<std::size_t>(count))));
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace belljar::container
