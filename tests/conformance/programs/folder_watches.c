// inotify(7) over folders: which events names, moves and removals make, masks, one-shot watches, removal of watches.
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static int queue;

static void show(const char* what) {
  char events[4096] __attribute__((aligned(8)));
  struct pollfd p = {queue, POLLIN, 0};
  printf("%s:", what);
  if (poll(&p, 1, 100) > 0) {
    const ssize_t size = read(queue, events, sizeof events);
    for (ssize_t at = 0; at < size;) {
      const struct inotify_event* event = (const void*)(events + at);
      printf(" %x%s%s%s", event->mask, event->len > 0 ? "=" : "", event->len > 0 ? event->name : "",
             event->cookie != 0 ? "*" : "");
      at += (ssize_t)(sizeof *event + event->len);
    }
  }
  printf("\n");
}

int main(void) {
  queue = MUST(inotify_init1(IN_NONBLOCK));
  MUST(mkdir("one", 0755));
  MUST(mkdir("two", 0755));
  const unsigned names = IN_CREATE | IN_DELETE | IN_MOVE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ATTRIB;
  const int one = MUST(inotify_add_watch(queue, "one", names));
  const int two = MUST(inotify_add_watch(queue, "two", names));
  FACT("different", one != two);
  FACT("the same again", inotify_add_watch(queue, "one", names) == one);
  MUST(mkdir("one/sub", 0755));
  show("a folder");
  close(MUST(open("one/file", O_CREAT | O_WRONLY, 0644)));
  show("a file");
  MUST(rename("one/file", "two/moved"));
  show("moved between");
  MUST(rename("two/moved", "two/again"));
  show("moved within");
  MUST(link("two/again", "one/hard"));
  show("a link");
  MUST(symlink("x", "one/soft"));
  show("a symbolic link");
  MUST(chmod("two/again", 0600));
  show("mode of a child");
  MUST(unlink("one/hard"));
  show("a link less");
  close(MUST(open("outside", O_CREAT | O_WRONLY, 0644)));
  MUST(rename("outside", "one/inside"));
  show("from outside");
  MUST(rename("one/inside", "outside"));
  show("to outside");
  MUST(rename("one/sub", "two/sub"));
  show("a folder moved");
  MUST(rename("two", "renamed"));
  show("the watched one moved");
  MUST(rmdir("renamed/sub"));
  show("still watched");
  CALL("remove a watch", inotify_rm_watch(queue, two));
  show("and it is told");
  CALL("twice", inotify_rm_watch(queue, two));
  MUST(unlink("one/soft"));
  MUST(rmdir("one"));
  show("the watched one removed");
  const int once = MUST(inotify_add_watch(queue, "renamed", IN_CREATE | IN_ONESHOT));
  FACT("a new number", once > two);
  close(MUST(open("renamed/a", O_CREAT | O_WRONLY, 0644)));
  close(MUST(open("renamed/b", O_CREAT | O_WRONLY, 0644)));
  show("once");
  CALL("a file as a folder", inotify_add_watch(queue, "outside", IN_ONLYDIR | IN_MODIFY));
  CALL("nothing wanted", inotify_add_watch(queue, "outside", 0));
  MUST(inotify_add_watch(queue, "outside", IN_MODIFY | IN_CLOSE | IN_OPEN | IN_ACCESS));
  const int fd = MUST(open("outside", O_RDWR));
  MUST(write(fd, "ab", 2));
  MUST(write(fd, "cd", 2));
  char byte;
  MUST(pread(fd, &byte, 1, 0));
  MUST(ftruncate(fd, 1));
  close(fd);
  int waiting = 0;
  MUST(ioctl(queue, FIONREAD, &waiting));
  FACT("waiting", waiting > 0 && waiting % 16 == 0);
  show("contents");
  CALL("create only, taken", inotify_add_watch(queue, "outside", IN_MODIFY | IN_MASK_CREATE));
  CALL("no room to read", read(queue, &byte, 1));
  CALL("odd flags", inotify_init1(77));
}
