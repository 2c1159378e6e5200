// Sockets of unix(7), by their system calls.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "kernel/arena/heap.h"
#include "kernel/base/hosted.h"
#include "kernel/ipc/unix_socket.h"
#include "kernel/syscalls/call_hosted.h"

namespace belljar::kernel {
namespace {

struct Pair {
  explicit Pair(int type) { EXPECT_EQ(call(sys_socketpair, AF_UNIX, type, 0, fds), 0); }
  int fds[2] = {-1, -1};
};

struct Address {
  sockaddr_un name{};
  std::uint32_t size = 0;
};

Address abstract_address(std::string_view text) {
  Address address;
  address.name.sun_family = AF_UNIX;
  std::memcpy(address.name.sun_path + 1, text.data(), text.size());
  address.size = static_cast<std::uint32_t>(sizeof(sa_family_t) + 1 + text.size());
  return address;
}

std::int64_t send_text(int fd, std::string_view text, int flags = MSG_NOSIGNAL) {
  return call(sys_sendto, fd, text.data(), text.size(), flags, 0, 0);
}

std::string receive_text(int fd, std::size_t size, int flags = MSG_DONTWAIT) {
  std::string text(size, '\0');
  const std::int64_t count = call(sys_recvfrom, fd, text.data(), size, flags, 0, 0);
  if (count < 0) return "errno " + std::to_string(-count);
  text.resize(static_cast<std::size_t>(count));
  return text;
}

std::int64_t ready_of(int fd) {
  return (*current().files->get(fd))->ready();
}

int close_fd(int fd) {
  return current().files->close(fd) ? 0 : -1;
}

// Sends one byte with these files.
std::int64_t send_files(int fd, std::vector<int> files) {
  std::vector<char> control(CMSG_SPACE(files.size() * sizeof(int)));
  char byte = 'f';
  iovec area{&byte, 1};
  msghdr header{};
  header.msg_iov = &area;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* const message = CMSG_FIRSTHDR(&header);
  message->cmsg_level = SOL_SOCKET;
  message->cmsg_type = SCM_RIGHTS;
  message->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
  std::memcpy(CMSG_DATA(message), files.data(), files.size() * sizeof(int));
  return call(sys_sendmsg, fd, &header, 0);
}

struct Received {
  std::int64_t result = 0;
  int flags = 0;
  std::vector<int> files;
  bool has_credentials = false;
  ucred credentials{};
};

Received receive_files(int fd, std::size_t room, int flags = MSG_DONTWAIT) {
  std::vector<char> control(room);
  char bytes[16];
  iovec area{bytes, sizeof bytes};
  msghdr header{};
  header.msg_iov = &area;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  Received received;
  received.result = call(sys_recvmsg, fd, &header, flags);
  received.flags = header.msg_flags;
  for (cmsghdr* message = CMSG_FIRSTHDR(&header); message != nullptr; message = CMSG_NXTHDR(&header, message)) {
    if (message->cmsg_type == SCM_RIGHTS) {
      received.files.resize((message->cmsg_len - CMSG_LEN(0)) / sizeof(int));
      std::memcpy(received.files.data(), CMSG_DATA(message), received.files.size() * sizeof(int));
    } else if (message->cmsg_type == SCM_CREDENTIALS) {
      received.has_credentials = true;
      std::memcpy(&received.credentials, CMSG_DATA(message), sizeof received.credentials);
    }
  }
  return received;
}

TEST(Sockets, OnlyThoseOfUnixExist) {
  HostedKernel kernel;
  EXPECT_EQ(call(sys_socket, AF_INET, SOCK_STREAM, 0), -EAFNOSUPPORT);
  EXPECT_EQ(call(sys_socket, AF_NETLINK, SOCK_RAW, 0), -EAFNOSUPPORT);
  EXPECT_EQ(call(sys_socket, AF_UNIX, SOCK_RDM, 0), -ESOCKTNOSUPPORT);
  EXPECT_EQ(call(sys_socket, AF_UNIX, SOCK_STREAM, 6), -EPROTONOSUPPORT);
  EXPECT_EQ(call(sys_socket, AF_UNIX, SOCK_STREAM | 0x10, 0), -EINVAL);
  int pipe[2];
  EXPECT_EQ(call(sys_pipe, pipe), 0);
  EXPECT_EQ(call(sys_listen, pipe[0], 1), -ENOTSOCK);
}

TEST(Sockets, StreamsJoinAndPacketsStayApart) {
  HostedKernel kernel;
  const Pair stream(SOCK_STREAM);
  EXPECT_EQ(send_text(stream.fds[0], "one"), 3);
  EXPECT_EQ(send_text(stream.fds[0], "two"), 3);
  int waiting = 0;
  EXPECT_EQ((*current().files->get(stream.fds[1]))->ioctl(FIONREAD, as_argument(&waiting)), 0U);
  EXPECT_EQ(waiting, 6);
  EXPECT_EQ(receive_text(stream.fds[1], 4, MSG_PEEK), "onet");
  EXPECT_EQ(receive_text(stream.fds[1], 4), "onet");
  EXPECT_EQ(receive_text(stream.fds[1], 10), "wo");
  EXPECT_EQ(receive_text(stream.fds[1], 10), "errno 11");
  for (const int type : {SOCK_DGRAM, SOCK_SEQPACKET}) {
    const Pair packets(type);
    EXPECT_EQ(send_text(packets.fds[0], "one"), 3);
    EXPECT_EQ(send_text(packets.fds[0], ""), 0);
    EXPECT_EQ(send_text(packets.fds[0], "three"), 5);
    EXPECT_EQ(receive_text(packets.fds[1], 10), "one");
    EXPECT_EQ(receive_text(packets.fds[1], 10), "");
    char bytes[2];
    EXPECT_EQ(call(sys_recvfrom, packets.fds[1], bytes, 2, MSG_TRUNC, 0, 0), 5);
    EXPECT_EQ(send_text(packets.fds[0], std::string(300'000, 'x')), -EMSGSIZE);
  }
}

TEST(Sockets, FullAndEmpty) {
  HostedKernel kernel;
  const Pair pair(SOCK_STREAM);
  const std::string text(10'000, 'x');
  std::int64_t sent = 0;
  while (true) {
    const std::int64_t count = send_text(pair.fds[0], text, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0) break;
    sent += count;
  }
  EXPECT_GT(sent, 150'000);
  EXPECT_LT(sent, 300'000);
  EXPECT_EQ(ready_of(pair.fds[0]) & POLLOUT, 0);
  std::int64_t received = 0;
  while (ready_of(pair.fds[1]) & POLLIN) received += static_cast<std::int64_t>(receive_text(pair.fds[1], 7'000).size());
  EXPECT_EQ(received, sent);
  EXPECT_NE(ready_of(pair.fds[0]) & POLLOUT, 0);
}

TEST(Sockets, EndsAreSeen) {
  HostedKernel kernel;
  const Pair pair(SOCK_STREAM);
  EXPECT_EQ(send_text(pair.fds[0], "last"), 4);
  EXPECT_EQ(call(sys_shutdown, pair.fds[0], SHUT_WR), 0);
  EXPECT_EQ(send_text(pair.fds[0], "more"), -EPIPE);
  EXPECT_EQ(receive_text(pair.fds[1], 10), "last");
  EXPECT_EQ(receive_text(pair.fds[1], 10), "");
  EXPECT_EQ(ready_of(pair.fds[1]) & (POLLIN | POLLRDHUP | POLLHUP), POLLIN | POLLRDHUP);
  EXPECT_EQ(send_text(pair.fds[1], "back"), 4);
  // Closed with bytes that were not read.
  EXPECT_EQ(close_fd(pair.fds[0]), 0);
  EXPECT_EQ(ready_of(pair.fds[1]) & (POLLHUP | POLLERR), POLLHUP | POLLERR);
  EXPECT_EQ(receive_text(pair.fds[1], 10), "errno " + std::to_string(ECONNRESET));
  EXPECT_EQ(receive_text(pair.fds[1], 10), "");
  EXPECT_EQ(send_text(pair.fds[1], "x"), -EPIPE);
}

TEST(Sockets, ConnectAndAccept) {
  HostedKernel kernel;
  const Address address = abstract_address("belljar");
  const auto listener = static_cast<int>(call(sys_socket, AF_UNIX, SOCK_STREAM, 0));
  EXPECT_EQ(call(sys_listen, listener, 1), -EINVAL);
  EXPECT_EQ(call(sys_bind, listener, &address.name, address.size), 0);
  EXPECT_EQ(call(sys_bind, listener, &address.name, address.size), -EINVAL);
  const auto other = static_cast<int>(call(sys_socket, AF_UNIX, SOCK_STREAM, 0));
  EXPECT_EQ(call(sys_bind, other, &address.name, address.size), -EADDRINUSE);
  EXPECT_EQ(call(sys_connect, other, &address.name, address.size), -ECONNREFUSED);
  EXPECT_EQ(call(sys_listen, listener, 0), 0);
  (*current().files->get(listener))->set_flags(O_RDWR | O_NONBLOCK);
  EXPECT_EQ(call(sys_accept, listener, 0, 0), -EAGAIN);
  EXPECT_EQ(call(sys_connect, other, &address.name, address.size), 0);
  EXPECT_EQ(call(sys_connect, other, &address.name, address.size), -EISCONN);
  EXPECT_NE(ready_of(listener) & POLLIN, 0);
  // The backlog of 0 is full with one.
  const auto third = static_cast<int>(call(sys_socket, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
  EXPECT_EQ(call(sys_connect, third, &address.name, address.size), -EAGAIN);
  EXPECT_EQ(send_text(other, "early"), 5);
  sockaddr_un name{};
  std::uint32_t size = sizeof name;
  const auto accepted = static_cast<int>(call(sys_accept4, listener, &name, &size, SOCK_NONBLOCK));
  ASSERT_GE(accepted, 0);
  EXPECT_EQ(size, sizeof(sa_family_t));
  EXPECT_EQ(receive_text(accepted, 10), "early");
  size = sizeof name;
  EXPECT_EQ(call(sys_getpeername, other, &name, &size), 0);
  EXPECT_EQ(size, address.size);
  EXPECT_EQ(std::memcmp(&name, &address.name, size), 0);
  EXPECT_EQ(call(sys_connect, third, &address.name, address.size), 0);
  EXPECT_EQ(close_fd(listener), 0);
  EXPECT_EQ(receive_text(third, 1), "errno " + std::to_string(ECONNRESET));
  EXPECT_EQ(call(sys_bind, third, &address.name, address.size), 0);
}

TEST(Sockets, DatagramsFindTheirWay) {
  HostedKernel kernel;
  const Address one = abstract_address("one");
  const Address two = abstract_address("two");
  const auto first = static_cast<int>(call(sys_socket, AF_UNIX, SOCK_DGRAM, 0));
  const auto second = static_cast<int>(call(sys_socket, AF_UNIX, SOCK_DGRAM, 0));
  EXPECT_EQ(send_text(first, "x"), -ENOTCONN);
  EXPECT_EQ(call(sys_sendto, first, "x", 1, 0, &two.name, two.size), -ECONNREFUSED);
  EXPECT_EQ(call(sys_bind, first, &one.name, one.size), 0);
  EXPECT_EQ(call(sys_bind, second, &two.name, two.size), 0);
  EXPECT_EQ(call(sys_sendto, first, "hello", 5, 0, &two.name, two.size), 5);
  sockaddr_un name{};
  std::uint32_t size = sizeof name;
  char bytes[10];
  EXPECT_EQ(call(sys_recvfrom, second, bytes, sizeof bytes, 0, &name, &size), 5);
  EXPECT_EQ(size, one.size);
  EXPECT_EQ(std::memcmp(&name, &one.name, size), 0);
  EXPECT_EQ(call(sys_connect, second, &name, size), 0);
  EXPECT_EQ(send_text(second, "back"), 4);
  EXPECT_EQ(receive_text(first, 10), "back");
  // Who is connected hears nobody else.
  const auto third = static_cast<int>(call(sys_socket, AF_UNIX, SOCK_DGRAM, 0));
  EXPECT_EQ(call(sys_sendto, third, "x", 1, 0, &two.name, two.size), -EPERM);
  EXPECT_EQ(close_fd(first), 0);
  EXPECT_EQ(send_text(second, "x"), -ECONNREFUSED);
  EXPECT_EQ(send_text(second, "x"), -ENOTCONN);
}

TEST(Sockets, TellWhoSent) {
  HostedKernel kernel;
  kernel.task().credentials.euid = 1000;
  const Pair pair(SOCK_STREAM);
  const int on = 1;
  EXPECT_EQ(call(sys_setsockopt, pair.fds[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
  EXPECT_EQ(send_text(pair.fds[0], "x"), 1);
  const Received received = receive_files(pair.fds[1], 100);
  EXPECT_TRUE(received.has_credentials);
  EXPECT_EQ(received.credentials.pid, 1);
  EXPECT_EQ(received.credentials.uid, 1000U);
  ucred peer{};
  std::uint32_t size = sizeof peer;
  EXPECT_EQ(call(sys_getsockopt, pair.fds[0], SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
  EXPECT_EQ(peer.uid, 1000U);
}

TEST(Sockets, PassFiles) {
  HostedKernel kernel;
  const Pair pair(SOCK_STREAM);
  int pipe[2];
  EXPECT_EQ(call(sys_pipe2, pipe, O_NONBLOCK), 0);
  EXPECT_EQ(send_files(pair.fds[0], {99}), -EBADF);
  EXPECT_EQ(send_files(pair.fds[0], {pipe[0], pipe[1]}), 1);
  EXPECT_EQ(close_fd(pipe[1]), 0);
  // A look gives copies, and leaves the message.
  Received received = receive_files(pair.fds[1], 100, MSG_PEEK);
  ASSERT_EQ(received.files.size(), 2U);
  for (const int fd : received.files) EXPECT_EQ(close_fd(fd), 0);
  received = receive_files(pair.fds[1], CMSG_LEN(sizeof(int)));
  EXPECT_EQ(received.files.size(), 1U);
  EXPECT_NE(received.flags & MSG_CTRUNC, 0);
  // The writing end had no room and is closed.
  EXPECT_NE(ready_of(pipe[0]) & POLLHUP, 0);
  EXPECT_EQ(send_files(pair.fds[0], {pipe[0]}), 1);
  received = receive_files(pair.fds[1], 0);
  EXPECT_EQ(received.files.size(), 0U);
  EXPECT_NE(received.flags & MSG_CTRUNC, 0);
}

TEST(Sockets, FilesUnderWayThatNobodyCanReceiveGo) {
  HostedKernel kernel;
  const Pair last(SOCK_STREAM);  // makes what all sockets share
  const std::uint64_t before = heap_bytes_used();
  for (int round = 0; round < 3; ++round) {
    const Pair pair(SOCK_STREAM);
    int pipe[2];
    EXPECT_EQ(call(sys_pipe, pipe), 0);
    // Each is held by a message in the other's queue only.
    EXPECT_EQ(send_files(pair.fds[0], {pair.fds[0], pipe[1]}), 1);
    EXPECT_EQ(send_files(pair.fds[1], {pair.fds[1]}), 1);
    EXPECT_EQ(close_fd(pair.fds[0]), 0);
    EXPECT_EQ(close_fd(pair.fds[1]), 0);
    EXPECT_EQ(close_fd(pipe[1]), 0);
    EXPECT_EQ(ready_of(pipe[0]) & POLLHUP, 0);
    const Pair another(SOCK_DGRAM);
    EXPECT_EQ(close_fd(another.fds[0]), 0);
    EXPECT_NE(ready_of(pipe[0]) & POLLHUP, 0);
    EXPECT_EQ(close_fd(another.fds[1]), 0);
    EXPECT_EQ(close_fd(pipe[0]), 0);
  }
  EXPECT_EQ(heap_bytes_used(), before);
}

TEST(Sockets, FilesUnderWayThatCanBeReceivedStay) {
  HostedKernel kernel;
  const Pair outer(SOCK_STREAM);
  const Pair inner(SOCK_STREAM);
  EXPECT_EQ(send_text(inner.fds[1], "kept"), 4);
  EXPECT_EQ(send_files(outer.fds[0], {inner.fds[0]}), 1);
  EXPECT_EQ(close_fd(inner.fds[0]), 0);
  const Pair another(SOCK_DGRAM);
  EXPECT_EQ(close_fd(another.fds[0]), 0);
  const Received received = receive_files(outer.fds[1], 100);
  ASSERT_EQ(received.files.size(), 1U);
  EXPECT_EQ(receive_text(received.files[0], 10), "kept");
}

TEST(Sockets, LongChainsOfFilesNeedNoDeepStack) {
  HostedKernel kernel;
  const Pair first(SOCK_STREAM);
  int fds[2] = {first.fds[0], first.fds[1]};
  for (int depth = 0; depth < 400; ++depth) {
    const Pair next(SOCK_STREAM);
    ASSERT_EQ(send_files(next.fds[0], {fds[0]}), 1);
    ASSERT_EQ(send_files(next.fds[0], {fds[1]}), 1);
    close_fd(fds[0]);
    close_fd(fds[1]);
    fds[0] = next.fds[0];
    fds[1] = next.fds[1];
  }
  EXPECT_EQ(close_fd(fds[0]), 0);
  EXPECT_EQ(close_fd(fds[1]), 0);
}

TEST(Sockets, ThreadsTalk) {
  HostedKernel kernel;
  const Pair pair(SOCK_STREAM);
  constexpr std::size_t kTotal = 5'000'000;
  std::thread sender([&] {
    HostedThread thread(kernel);
    const std::string text(kTotal, 'x');
    EXPECT_EQ(send_text(pair.fds[0], text, 0), static_cast<std::int64_t>(kTotal));
    EXPECT_EQ(call(sys_shutdown, pair.fds[0], SHUT_WR), 0);
  });
  std::size_t done = 0;
  while (true) {
    const std::string text = receive_text(pair.fds[1], 100'000, done % 2 == 0 ? 0 : MSG_WAITALL);
    if (text.empty()) break;
    done += text.size();
  }
  sender.join();
  EXPECT_EQ(done, kTotal);
}

TEST(Sockets, WaitsEnd) {
  HostedKernel kernel;
  const Pair pair(SOCK_STREAM);
  const timeval soon{0, 20'000};
  EXPECT_EQ(call(sys_setsockopt, pair.fds[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon), 0);
  EXPECT_EQ(receive_text(pair.fds[0], 1, 0), "errno " + std::to_string(EAGAIN));
  timeval told{};
  std::uint32_t size = sizeof told;
  EXPECT_EQ(call(sys_getsockopt, pair.fds[0], SOL_SOCKET, SO_RCVTIMEO, &told, &size), 0);
  EXPECT_EQ(told.tv_usec, 20'000);
}

}  // namespace
}  // namespace belljar::kernel
