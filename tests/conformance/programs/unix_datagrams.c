// Datagram and packet sockets of unix(7), abstract names, automatic ones.
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"

static socklen_t name_of(struct sockaddr_un* name, const char* text, int is_abstract) {
  memset(name, 0, sizeof *name);
  name->sun_family = AF_UNIX;
  strcpy(name->sun_path + is_abstract, text);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(text) + 1);
}

static void datagrams(void) {
  struct sockaddr_un name, from;
  const int receiver = MUST(socket(AF_UNIX, SOCK_DGRAM, 0)), sender = MUST(socket(AF_UNIX, SOCK_DGRAM, 0));
  socklen_t size = name_of(&name, "receiver", 0);
  MUST(bind(receiver, (struct sockaddr*)&name, size));
  FACT("sendto", sendto(sender, "first", 5, 0, (struct sockaddr*)&name, size));
  FACT("and more", sendto(sender, "second message", 14, 0, (struct sockaddr*)&name, size));
  char text[64] = "";
  socklen_t from_size = sizeof from;
  FACT("one at a time", recvfrom(receiver, text, sizeof text, 0, (struct sockaddr*)&from, &from_size));
  FACT("from nobody named", from_size);
  FACT("cut", recv(receiver, text, 6, 0));
  CALL("the rest is gone", recv(receiver, text, 1, MSG_DONTWAIT));
  FACT("an empty one", sendto(sender, "", 0, 0, (struct sockaddr*)&name, size));
  FACT("is received", recv(receiver, text, sizeof text, 0));
  MUST(connect(sender, (struct sockaddr*)&name, size));
  FACT("connected", send(sender, "third", 5, 0));
  FACT("true length", recv(receiver, text, 2, MSG_TRUNC));
  CALL("to a missing one",
       sendto(MUST(socket(AF_UNIX, SOCK_DGRAM, 0)), "x", 1, 0, (struct sockaddr*)&from, name_of(&from, "none", 0)));
  CALL("without a name", send(MUST(socket(AF_UNIX, SOCK_DGRAM, 0)), "x", 1, 0));
  socklen_t own_size = name_of(&from, "sender", 0);
  MUST(bind(sender, (struct sockaddr*)&from, own_size));
  MUST(send(sender, "named", 5, 0));
  memset(&from, 0, sizeof from);
  from_size = sizeof from;
  MUST(recvfrom(receiver, text, sizeof text, 0, (struct sockaddr*)&from, &from_size));
  printf("from %s, %d\n", from.sun_path, (int)from_size);
  CALL("bind twice", bind(sender, (struct sockaddr*)&from, from_size));
  close(receiver);
  CALL("the receiver is gone", send(sender, "x", 1, 0));
}

static void packets(void) {
  int pair[2];
  MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
  MUST(send(pair[0], "one", 3, 0));
  MUST(send(pair[0], "two words", 9, 0));
  char text[16] = "";
  FACT("first", recv(pair[1], text, sizeof text, 0));
  struct iovec part = {text, 3};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  FACT("second", recvmsg(pair[1], &message, 0));
  FACT("was cut", (message.msg_flags & MSG_TRUNC) != 0);
  close(pair[0]);
  FACT("the end", recv(pair[1], text, sizeof text, 0));
  MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
  struct mmsghdr several[3];
  char texts[3][8] = {"a", "bb", "ccc"};
  struct iovec parts[3];
  memset(several, 0, sizeof several);
  for (int i = 0; i < 3; ++i) {
    parts[i] = (struct iovec){texts[i], (size_t)i + 1};
    several[i].msg_hdr.msg_iov = &parts[i];
    several[i].msg_hdr.msg_iovlen = 1;
  }
  FACT("several at once", sendmmsg(pair[0], several, 3, 0));
  for (int i = 0; i < 3; ++i) parts[i].iov_len = 8;
  FACT("received", recvmmsg(pair[1], several, 3, MSG_DONTWAIT, NULL));
  printf("lengths: %u %u %u\n", several[0].msg_len, several[1].msg_len, several[2].msg_len);
}

static void names(void) {
  struct sockaddr_un name, told;
  const int server = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
  socklen_t size = name_of(&name, "conformance-abstract", 1);
  CALL("abstract", bind(server, (struct sockaddr*)&name, size));
  MUST(listen(server, 1));
  const int client = MUST(socket(AF_UNIX, SOCK_STREAM, 0));
  CALL("connect", connect(client, (struct sockaddr*)&name, size));
  CALL("another length is another name",
       connect(MUST(socket(AF_UNIX, SOCK_STREAM, 0)), (struct sockaddr*)&name, size - 1));
  CALL("taken", bind(MUST(socket(AF_UNIX, SOCK_STREAM, 0)), (struct sockaddr*)&name, size));
  FACT("not a file", access("conformance-abstract", F_OK));
  const int automatic = MUST(socket(AF_UNIX, SOCK_DGRAM, 0));
  const sa_family_t family = AF_UNIX;
  CALL("automatic", bind(automatic, (const struct sockaddr*)&family, sizeof family));
  socklen_t told_size = sizeof told;
  MUST(getsockname(automatic, (struct sockaddr*)&told, &told_size));
  FACT("its size", told_size);
  FACT("is abstract", told.sun_path[0]);
  CALL("too long", bind(client, (struct sockaddr*)&name, sizeof name + 10));
  name.sun_family = AF_INET;
  CALL("another family", connect(MUST(socket(AF_UNIX, SOCK_STREAM, 0)), (struct sockaddr*)&name, size));
  CALL("in a missing folder",
       bind(MUST(socket(AF_UNIX, SOCK_STREAM, 0)), (struct sockaddr*)&name, name_of(&name, "none/x", 0)));
  CALL("odd type", socket(AF_UNIX, 77, 0));
  CALL("odd protocol", socket(AF_UNIX, SOCK_STREAM, 77));
  int pair[2];
  CALL("a pair of streams only", socketpair(AF_UNIX, SOCK_RAW, 0, pair) < 0 && errno != ESOCKTNOSUPPORT ? -1 : 0);
}

int main(void) {
  datagrams();
  packets();
  names();
}
