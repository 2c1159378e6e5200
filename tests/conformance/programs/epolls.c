// epoll(7): level and edge, one shot, exclusive, nested, copies of descriptors, closing, many at once.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

static int set;

static int add(int fd, unsigned events, int name) {
  struct epoll_event event = {.events = events, .data.u32 = (unsigned)name};
  return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
}

static void show(const char* what) {
  struct epoll_event events[8];
  const int count = epoll_wait(set, events, 8, 50);
  printf("%s: %d", what, count);
  for (int i = 0; i < count; ++i) printf(" %u=%x", events[i].data.u32, events[i].events);
  printf("\n");
}

static void modes(void) {
  int level[2], edge[2], once[2];
  MUST(pipe(level));
  MUST(pipe(edge));
  MUST(pipe(once));
  CALL("level", add(level[0], EPOLLIN, 1));
  show("nothing");
  MUST(write(level[1], "ab", 2));
  show("level");
  show("level again");
  char byte;
  MUST(read(level[0], &byte, 1));
  show("level, a rest");
  MUST(read(level[0], &byte, 1));
  show("level, empty");
  MUST(add(edge[0], EPOLLIN | EPOLLET, 2));
  MUST(write(edge[1], "a", 1));
  show("edge");
  show("edge again");
  MUST(write(edge[1], "b", 1));
  show("edge, new");
  MUST(add(once[0], EPOLLIN | EPOLLONESHOT, 3));
  MUST(write(once[1], "a", 1));
  show("once");
  show("once again");
  struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u32 = 30};
  MUST(epoll_ctl(set, EPOLL_CTL_MOD, once[0], &event));
  show("armed again");
  close(level[1]);
  show("hang-up");
  close(level[0]);
  show("closed");
  MUST(epoll_ctl(set, EPOLL_CTL_DEL, edge[0], NULL));
  MUST(epoll_ctl(set, EPOLL_CTL_DEL, once[0], NULL));
}

static void errors(void) {
  int ends[2];
  MUST(pipe(ends));
  MUST(add(ends[0], EPOLLIN, 1));
  CALL("twice", add(ends[0], EPOLLIN, 1));
  CALL("closed", add(999, EPOLLIN, 1));
  CALL("itself", add(set, EPOLLIN, 1));
  CALL("a file", add(MUST(open("file", O_CREAT | O_RDWR, 0644)), EPOLLIN, 1));
  CALL("a folder", add(MUST(open(".", O_RDONLY)), EPOLLIN, 1));
  struct epoll_event event = {.events = EPOLLIN};
  CALL("change what is not there", epoll_ctl(set, EPOLL_CTL_MOD, ends[1], &event));
  CALL("remove what is not there", epoll_ctl(set, EPOLL_CTL_DEL, ends[1], NULL));
  CALL("odd operation", epoll_ctl(set, 9, ends[1], &event));
  CALL("not an epoll", epoll_ctl(ends[0], EPOLL_CTL_ADD, ends[1], &event));
  CALL("no room", epoll_wait(set, &event, 0, 0));
  CALL("size of nothing", epoll_create(0));
  CALL("odd flags", epoll_create1(1));
  MUST(epoll_ctl(set, EPOLL_CTL_DEL, ends[0], NULL));
}

static void writers(void) {
  int pair[2];
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  MUST(add(pair[0], EPOLLIN | EPOLLOUT | EPOLLRDHUP, 5));
  show("writable");
  MUST(write(pair[1], "x", 1));
  show("and readable");
  MUST(shutdown(pair[1], SHUT_WR));
  show("half closed");
  close(pair[1]);
  show("closed");
  const int copy = dup(pair[0]);
  close(pair[0]);
  show("a copy keeps it");
  close(copy);
  show("gone with the last");
}

static void nested(void) {
  const int inner = MUST(epoll_create1(0)), event = MUST(eventfd(0, 0));
  struct epoll_event wanted = {.events = EPOLLIN};
  MUST(epoll_ctl(inner, EPOLL_CTL_ADD, event, &wanted));
  MUST(add(inner, EPOLLIN, 7));
  show("inner not ready");
  MUST(write(event, &(long){1}, 8));
  show("inner ready");
  CALL("a loop", epoll_ctl(inner, EPOLL_CTL_ADD, set, &wanted));
  close(inner);
  const int many = 50;
  for (int i = 0; i < many; ++i) MUST(add(MUST(eventfd(1, 0)), EPOLLIN | EPOLLET, i));
  struct epoll_event events[64];
  int total = 0, rounds = 0;
  while (total < many) {
    const int count = epoll_wait(set, events, 20, 100);
    if (count <= 0) break;
    total += count;
    ++rounds;
  }
  FACT("all of many", total);
  FACT("in rounds", rounds);
}

int main(void) {
  set = MUST(epoll_create1(EPOLL_CLOEXEC));
  modes();
  errors();
  writers();
  nested();
}
