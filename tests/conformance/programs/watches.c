// inotify: which events, in which order, with which names; fanotify is not for ordinary users.
#include <fcntl.h>
#include <poll.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static int queue;

static void show(const char* what) {
  char buffer[8192] __attribute__((aligned(8)));
  struct pollfd p = {queue, POLLIN, 0};
  if (poll(&p, 1, 200) == 0) {
    printf("%s: nothing\n", what);
    return;
  }
  const ssize_t size = read(queue, buffer, sizeof buffer);
  for (ssize_t at = 0; at < size;) {
    struct inotify_event* event = (struct inotify_event*)(buffer + at);
    printf("%s: %x %s%s\n", what, event->mask, event->len > 0 ? event->name : "", event->cookie != 0 ? " moved" : "");
    at += (ssize_t)sizeof *event + event->len;
  }
}

int main(void) {
  queue = MUST(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  MUST(mkdir("watched", 0700));
  const int watch = MUST(inotify_add_watch(queue, "watched", IN_ALL_EVENTS));
  CALL("of missing", inotify_add_watch(queue, "missing", IN_ALL_EVENTS));
  CALL("of a file only", inotify_add_watch(queue, "watched", IN_ONLYDIR | IN_MASK_ADD | IN_CREATE));
  const int fd = MUST(open("watched/a", O_CREAT | O_WRONLY, 0600));
  show("create");
  MUST(write(fd, "x", 1));
  show("write");
  close(fd);
  show("close");
  MUST(rename("watched/a", "watched/b"));
  show("rename");
  MUST(chmod("watched/b", 0400));
  show("chmod");
  MUST(mkdir("watched/sub", 0700));
  show("mkdir");
  close(MUST(open("watched/sub/x", O_CREAT | O_WRONLY, 0600)));
  show("below");
  MUST(unlink("watched/b"));
  show("unlink");
  CALL("remove the watch", inotify_rm_watch(queue, watch));
  show("ignored");
  CALL("again", inotify_rm_watch(queue, watch));
  CALL("empty", read(queue, (char[64]){0}, 64));
  CALL("fanotify of everything", fanotify_init(FAN_CLASS_CONTENT, O_RDONLY));
  return 0;
}
