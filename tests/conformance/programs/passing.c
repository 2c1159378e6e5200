// Descriptors and credentials under way: SCM_RIGHTS, SCM_CREDENTIALS, what is cut, what is closed when nobody takes it.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define ROOM 256

static ssize_t send_files(int to, const int* files, int count) {
  char byte = 'f', control[ROOM] = "";
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count)};
  struct cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
  memcpy(CMSG_DATA(head), files, sizeof(int) * (size_t)count);
  return sendmsg(to, &message, 0);
}

// How many came; `flags` and what the message says go to the other two.
static int take_files(int from, int* files, size_t room, int flags, int* told) {
  char byte, control[ROOM];
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room};
  MUST(recvmsg(from, &message, flags));
  *told = message.msg_flags;
  const struct cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (head == NULL || head->cmsg_type != SCM_RIGHTS) return 0;
  const int count = (int)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
  memcpy(files, CMSG_DATA(head), sizeof(int) * (size_t)count);
  return count;
}

static void files(void) {
  int pair[2], ends[2], got[8], told;
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  MUST(pipe(ends));
  FACT("send", send_files(pair[0], ends, 2));
  FACT("take", take_files(pair[1], got, ROOM, 0, &told));
  FACT("flags", told);
  FACT("are new ones", got[0] != ends[0] && got[1] != ends[1]);
  FACT("close-on-exec", fcntl(got[0], F_GETFD));
  MUST(write(got[1], "p", 1));
  char byte = 0;
  MUST(read(ends[0], &byte, 1));
  FACT("are the same files", byte);
  MUST(send_files(pair[0], ends, 1));
  MUST(take_files(pair[1], got, ROOM, MSG_CMSG_CLOEXEC, &told));
  FACT("MSG_CMSG_CLOEXEC", fcntl(got[0], F_GETFD));
  MUST(send_files(pair[0], ends, 2));
  FACT("room for one only", take_files(pair[1], got, CMSG_SPACE(sizeof(int)) - 4, 0, &told));
  FACT("is told", (told & MSG_CTRUNC) != 0);
  MUST(send_files(pair[0], ends, 2));
  FACT("no room", take_files(pair[1], got, 0, 0, &told));
  FACT("is told", (told & MSG_CTRUNC) != 0);
  MUST(send_files(pair[0], ends, 1));
  FACT("plain read passes them over", read(pair[1], &byte, 1));
  const int bad = 999;
  CALL("a closed one", send_files(pair[0], &bad, 1));
  const int folder = MUST(open(".", O_RDONLY));
  MUST(send_files(pair[0], &folder, 1));
  MUST(take_files(pair[1], got, ROOM, 0, &told));
  CALL("a folder", openat(got[0], "made", O_CREAT | O_WRONLY, 0644));
  FACT("is here", access("made", F_OK));
}

static void boundaries(void) {
  int pair[2], got[8], told;
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  MUST(write(pair[0], "ab", 2));
  MUST(send_files(pair[0], &pair[0], 1));
  MUST(write(pair[0], "cd", 2));
  char text[16], control[ROOM];
  struct iovec part = {text, sizeof text};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  const ssize_t first = recvmsg(pair[1], &message, 0);
  printf("first: %zd bytes, %s\n", first, CMSG_FIRSTHDR(&message) != NULL ? "with files" : "without");
  message.msg_controllen = sizeof control;
  const ssize_t second = recvmsg(pair[1], &message, 0);
  printf("second: %zd bytes, %s\n", second, message.msg_controllen != 0 ? "with files" : "without");
  MUST(send_files(pair[0], &pair[1], 1));
  (void)take_files(pair[1], got, ROOM, MSG_PEEK, &told);
  FACT("peeked and taken", take_files(pair[1], got, ROOM, 0, &told));
}

static void lives(void) {
  int pair[2], ends[2];
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  MUST(pipe(ends));
  MUST(send_files(pair[0], &ends[1], 1));
  close(ends[1]);
  struct pollfd p = {ends[0], POLLIN, 0};
  FACT("lives under way", poll(&p, 1, 0));
  close(pair[1]);
  close(pair[0]);
  FACT("and ends with the socket", poll(&p, 1, 1000));
  FACT("hang-up", p.revents);
  MUST(pipe(ends));
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  if (MUST(fork()) == 0) {
    int got[2], told;
    take_files(pair[1], got, ROOM, 0, &told);
    MUST(write(got[0], "child", 5));
    _exit(0);
  }
  MUST(send_files(pair[0], &ends[1], 1));
  close(ends[1]);
  char text[16] = "";
  FACT("written by another process", read(ends[0], text, sizeof text));
  wait(NULL);
  FACT("and closed with it", read(ends[0], text, sizeof text));
}

static void credentials(void) {
  int pair[2], on = 1;
  MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
  MUST(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
  const int child = MUST(fork());
  if (child == 0) _exit(write(pair[0], "x", 1) == 1 ? 0 : 1);
  char byte, control[ROOM];
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  MUST(recvmsg(pair[1], &message, 0));
  const struct cmsghdr* head = CMSG_FIRSTHDR(&message);
  struct ucred who = {0};
  if (head != NULL) memcpy(&who, CMSG_DATA(head), sizeof who);
  FACT("kind", head != NULL ? head->cmsg_type : -1);
  FACT("of the child", who.pid == child && who.uid == getuid() && who.gid == getgid());
  wait(NULL);
  struct ucred* wrong;
  memset(control, 0, sizeof control);
  message.msg_controllen = CMSG_SPACE(sizeof *wrong);
  struct cmsghdr* out = CMSG_FIRSTHDR(&message);
  out->cmsg_level = SOL_SOCKET;
  out->cmsg_type = SCM_CREDENTIALS;
  out->cmsg_len = CMSG_LEN(sizeof *wrong);
  wrong = (struct ucred*)(void*)CMSG_DATA(out);
  *wrong = (struct ucred){getpid(), getuid(), getgid()};
  CALL("one's own", sendmsg(pair[0], &message, 0));
  wrong->uid = getuid() + 1;
  CALL("another's", sendmsg(pair[0], &message, 0));
}

// Bytes before a descriptor come with it where there is room; bytes after it do not.
static void in_a_stream(void) {
  int pair[2], got[8];
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  MUST(write(pair[0], "ab", 2));
  MUST(send_files(pair[0], pair, 1));
  MUST(write(pair[0], "cd", 2));
  char bytes[8] = "", control[ROOM];
  struct iovec part = {bytes, sizeof bytes};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = ROOM};
  FACT("peeked", recvmsg(pair[1], &message, MSG_PEEK) > 0);
  for (int i = 0; i < 2; ++i) {
    memset(bytes, 0, sizeof bytes);
    message.msg_controllen = ROOM;
    FACT("bytes", recvmsg(pair[1], &message, 0));
    const struct cmsghdr* head = CMSG_FIRSTHDR(&message);
    printf("%s with %d\n", bytes, head == NULL ? 0 : (int)((head->cmsg_len - CMSG_LEN(0)) / sizeof *got));
  }
}

int main(void) {
  files();
  in_a_stream();
  boundaries();
  lives();
  credentials();
}
