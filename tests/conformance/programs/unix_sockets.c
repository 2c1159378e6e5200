// Sockets of unix(7): packets, descriptors that are passed, credentials, names, a peer that is gone.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"

static void packets(void) {
  int ends[2];
  MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends));
  const int file = MUST(open("passed", O_CREAT | O_RDWR, 0600));
  MUST(write(file, "through", 7));
  char data = 'd';
  struct iovec part = {&data, 1};
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
  } control;
  memset(&control, 0, sizeof control);
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  memcpy(CMSG_DATA(header), &file, sizeof file);
  FACT("sendmsg", sendmsg(ends[0], &message, 0));
  close(file);
  FACT("recvmsg", recvmsg(ends[1], &message, MSG_CMSG_CLOEXEC));
  int received;
  memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof received);
  char text[8] = {0};
  FACT("pread", pread(received, text, 7, 0));
  printf("text: %s\n", text);
  FACT("close on exec", fcntl(received, F_GETFD));
  FACT("packets stay apart", send(ends[0], "one", 3, 0) + send(ends[0], "three", 5, 0));
  FACT("first", recv(ends[1], text, sizeof text, 0));
  close(ends[0]);
  FACT("second", recv(ends[1], text, sizeof text, 0));
  FACT("end", recv(ends[1], text, sizeof text, 0));
}

static void named(void) {
  struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "socket"};
  const int server = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
  CALL("bind", bind(server, (struct sockaddr*)&name, sizeof name));
  CALL("bind again", bind(MUST(socket(AF_UNIX, SOCK_STREAM, 0)), (struct sockaddr*)&name, sizeof name));
  const int client = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
  CALL("nobody listens", connect(client, (struct sockaddr*)&name, sizeof name));
  MUST(listen(server, 1));
  CALL("connect", connect(client, (struct sockaddr*)&name, sizeof name));
  const int peer = MUST(accept(server, NULL, NULL));
  struct ucred who = {0};
  socklen_t size = sizeof who;
  CALL("SO_PEERCRED", getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &who, &size));
  FACT("it is me", who.pid == getpid() && who.uid == getuid());
  signal(SIGPIPE, SIG_IGN);
  close(peer);
  CALL("peer is gone", send(client, "x", 1, 0));
  memcpy(name.sun_path, "\0conformance", 12);
  CALL("abstract", bind(MUST(socket(AF_UNIX, SOCK_DGRAM, 0)), (struct sockaddr*)&name, sizeof name));
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  packets();
  named();
  return 0;
}
