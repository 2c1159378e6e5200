#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string_view>

#include "cli/commands.h"

namespace {

// A caller may start us without stdin, stdout or stderr. The next file that is opened would then take the place, and
// the program's output would go into it. An end that can't be used the right way behaves as a closed one does.
void take_missing_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) ::_exit(125);
  }
}

// A stack that is too small is a fault of memory, at the first call that needs more (getrlimit(2)).
void check_stack() {
  constexpr rlim_t kStackBytesLeast = 256 << 10;
  constexpr std::string_view kMessage = "belljar: the stack limit (ulimit -s) is too small; 256 KiB is the least\n";
  rlimit stack{};
  if (::getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= kStackBytesLeast) return;
  (void)!::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  ::_exit(125);
}

}  // namespace

int main(int argc, char** argv) {
  take_missing_descriptors();
  check_stack();
  ::signal(SIGXFSZ, SIG_IGN);  // a write past the caller's RLIMIT_FSIZE is to fail with EFBIG, and so with a message
  const std::span<char* const> arguments(argv, static_cast<std::size_t>(argc));
  return belljar::command_line(arguments.subspan(arguments.empty() ? 0 : 1));  // argv may be empty: execve(2)
}
