"""NET-08: sockets by the 32-bit entry (int 0x80, where one call, socketcall, stands for all) and by x32 numbers."""

from harness import EscapeTest, callers, main, not_covered
from network import Listeners, enter_private_network

SOURCE = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int by_int80(int number, long a, long b, long c) {
  int result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "r8", "r9", "r10", "r11", "memory");
  return result;
}

static void say(const char* name, long result) {
  printf("%s %s\n", name, result < 0 ? strerrorname_np((int)-result) : "ok");
  fflush(stdout);
}

int main(int count, char** words) {
  (void)count;
  const uint16_t port = (uint16_t)atoi(words[1]);
  struct Low {  // what the 32-bit entry can point to
    uint32_t arguments[6];
    struct sockaddr_in address;
  }* low = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  low->address = (struct sockaddr_in){AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}, {0}};
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    low->arguments[0] = AF_INET, low->arguments[1] = SOCK_STREAM, low->arguments[2] = 0;
    const int socket_fd = by_int80(102, 1, (long)low->arguments, 0);  // socketcall(SYS_SOCKET)
    say("socketcall-socket", socket_fd);
    low->arguments[0] = (uint32_t)socket_fd, low->arguments[1] = (uint32_t)(uintptr_t)&low->address, low->arguments[2] = sizeof low->address;
    say("socketcall-connect", by_int80(102, 3, (long)low->arguments, 0));
    const int other = by_int80(359, AF_INET, SOCK_STREAM, 0);  // socket
    say("socket", other);
    say("connect", by_int80(362, other, (long)&low->address, sizeof low->address));
    low->arguments[0] = 38, low->arguments[1] = SOCK_SEQPACKET;  // AF_ALG
    say("socketcall-alg", by_int80(102, 1, (long)low->arguments, 0));
    low->arguments[0] = AF_PACKET, low->arguments[1] = SOCK_RAW;
    say("socketcall-packet", by_int80(102, 1, (long)low->arguments, 0));
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  printf("died %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  const long x32 = syscall(0x40000000 | SYS_socket, AF_INET, SOCK_STREAM, 0);
  say("x32-socket", x32 < 0 ? -errno : x32);
  const long ordinary = socket(AF_INET, SOCK_STREAM, 0);
  say("ordinary-socket", ordinary < 0 ? -errno : ordinary);
  return 0;
}
"""


class Net08(EscapeTest):
    @classmethod
    def setUpClass(cls) -> None:
        enter_private_network([])
        cls.listeners = Listeners()
        cls.addClassCleanup(cls.listeners.close)

    def setUp(self) -> None:
        super().setUp()
        self.program = self.compile_c(SOURCE)

    @staticmethod
    def answers(result) -> dict[str, str]:
        return dict(line.split() for line in result.stdout.splitlines())

    def test_positive_control(self) -> None:
        answers = self.answers(self.native([self.program], arguments=[str(self.listeners.port)]))
        if answers["died"] != "0":
            not_covered("NET-08's positive control of int 0x80", "this kernel has no 32-bit entry")
        else:
            self.assertEqual([answers[name] for name in ("socketcall-socket", "socketcall-connect", "socket", "connect")], ["ok"] * 4)
            self.wait_for(lambda: len(self.listeners.visits) == 2, "the control's visits")
        if answers["x32-socket"] != "ok":
            not_covered("NET-08's positive control of x32", "this kernel has no x32 entry")

    def test_refused(self) -> None:
        for caller in callers():
            with self.subTest(caller=caller.name):
                self.listeners.visits.clear()
                flags = ["--mount", f"{self.program}:/probe"]
                answers = self.answers(self.sandbox(["/probe"], flags, caller, arguments=[str(self.listeners.port)]))
                self.assertEqual(answers.pop("ordinary-socket"), "ok")  # the 64-bit entry serves TCP
                self.assertIn(answers.pop("died"), ("0", "11"))
                self.assertEqual(set(answers.values()), {"ENOSYS"}, answers)
                self.assertEqual(self.listeners.visits, [])


if __name__ == "__main__":
    main()
