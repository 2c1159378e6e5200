// Stream sockets of unix(7): connecting, names, backlog, shutdown, peers, options, errors.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static struct sockaddr_un name_of(const char* path) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  strcpy(name.sun_path, path);
  return name;
}

static int bound(const char* path) {
  const int fd = MUST(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const struct sockaddr_un name = name_of(path);
  MUST(bind(fd, (const struct sockaddr*)&name, sizeof name));
  return fd;
}

static int connect_to(int fd, const char* path) {
  const struct sockaddr_un name = name_of(path);
  return connect(fd, (const struct sockaddr*)&name, sizeof name);
}

static int client(void) {
  return MUST(socket(AF_UNIX, SOCK_STREAM, 0));
}

static void connecting(void) {
  const int server = bound("server");
  CALL("before listen", connect_to(client(), "server"));
  MUST(listen(server, 5));
  const int one = client();
  CALL("connect", connect_to(one, "server"));
  CALL("connect again", connect_to(one, "server"));
  const int accepted = MUST(accept4(server, NULL, NULL, SOCK_NONBLOCK));
  FACT("accepted flags", fcntl(accepted, F_GETFL) & O_NONBLOCK);
  MUST(write(one, "hello", 5));
  char text[16] = "";
  FACT("received", read(accepted, text, sizeof text));
  CALL("no more", read(accepted, text, sizeof text));
  struct sockaddr_un name;
  socklen_t size = sizeof name;
  MUST(getpeername(one, (struct sockaddr*)&name, &size));
  printf("peer: %d %s\n", (int)size, name.sun_path);
  size = sizeof name;
  MUST(getsockname(one, (struct sockaddr*)&name, &size));
  FACT("own name's size", size);
  CALL("missing", connect_to(client(), "none"));
  close(MUST(open("file", O_CREAT | O_WRONLY, 0644)));
  CALL("a file", connect_to(client(), "file"));
  const int second = client();
  const struct sockaddr_un taken = name_of("server");
  CALL("bind to a taken name", bind(second, (const struct sockaddr*)&taken, sizeof taken));
  struct stat status;
  MUST(stat("server", &status));
  FACT("is a socket", S_ISSOCK(status.st_mode));
  CALL("open it", open("server", O_RDWR));
  close(server);
  CALL("nobody listens", connect_to(client(), "server"));
  MUST(unlink("server"));
  CALL("no name", connect_to(client(), "server"));
}

static void ends(void) {
  signal(SIGPIPE, SIG_IGN);
  int pair[2];
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  char text[16] = "";
  MUST(write(pair[0], "last", 4));
  CALL("shut writing", shutdown(pair[0], SHUT_WR));
  CALL("write after it", write(pair[0], "x", 1));
  FACT("what was sent", read(pair[1], text, sizeof text));
  FACT("the end", read(pair[1], text, sizeof text));
  MUST(write(pair[1], "back", 4));
  FACT("the other way", read(pair[0], text, sizeof text));
  close(pair[0]);
  CALL("write to nobody", write(pair[1], "x", 1));
  CALL("send without a signal", send(pair[1], "x", 1, MSG_NOSIGNAL));
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  MUST(write(pair[0], "unread", 6));
  close(pair[1]);
  CALL("peer closed with bytes unread", read(pair[0], text, sizeof text));
  FACT("then the end", read(pair[0], text, sizeof text));
  CALL("not connected", send(client(), "x", 1, 0));
  CALL("shutdown of one not connected", shutdown(client(), SHUT_RDWR));
  CALL("odd shutdown", shutdown(pair[0], 9));
}

static void transfers(void) {
  int pair[2];
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  char text[16] = "";
  MUST(write(pair[0], "abc", 3));
  MUST(write(pair[0], "def", 3));
  FACT("peek", recv(pair[1], text, 2, MSG_PEEK));
  FACT("joined", recv(pair[1], text, sizeof text, 0));
  printf("text: %s\n", text);
  CALL("not waiting", recv(pair[1], text, 1, MSG_DONTWAIT));
  MUST(write(pair[0], "0123456789", 10));
  int waiting = 0;
  MUST(ioctl(pair[1], FIONREAD, &waiting));
  FACT("waiting", waiting);
  FACT("all of it", recv(pair[1], text, 10, MSG_WAITALL));
  if (MUST(fork()) == 0) {
    static char block[300000];
    memset(block, 'b', sizeof block);
    _exit(write(pair[0], block, sizeof block) == sizeof block ? 0 : 1);
  }
  static char block[300000];
  FACT("a large one, whole", recv(pair[1], block, sizeof block, MSG_WAITALL));
  int status;
  MUST(wait(&status));
  FACT("sent whole", WEXITSTATUS(status));
  CALL("out of band", send(pair[0], "x", 1, 1 << 30) < 0 ? -1 : 0);
}

static void options(void) {
  int pair[2], value = -1;
  socklen_t size = sizeof value;
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  MUST(getsockopt(pair[0], SOL_SOCKET, SO_TYPE, &value, &size));
  FACT("type", value);
  MUST(getsockopt(pair[0], SOL_SOCKET, SO_DOMAIN, &value, &size));
  FACT("domain", value);
  MUST(getsockopt(pair[0], SOL_SOCKET, SO_ACCEPTCONN, &value, &size));
  FACT("listening", value);
  MUST(getsockopt(pair[0], SOL_SOCKET, SO_ERROR, &value, &size));
  FACT("error", value);
  struct ucred who;
  size = sizeof who;
  MUST(getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &who, &size));
  FACT("peer", who.pid == getpid() && who.uid == getuid() && who.gid == getgid());
  const struct timeval soon = {0, 20000};
  MUST(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon));
  char byte;
  CALL("timeout", read(pair[0], &byte, 1));
  CALL("odd option", setsockopt(pair[0], SOL_SOCKET, 9999, &value, sizeof value));
  CALL("odd level", getsockopt(pair[0], 9999, 1, &value, &size));
  CALL("of a file", getsockopt(0, SOL_SOCKET, SO_TYPE, &value, &size));
  CALL("listen of a pair", listen(pair[0], 1));
  CALL("accept of a pair", accept(pair[0], NULL, NULL));
}

int main(void) {
  connecting();
  ends();
  transfers();
  options();
}
