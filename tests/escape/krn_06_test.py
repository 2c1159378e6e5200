"""KRN-06: get around the filter by x32 numbers, int 0x80, personality(), and arguments whose upper halves are set: the kernel
looks at the lower 32 bits only, so a filter that compares all 64 lets them pass (CVE-2019-10063)."""

from harness import EscapeTest, callers, main, not_covered

SOURCE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// Arguments as they are, all 64 bits of them.
static long raw(long number, long a, long b, long c, long d, long e) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
  return result;
}

static long by_int80(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "r8", "r9", "r10", "r11", "memory");
  return (int)result;
}

static void say(const char* name, long result) {
  // A process that a call made is not the one that reports.
  if (result < 0) printf("%s %s\n", name, strerrorname_np((int)-result));
  else printf("%s ok\n", name);
  fflush(stdout);
}

#define HIGH (1L << 32)
#define HIGHEST (1L << 63)
#define X32 0x40000000L

// In a child, since these may succeed natively.
static void say_forked(const char* name, long number, long a) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    say(name, raw(number, a, 0, 0, 0, 0));
    _exit(0);
  }
  waitpid(child, 0, 0);
}

// clone answers in two processes; the new one ends at once.
static void say_clone(const char* name, long flags) {
  long result = raw(SYS_clone, flags, 0, 0, 0, 0);
  if (result == 0) raw(SYS_exit, 0, 0, 0, 0, 0);
  if (result > 0) waitpid((pid_t)result, 0, __WALL);
  say(name, result);
}

int main(void) {
  int master = raw(SYS_open, (long)"/dev/ptmx", 2 | 0400, 0, 0, 0);  // O_RDWR | O_NOCTTY
  say("ptmx", master);
  say("ioctl-sti", raw(SYS_ioctl, master, TIOCSTI, 0, 0, 0));
  say("ioctl-sti-high", raw(SYS_ioctl, master, TIOCSTI | HIGH, 0, 0, 0));
  say("ioctl-sti-highest", raw(SYS_ioctl, master, TIOCSTI | HIGHEST, 0, 0, 0));
  say("ioctl-setd-high", raw(SYS_ioctl, master, TIOCSETD | HIGH, 0, 0, 0));
  say("ioctl-linux-high", raw(SYS_ioctl, master, TIOCLINUX | HIGH, 0, 0, 0));
  say("socket-packet-high", raw(SYS_socket, AF_PACKET | HIGH, SOCK_RAW, 0, 0, 0));
  say("socket-vsock-high", raw(SYS_socket, 40 | HIGH, SOCK_STREAM, 0, 0, 0));
  say("socket-raw-high", raw(SYS_socket, AF_INET | HIGH, SOCK_RAW | HIGH, 1 | HIGH, 0, 0));
  say("socket-netlink-high", raw(SYS_socket, AF_NETLINK | HIGH, SOCK_RAW, 9 | HIGH, 0, 0));
  say_forked("unshare-user-high", SYS_unshare, CLONE_NEWUSER | HIGH);
  say_forked("unshare-user-highest", SYS_unshare, CLONE_NEWUSER | HIGHEST);
  say_clone("clone-user", CLONE_NEWUSER | SIGCHLD);
  say_clone("clone-user-high", CLONE_NEWUSER | SIGCHLD | HIGH);
  say_clone("clone-mount-user-high", CLONE_NEWNS | CLONE_NEWUSER | SIGCHLD | HIGHEST);
  char folder[] = "/tmp/krn-06-XXXXXX";
  if (mkdtemp(folder) == 0 || chdir(folder) != 0) return 1;
  say("mknod-high", raw(SYS_mknod, (long)"node", S_IFCHR | 0666 | HIGH, 0x103, 0, 0));
  say("chmod-suid-high", (raw(SYS_creat, (long)"suid", 0755, 0, 0, 0), raw(SYS_chmod, (long)"suid", 04755 | HIGH, 0, 0, 0)));
  unlink("node");
  unlink("suid");
  rmdir(folder);
  say("personality-32", raw(SYS_personality, PER_LINUX32, 0, 0, 0, 0));
  say("personality-read-implies-exec", raw(SYS_personality, READ_IMPLIES_EXEC, 0, 0, 0, 0));
  say("personality-mmap-page-zero", raw(SYS_personality, MMAP_PAGE_ZERO, 0, 0, 0, 0));
  say("personality-high", raw(SYS_personality, PER_LINUX32 | HIGH, 0, 0, 0, 0));
  raw(SYS_personality, PER_LINUX, 0, 0, 0, 0);
  say("x32-getpid", raw(X32 | SYS_getpid, 0, 0, 0, 0, 0));
  say("x32-write", raw(X32 | SYS_write, 1, (long)"", 0, 0, 0));
  say("x32-ptrace", raw(X32 | 521, 16, 1, 0, 0, 0));
  say("x32-socket", raw(X32 | SYS_socket, AF_INET, SOCK_STREAM, 0, 0, 0));
  say("number-high", raw(SYS_getpid | HIGH, 0, 0, 0, 0, 0));
  say("number-bpf-high", raw(321 | HIGH, 0, 0, 0, 0, 0));
  fflush(stdout);
  pid_t child = fork();  // without the 32-bit entry it dies of a signal
  if (child == 0) {
    say("int80-getpid", by_int80(20, 0, 0, 0));
    say("int80-unshare", by_int80(310, CLONE_FILES, 0, 0));
    say("int80-socketcall", by_int80(102, 0, 0, 0));
    say("int80-ptrace", by_int80(26, 16, 0x7ffffff0, 0));
    say("int80-bpf", by_int80(357, 0x7fffffff, 0, 0));
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  printf("int80-signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  return 0;
}
"""

# What the filter answers. Natively these succeed, or fail for reasons of their own.
REFUSED = {
    "ioctl-sti": "EPERM", "ioctl-sti-high": "EPERM", "ioctl-sti-highest": "EPERM", "ioctl-setd-high": "EPERM",
    "ioctl-linux-high": "EPERM", "socket-packet-high": "EAFNOSUPPORT", "socket-vsock-high": "EAFNOSUPPORT",
    "socket-raw-high": "EPERM", "socket-netlink-high": "EPROTONOSUPPORT", "unshare-user-high": "EPERM",
    "unshare-user-highest": "EPERM", "clone-user": "EPERM", "clone-user-high": "EPERM", "clone-mount-user-high": "EPERM",
    "mknod-high": "EPERM", "chmod-suid-high": "EPERM", "personality-32": "EPERM", "personality-read-implies-exec": "EPERM",
    "personality-mmap-page-zero": "EPERM", "personality-high": "EPERM",
}
X32 = ["x32-getpid", "x32-write", "x32-ptrace", "x32-socket"]
INT80 = ["int80-getpid", "int80-unshare", "int80-socketcall", "int80-ptrace", "int80-bpf"]


class Krn06(EscapeTest):
    def setUp(self) -> None:
        super().setUp()
        self.program = self.compile_c(SOURCE)

    @staticmethod
    def answers(result) -> dict[str, str]:
        return dict(line.split() for line in result.stdout.splitlines())

    def test_positive_control(self) -> None:
        """Natively the upper halves change nothing in these: the kernel takes the calls as if they were not set."""
        caller = callers()[0]
        answers = self.answers(self.native([self.program], caller))
        for name in "clone-user", "clone-user-high", "personality-32", "personality-high":
            self.assertEqual(answers[name], "ok", name)
        if caller.uid == 0:
            for name in "socket-raw-high", "socket-packet-high", "mknod-high", "chmod-suid-high":
                self.assertEqual(answers[name], "ok", name)
        self.assertNotEqual(answers["ioctl-sti-high"], "EPERM")
        if answers["int80-signal"] != "0":
            not_covered("KRN-06's positive control of int 0x80", "this kernel has no 32-bit entry")
        else:
            self.assertEqual((answers["int80-getpid"], answers["int80-unshare"]), ("ok", "ok"))
        if answers["x32-getpid"] == "ENOSYS":
            not_covered("KRN-06's positive control of x32", "this kernel has no x32 entry")

    def test_refused(self) -> None:
        for caller in callers():
            answers = self.answers(self.sandbox(["/probe"], ["--mount", f"{self.program}:/probe"], caller))
            self.assertEqual(answers["ptmx"], "ok")
            for name, refusal in REFUSED.items():
                with self.subTest(caller=caller.name, call=name):
                    self.assertEqual(answers[name], refusal)
            for name in X32 + ["number-bpf-high"] + (INT80 if answers["int80-signal"] == "0" else []):
                with self.subTest(caller=caller.name, call=name):
                    # The kernel drops the upper half of a number, and then the filter sees the number itself.
                    self.assertIn(answers[name], ("ENOSYS", "EPERM"))
            self.assertIn(answers["int80-signal"], ("0", "11", "31"))

    def test_the_usual_calls_work(self) -> None:
        probe = """
report(persona=_libc.personality(ctypes.c_ulong(0xffffffff)), no_random=_libc.personality(ctypes.c_ulong(0x0040000)))
"""
        for caller in callers():
            self.assertEqual(self.sandbox(probe, caller=caller).findings, {"persona": 0, "no_random": 0})


if __name__ == "__main__":
    main()
