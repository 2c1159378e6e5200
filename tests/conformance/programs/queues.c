// POSIX message queues: order by priority, limits, names.
#include <fcntl.h>
#include <mqueue.h>
#include <string.h>
#include <time.h>

#include "check.h"

static void order(void) {
  struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 16};
  const mqd_t queue = mq_open("/order", O_CREAT | O_EXCL | O_RDWR, 0600, &attributes);
  MUST(queue);
  MUST(mq_send(queue, "low", 3, 1));
  MUST(mq_send(queue, "high", 4, 9));
  CALL("too long", mq_send(queue, "12345678901234567", 17, 0));
  struct mq_attr now;
  MUST(mq_getattr(queue, &now));
  FACT("waiting", now.mq_curmsgs);
  char text[16];
  unsigned priority = 0;
  FACT("first", mq_receive(queue, text, sizeof text, &priority));
  FACT("priority", priority);
  FACT("text", strncmp(text, "high", 4) == 0);
  CALL("too small a buffer", mq_receive(queue, text, 4, &priority));
  FACT("second", mq_receive(queue, text, sizeof text, &priority));
  CALL("nothing left", mq_timedreceive(queue, text, sizeof text, NULL, &(struct timespec){0}));
  MUST(mq_close(queue));
}

static void names(void) {
  CALL("there already", mq_open("/order", O_CREAT | O_EXCL | O_RDWR, 0600, NULL));
  CALL("read only", mq_open("/order", O_RDONLY));
  CALL("no slash", mq_open("order", O_RDONLY));
  CALL("two slashes", mq_open("/a/b", O_CREAT | O_RDWR, 0600, NULL));
  CALL("none", mq_open("/none", O_RDWR));
  CALL("unlink", mq_unlink("/order"));
  CALL("unlink again", mq_unlink("/order"));
}

int main(void) {
  order();
  names();
  return 0;
}
