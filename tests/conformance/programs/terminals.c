// Pseudo terminals: lines and raw input, echo, signals to the foreground, job control, hang-ups.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "check.h"

// What passes a terminal may take its time.
enum { kPassing = 30000 };

static int master, slave;

static void show(const char* what, int fd) {
  char bytes[512];
  usleep(kPassing);
  const long count = read(fd, bytes, sizeof bytes);
  printf("%s: ", what);
  if (count < 0) printf("%s", strerrorname_np(errno));
  for (long i = 0; i < count; ++i) {
    if (bytes[i] >= 32 && bytes[i] < 127) {
      putchar(bytes[i]);
    } else {
      printf("\\%03o", (unsigned char)bytes[i]);
    }
  }
  printf(" (%ld)\n", count);
}

static void put(int fd, const char* text) {
  MUST(write(fd, text, strlen(text)));
}

static int events(int fd) {
  usleep(kPassing);
  struct pollfd p = {fd, POLLIN | POLLOUT, 0};
  poll(&p, 1, 0);
  return p.revents;
}

static void open_pair(void) {
  master = MUST(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK));
  char name[64];
  CALL("locked", open(ptsname_r(master, name, sizeof name) == 0 ? name : "", O_RDWR | O_NOCTTY));
  MUST(grantpt(master));
  MUST(unlockpt(master));
  slave = MUST(open(name, O_RDWR | O_NOCTTY | O_NONBLOCK));
}

static void places(void) {
  open_pair();
  FACT("terminal", isatty(slave));
  FACT("the master too", isatty(master));
  char name[64], link[64];
  MUST(ttyname_r(slave, link, sizeof link));
  ptsname_r(master, name, sizeof name);
  FACT("name", strcmp(name, link));
  struct stat by_name, by_fd;
  MUST(stat(name, &by_name));
  MUST(fstat(slave, &by_fd));
  FACT("same inode", by_name.st_ino == by_fd.st_ino && by_name.st_dev == by_fd.st_dev);
  FACT("character device", S_ISCHR(by_fd.st_mode));
  FACT("major", by_fd.st_rdev >> 8);
  CALL("seek", lseek(slave, 0, SEEK_CUR));
  CALL("no controlling terminal", ioctl(slave, TIOCGPGRP, &(int){0}));
}

static void lines(void) {
  put(master, "hel");
  FACT("half a line", events(slave));
  show("half a line", slave);
  put(master, "lo\r");
  show("echo", master);
  FACT("a line", events(slave));
  show("a line", slave);
  put(master, "abx\177c\n");
  show("erase", master);
  show("erased", slave);
  put(master, "one two\027three\n");
  show("erase a word", master);
  show("without it", slave);
  put(master, "gone\025kept\026\003\001\n");
  show("erase a line", master);
  show("kept", slave);
  put(master, "end\004");
  show("end of file after a part", slave);
  put(master, "\004");
  show("end of file", slave);
  put(master, "tab\tx\177\177\n");
  show("a tab", master);
  put(master, "two\nlines\n");
  int size = 0;
  usleep(kPassing);
  ioctl(slave, FIONREAD, &size);
  FACT("bytes", size);
  show("one", slave);
  show("two", slave);
  show("three", slave);
  ioctl(master, TCFLSH, TCIOFLUSH);
  show("flushed", master);
  put(slave, "out\n\ttab\n");
  show("output", master);
}

static void settings(void) {
  struct termios value;
  MUST(tcgetattr(slave, &value));
  FACT("input", value.c_iflag);
  FACT("output", value.c_oflag);
  FACT("control", value.c_cflag);
  FACT("local", value.c_lflag);
  for (int i = 0; i < 17; ++i) FACT("key", value.c_cc[i]);
  const struct termios cooked = value;
  cfmakeraw(&value);
  MUST(tcsetattr(slave, TCSANOW, &value));
  put(master, "\003\004\r\177x");
  show("raw", slave);
  show("no echo", master);
  put(slave, "a\nb");
  show("raw output", master);
  value.c_cc[VMIN] = 0;
  value.c_cc[VTIME] = 1;
  MUST(tcsetattr(slave, TCSANOW, &value));
  fcntl(slave, F_SETFL, O_RDWR);
  show("after a tenth", slave);
  value.c_cc[VTIME] = 0;
  MUST(tcsetattr(slave, TCSANOW, &value));
  show("at once", slave);
  put(master, "left");
  events(slave);
  MUST(tcsetattr(slave, TCSANOW, &cooked));
  fcntl(slave, F_SETFL, O_RDWR | O_NONBLOCK);
  show("made a line", slave);
  MUST(tcsetattr(slave, TCSAFLUSH, &cooked));
  struct winsize window = {24, 80, 0, 0}, told;
  MUST(ioctl(master, TIOCSWINSZ, &window));
  MUST(ioctl(slave, TIOCGWINSZ, &told));
  FACT("rows", told.ws_row);
  FACT("columns", told.ws_col);
  put(master, "\023");
  FACT("stopped", events(slave));
  CALL("write while stopped", write(slave, "held", 4));
  put(master, "\021");
  FACT("started", events(slave));
  CALL("write after it", write(slave, "free", 4));
  show("written", master);
}

static volatile sig_atomic_t got[65];
static void note(int number) {
  got[number]++;
}

static void foreground(void) {
  int ready[2];
  MUST(pipe(ready));
  ioctl(master, TCFLSH, TCIOFLUSH);
  const int leader = MUST(fork());
  if (leader == 0) {
    setsid();
    close(master);
    signal(SIGINT, note);
    signal(SIGWINCH, note);
    signal(SIGHUP, note);
    CALL("take it", ioctl(slave, TIOCSCTTY, 0));
    int group = 0;
    ioctl(slave, TIOCGPGRP, &group);
    FACT("in the foreground", group == getpid());
    FACT("session", tcgetsid(slave) == getpid());
    CALL("tty", open("/dev/tty", O_RDWR));
    // A child in the background may not read.
    const int child = fork();
    if (child == 0) {
      setpgid(0, 0);
      char byte;
      fcntl(slave, F_SETFL, O_RDWR);
      (void)!read(slave, &byte, 1);
      _exit(1);
    }
    setpgid(child, child);
    int status = 0;
    waitpid(child, &status, WUNTRACED);
    FACT("background reader stopped by", WIFSTOPPED(status) ? WSTOPSIG(status) : -1);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    fflush(stdout);
    (void)!write(ready[1], "r", 1);
    while (got[SIGINT] == 0 || got[SIGWINCH] == 0) usleep(1000);
    FACT("SIGINT", got[SIGINT]);
    FACT("SIGWINCH", got[SIGWINCH]);
    fflush(stdout);
    (void)!write(ready[1], "r", 1);
    while (got[SIGHUP] == 0) usleep(1000);
    FACT("SIGHUP", got[SIGHUP]);
    fcntl(slave, F_SETFL, O_RDWR);
    show("after the hang-up", slave);
    CALL("write after it", write(slave, "x", 1));
    FACT("events after it", events(slave));
    CALL("tty after it", open("/dev/tty", O_RDWR));
    fflush(stdout);
    _exit(0);
  }
  char byte;
  MUST(read(ready[0], &byte, 1));
  put(master, "\003");
  const struct winsize window = {50, 100, 0, 0};
  MUST(ioctl(master, TIOCSWINSZ, &window));
  MUST(read(ready[0], &byte, 1));
  show("echo of the key", master);
  close(slave);
  close(master);
  int status;
  waitpid(leader, &status, 0);
  FACT("leader", status);
}

static void ends(void) {
  open_pair();
  put(slave, "last");
  close(slave);
  FACT("slave closed", events(master));
  show("still there", master);
  show("gone", master);
  slave = MUST(ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_NONBLOCK));
  show("opened again", master);
  // The leader's end hangs its terminal up.
  const int leader = MUST(fork());
  if (leader == 0) {
    setsid();
    ioctl(slave, TIOCSCTTY, 0);
    _exit(0);
  }
  waitpid(leader, NULL, 0);
  show("leader gone", slave);
  close(slave);
  show("master", master);
  close(master);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  places();
  lines();
  settings();
  foreground();
  ends();
  return 0;
}
