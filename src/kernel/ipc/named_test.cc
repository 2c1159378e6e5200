// Named pipes and sockets with a path.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <thread>

#include "kernel/fs/test_tree.h"

namespace belljar::kernel {
namespace {

class NamedTest : public FileSystemTest {
 protected:
  static sockaddr_un address(const char* path) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::strncpy(name.sun_path, path, sizeof name.sun_path - 1);
    return name;
  }
  static Events ready(long fd) { return (*current().files->get(static_cast<int>(fd)))->ready(); }
};

TEST_F(NamedTest, PipeWaitsForItsOtherEnd) {
  ASSERT_EQ(call(sys_mknod, "/tmp/pipe", S_IFIFO | 0600, 0), 0);
  EXPECT_EQ(open("/tmp/pipe", O_WRONLY | O_NONBLOCK), -ENXIO);
  const long early = open("/tmp/pipe", O_RDONLY | O_NONBLOCK);
  ASSERT_GE(early, 0);
  // Nobody has written yet: the end, but no hang-up.
  char byte = 0;
  EXPECT_EQ(call(sys_read, early, &byte, 1), 0);
  EXPECT_EQ(ready(early) & POLLHUP, 0U);
  EXPECT_EQ(call(sys_close, early), 0);
  std::thread writer([&] {
    HostedThread thread(kernel);
    current().credentials = kernel.task().credentials;
    const long fd = open("/tmp/pipe", O_WRONLY);
    EXPECT_EQ(call(sys_write, fd, "x", 1), 1);
    EXPECT_EQ(call(sys_close, fd), 0);
  });
  const long reader = open("/tmp/pipe", O_RDONLY);
  ASSERT_GE(reader, 0);
  EXPECT_EQ(call(sys_read, reader, &byte, 1), 1);
  writer.join();
  EXPECT_EQ(call(sys_read, reader, &byte, 1), 0);
  EXPECT_NE(ready(reader) & POLLHUP, 0U);
  struct stat status;
  EXPECT_EQ(call(sys_fstat, reader, &status), 0);
  EXPECT_EQ(status.st_mode, static_cast<mode_t>(S_IFIFO | 0600));
}

TEST_F(NamedTest, SocketsHavePaths) {
  const sockaddr_un name = address("/tmp/socket");
  const long listener = call(sys_socket, AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(call(sys_bind, listener, &name, sizeof name), 0);
  ASSERT_EQ(call(sys_listen, listener, 5), 0);
  struct stat status;
  EXPECT_EQ(call(sys_stat, "/tmp/socket", &status), 0);
  EXPECT_TRUE(S_ISSOCK(status.st_mode));
  EXPECT_EQ(open("/tmp/socket", O_RDWR), -ENXIO);
  const long client = call(sys_socket, AF_UNIX, SOCK_STREAM, 0);
  EXPECT_EQ(call(sys_bind, client, &name, sizeof name), -EADDRINUSE);
  EXPECT_EQ(call(sys_connect, client, &name, sizeof name), 0);
  sockaddr_un told{};
  std::uint32_t size = sizeof told;
  EXPECT_EQ(call(sys_getpeername, client, &told, &size), 0);
  EXPECT_STREQ(told.sun_path, "/tmp/socket");
  EXPECT_EQ(size, sizeof(sa_family_t) + std::strlen("/tmp/socket") + 1);
  const long datagram = call(sys_socket, AF_UNIX, SOCK_DGRAM, 0);
  EXPECT_EQ(call(sys_connect, datagram, &name, sizeof name), -EPROTOTYPE);
  const sockaddr_un missing = address("/tmp/missing");
  EXPECT_EQ(call(sys_connect, datagram, &missing, sizeof missing), -ENOENT);
  const sockaddr_un file = address("/etc/passwd");
  EXPECT_EQ(call(sys_connect, datagram, &file, sizeof file), -EROFS);
  EXPECT_EQ(call(sys_close, listener), 0);
  // The name stays, and nobody is behind it.
  const long late = call(sys_socket, AF_UNIX, SOCK_STREAM, 0);
  EXPECT_EQ(call(sys_connect, late, &name, sizeof name), -ECONNREFUSED);
  EXPECT_EQ(call(sys_unlink, "/tmp/socket"), 0);
  EXPECT_EQ(call(sys_bind, late, &name, sizeof name), 0);
}

}  // namespace
}  // namespace belljar::kernel
