// Pseudoterminals: modes, lines and raw bytes, echo, special characters, sizes, hang-ups, control of jobs.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "check.h"

static void print_bytes(const char* text, ssize_t size) {
  for (ssize_t i = 0; i < size; ++i) printf(text[i] >= ' ' && text[i] <= '~' ? "%c" : "\\%02x", (unsigned char)text[i]);
}

// One read.
static void show(const char* what, int fd) {
  char text[256];
  struct pollfd p = {fd, POLLIN, 0};
  if (poll(&p, 1, 200) <= 0) {
    printf("%s: nothing\n", what);
    return;
  }
  const ssize_t size = read(fd, text, sizeof text);
  printf("%s: ", what);
  if (size < 0) printf("%s", strerrorname_np(errno));
  print_bytes(text, size);
  printf("\n");
}

// All that comes: how many pieces a terminal makes of it depends on who runs when.
static void show_all(const char* what, int fd) {
  struct pollfd p = {fd, POLLIN, 0};
  printf("%s: ", what);
  while (poll(&p, 1, 200) > 0) {
    char text[256];
    const ssize_t size = read(fd, text, sizeof text);
    if (size <= 0) break;
    print_bytes(text, size);
  }
  printf("\n");
}

static void send(int fd, const char* text) {
  MUST(write(fd, text, strlen(text)));
}

static void lines(int master, int slave) {
  FACT("is a terminal", isatty(slave));
  send(master, "hello");
  show("no line yet", slave);
  send(master, "\n");
  show("a line", slave);
  show_all("echo", master);
  send(master, "abc\x7f\x7fxy\n");
  show("erased", slave);
  show_all("echo of it", master);
  send(master, "killed\x15line\n");
  show("line killed", slave);
  tcflush(master, TCIOFLUSH);
  tcflush(slave, TCIOFLUSH);
  send(master, "part\x04");
  show("end of file pushes", slave);
  show_all("echo of it", master);
  send(master, "\x04");
  char byte;
  FACT("end of file", read(slave, &byte, 1));
  send(slave, "out\n");
  show_all("newline on its way out", master);
  send(master, "one\ntwo\n");
  show("one line at a time", slave);
  show("and the next", slave);
}

static void raw(int master, int slave) {
  struct termios modes;
  MUST(tcgetattr(slave, &modes));
  FACT("canonical", (modes.c_lflag & ICANON) != 0);
  FACT("echo", (modes.c_lflag & ECHO) != 0);
  FACT("interrupt character", modes.c_cc[VINTR]);
  FACT("speed", cfgetospeed(&modes));
  cfmakeraw(&modes);
  CALL("raw", tcsetattr(slave, TCSANOW, &modes));
  tcflush(master, TCIOFLUSH);
  send(master, "ab\r\x03");
  show_all("bytes as they come", slave);
  show("no echo", master);
  send(slave, "x\n");
  show_all("newline as it is", master);
  modes.c_cc[VMIN] = 0;
  modes.c_cc[VTIME] = 1;
  MUST(tcsetattr(slave, TCSANOW, &modes));
  char byte;
  FACT("none in time", read(slave, &byte, 1));
  int waiting = -1;
  send(master, "123");
  struct pollfd p = {slave, POLLIN, 0};
  poll(&p, 1, 1000);
  MUST(ioctl(slave, FIONREAD, &waiting));
  FACT("waiting", waiting);
  CALL("flush", tcflush(slave, TCIFLUSH));
  MUST(ioctl(slave, FIONREAD, &waiting));
  FACT("after it", waiting);
}

static void sizes(int master, int slave) {
  struct winsize size = {24, 80, 0, 0};
  CALL("set", ioctl(master, TIOCSWINSZ, &size));
  memset(&size, 0, sizeof size);
  MUST(ioctl(slave, TIOCGWINSZ, &size));
  printf("size: %d x %d\n", size.ws_row, size.ws_col);
  CALL("of a pipe", ioctl(0, TIOCGWINSZ, &size));
  int number = -1;
  CALL("number", ioctl(master, TIOCGPTN, &number));
  char name[64];
  sprintf(name, "/dev/pts/%d", number);
  FACT("its name", strcmp(ttyname(slave), name));
  const int again = open(name, O_RDWR | O_NOCTTY);
  CALL("opened by name", again);
  close(again);
  CALL("/dev/tty without a terminal", open("/dev/tty", O_RDWR));
}

static void jobs(void) {
  int master;
  fflush(stdout);
  const int pid = MUST(forkpty(&master, NULL, NULL, NULL));
  if (pid == 0) {
    signal(SIGHUP, SIG_DFL);
    FACT("controls a session", tcgetsid(0) == getpid());
    FACT("its group is in front", tcgetpgrp(0) == getpgrp());
    CALL("/dev/tty", open("/dev/tty", O_RDWR));
    fflush(stdout);
    if (fork() == 0) {
      signal(SIGINT, SIG_DFL);
      pause();
    }
    signal(SIGINT, SIG_IGN);
    usleep(20000);
    write(1, "ready\n", 6);
    int status;
    wait(&status);
    printf("child: %d\n", WTERMSIG(status));
    fflush(stdout);
    if (fork() == 0) {
      setpgid(0, 0);
      signal(SIGTTIN, SIG_DFL);
      char byte;
      read(0, &byte, 1);
      _exit(0);
    }
    waitpid(-1, &status, WUNTRACED);
    printf("read from behind: %d\n", WIFSTOPPED(status) ? WSTOPSIG(status) : -1);
    fflush(stdout);
    pause();
    _exit(0);
  }
  char text[512] = "";
  size_t have = 0;
  while (strstr(text, "ready") == NULL) have += (size_t)MUST(read(master, text + have, sizeof text - 1 - have));
  send(master, "\x03");
  while (strstr(text, "behind: ") == NULL || strchr(strstr(text, "behind: "), '\n') == NULL) {
    have += (size_t)MUST(read(master, text + have, sizeof text - 1 - have));
  }
  for (const char* at = text; *at != '\0'; ++at) {
    if (*at != '\r') putchar(*at);
  }
  close(master);
  int status;
  MUST(waitpid(pid, &status, 0));
  FACT("hang-up", WIFSIGNALED(status) ? WTERMSIG(status) : -1);
}

static void ends(int master, int slave) {
  close(slave);
  show("the other side is closed", master);
  const int other = MUST(posix_openpt(O_RDWR | O_NOCTTY));
  CALL("locked", open(ptsname(other), O_RDWR | O_NOCTTY));
  MUST(grantpt(other));
  MUST(unlockpt(other));
  const int again = MUST(open(ptsname(other), O_RDWR | O_NOCTTY));
  close(other);
  char byte;
  FACT("the master is closed", read(again, &byte, 1));
  CALL("writing to it", write(again, "x", 1));
  close(master);
}

int main(void) {
  int master, slave;
  MUST(openpty(&master, &slave, NULL, NULL, NULL));
  lines(master, slave);
  raw(master, slave);
  sizes(master, slave);
  ends(master, slave);
  jobs();
}
