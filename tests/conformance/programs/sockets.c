// Sockets on the loopback: TCP, UDP, IPv6, options, non-blocking connects, names. Those of unix(7) have programs of
// their own.
#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

static int listener(int family, struct sockaddr_storage* address, socklen_t* length) {
  const int fd = MUST(socket(family, SOCK_STREAM, 0));
  memset(address, 0, sizeof *address);
  address->ss_family = (sa_family_t)family;
  if (family == AF_INET) {
    ((struct sockaddr_in*)address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *length = sizeof(struct sockaddr_in);
  } else {
    ((struct sockaddr_in6*)address)->sin6_addr = in6addr_loopback;
    *length = sizeof(struct sockaddr_in6);
  }
  MUST(bind(fd, (struct sockaddr*)address, *length));
  MUST(listen(fd, 5));
  MUST(getsockname(fd, (struct sockaddr*)address, length));
  return fd;
}

static void streams(int family) {
  struct sockaddr_storage address;
  socklen_t length;
  const int server = listener(family, &address, &length);
  const int client = MUST(socket(family, SOCK_STREAM, 0));
  CALL("connect", connect(client, (struct sockaddr*)&address, length));
  const int peer = MUST(accept(server, NULL, NULL));
  FACT("send", send(client, "hello", 5, 0));
  char text[16] = {0};
  FACT("peek", recv(peer, text, sizeof text, MSG_PEEK));
  FACT("recv", recv(peer, text, sizeof text, 0));
  CALL("nothing more", recv(peer, text, sizeof text, MSG_DONTWAIT));
  CALL("connected already", connect(client, (struct sockaddr*)&address, length));
  CALL("shutdown", shutdown(client, SHUT_WR));
  FACT("end", recv(peer, text, sizeof text, 0));
  CALL("after shutdown", send(client, "x", 1, MSG_NOSIGNAL));
  FACT("other way", send(peer, "back", 4, 0));
  FACT("arrives", recv(client, text, sizeof text, 0));
  int one = 1;
  CALL("TCP_NODELAY", setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
  CALL("SO_KEEPALIVE", setsockopt(client, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one));
  socklen_t size = sizeof one;
  CALL("SO_ERROR", getsockopt(client, SOL_SOCKET, SO_ERROR, &one, &size));
  FACT("error", one);
  CALL("same place twice", bind(MUST(socket(family, SOCK_STREAM, 0)), (struct sockaddr*)&address, length));
  close(server);
  const int refused = MUST(socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0));
  connect(refused, (struct sockaddr*)&address, length);
  struct pollfd p = {refused, POLLOUT, 0};
  FACT("poll", poll(&p, 1, 5000));
  getsockopt(refused, SOL_SOCKET, SO_ERROR, &one, &size);
  printf("refused: %s\n", strerrorname_np(one));
  close(peer);
  close(client);
}

static void datagrams(void) {
  const int a = MUST(socket(AF_INET, SOCK_DGRAM, 0));
  const int b = MUST(socket(AF_INET, SOCK_DGRAM, 0));
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  MUST(bind(a, (struct sockaddr*)&address, length));
  MUST(getsockname(a, (struct sockaddr*)&address, &length));
  FACT("sendto", sendto(b, "datagram", 8, 0, (struct sockaddr*)&address, length));
  char text[4];
  FACT("cut", recv(a, text, sizeof text, MSG_TRUNC));
  CALL("too large", sendto(b, malloc(70000), 70000, 0, (struct sockaddr*)&address, length));
  close(a);
  CALL("connect", connect(b, (struct sockaddr*)&address, length));
  CALL("to nobody", send(b, "x", 1, 0));
  usleep(20000);
  CALL("told by the answer", send(b, "x", 1, 0));
}

static void names(void) {
  struct addrinfo* found = NULL;
  FACT("localhost",
       getaddrinfo("localhost", "80", &(struct addrinfo){.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, &found));
  printf("address: %s\n", inet_ntoa(((struct sockaddr_in*)found->ai_addr)->sin_addr));
  FACT("loopback's index", if_nametoindex("lo"));
  FACT("service", ntohs((unsigned short)getservbyname("https", "tcp")->s_port));
  printf("protocol: %s\n", getprotobynumber(17)->p_name);
  CALL("unknown family", socket(99, SOCK_STREAM, 0));
  CALL("unknown type", socket(AF_INET, 77, 0));
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  streams(AF_INET);
  streams(AF_INET6);
  datagrams();
  names();
  return 0;
}
