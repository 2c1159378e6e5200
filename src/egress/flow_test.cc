#include "egress/flow.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <string>

#include "base/fd.h"

namespace belljar::egress {
namespace {

using State = Flow::State;

// A connection over loopback: the program's or server's end, and the relay's, which never blocks.
struct Link {
  Fd far;
  Fd near;
};

Link connected() {
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  Link link{Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), {}};
  const bool is_made = ::bind(listener.get(), generic, size) == 0 && ::listen(listener.get(), 1) == 0 &&
                       ::getsockname(listener.get(), generic, &size) == 0 &&
                       ::connect(link.far.get(), generic, size) == 0;
  EXPECT_TRUE(is_made);
  link.near = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  EXPECT_TRUE(link.near.is_open());
  prepare_for_flow(link.near.get());
  return link;
}

std::string pattern(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + (i >> 8));
  return bytes;
}

// Sends what there is room for.
std::size_t send_some(const Fd& fd, std::string_view bytes) {
  const ssize_t count = ::send(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return count < 0 ? 0 : static_cast<std::size_t>(count);
}

std::string receive_some(const Fd& fd) {
  std::string bytes(std::size_t{256} << 10, '\0');
  const ssize_t count = ::recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  bytes.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  return bytes;
}

class FlowTest : public testing::Test {
 protected:
  std::uint64_t pump() { return flow_.pump(source_.near.get(), target_.near.get(), buffer_, most_); }

  std::uint64_t most_ = UINT64_MAX;
  Link source_ = connected();
  Link target_ = connected();
  FlowBuffer buffer_;
  Flow flow_;
};

int option(const Fd& fd, int level, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(fd.get(), level, name, &value, &size), 0);
  return value;
}

// Otherwise a small piece waits until the one before it is acknowledged, which takes up to 40 ms.
TEST_F(FlowTest, SmallPiecesDoNotWait) {
  EXPECT_NE(option(target_.near, IPPROTO_TCP, TCP_NODELAY), 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(send_some(source_.far, "x"), 1U);
    EXPECT_EQ(pump(), 1U);
    EXPECT_EQ(receive_some(target_.far), "x");
  }
}

TEST_F(FlowTest, WaitsForTheSource) {
  EXPECT_EQ(pump(), 0U);
  EXPECT_EQ(flow_.state(), State::waits_for_source);
}

TEST_F(FlowTest, EndsOnceAllBytesAreMoved) {
  ASSERT_EQ(send_some(source_.far, "last"), 4U);
  ::shutdown(source_.far.get(), SHUT_WR);
  EXPECT_EQ(pump(), 4U);
  EXPECT_FALSE(flow_.is_ended());
  EXPECT_EQ(pump(), 0U);
  EXPECT_TRUE(flow_.is_ended());
  EXPECT_EQ(receive_some(target_.far), "last");
}

// What a slow target does not take stays where it was, and comes in order and once.
TEST_F(FlowTest, LosesNothingWhereTheTargetIsSlow) {
  const std::string all = pattern(std::size_t{24} << 20);
  std::string come;
  std::size_t sent = 0;
  std::uint64_t moved = 0;
  unsigned waits_for_target = 0;
  while (come.size() < all.size()) {
    const std::size_t more = send_some(source_.far, std::string_view(all).substr(sent));
    sent += more;
    const std::uint64_t step = pump();
    moved += step;
    ASSERT_NE(flow_.state(), State::failed);
    if (flow_.state() == State::waits_for_target) ++waits_for_target;
    if (more > 0 && step > 0) continue;
    come += receive_some(target_.far);
  }
  EXPECT_TRUE(come == all);
  EXPECT_EQ(moved, all.size());
  EXPECT_GT(waits_for_target, 0U);
  EXPECT_EQ(receive_some(source_.near), "");
}

TEST_F(FlowTest, UrgentBytesAreBytesLikeOthers) {
  ASSERT_EQ(send_some(source_.far, "ab"), 2U);
  ASSERT_EQ(::send(source_.far.get(), "!", 1, MSG_OOB | MSG_NOSIGNAL), 1);
  ASSERT_EQ(send_some(source_.far, "cd"), 2U);
  std::uint64_t moved = 0;
  for (int i = 0; i < 4; ++i) moved += pump();
  EXPECT_EQ(moved, 5U);
  EXPECT_EQ(receive_some(target_.far), "ab!cd");
}

TEST_F(FlowTest, NeverMovesMoreThanItMay) {
  most_ = 3;
  ASSERT_EQ(send_some(source_.far, "abc"), 3U);
  EXPECT_EQ(pump(), 3U);
  EXPECT_EQ(flow_.state(), State::waits_for_source);
  most_ = 0;
  EXPECT_EQ(pump(), 0U);
  EXPECT_EQ(flow_.state(), State::waits_for_source);
  ASSERT_EQ(send_some(source_.far, "d"), 1U);
  EXPECT_EQ(pump(), 0U);
  EXPECT_EQ(flow_.state(), State::at_limit);
  EXPECT_EQ(receive_some(target_.far), "abc");
}

TEST_F(FlowTest, FailsWhereASideIsGone) {
  const linger at_once{1, 0};
  ::setsockopt(target_.far.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  target_.far.reset();
  ASSERT_EQ(send_some(source_.far, "x"), 1U);
  EXPECT_EQ(pump(), 0U);
  EXPECT_EQ(flow_.state(), State::failed);
}

}  // namespace
}  // namespace belljar::egress
