#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

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

}  // namespace

int main(int argc, char** argv) {
  take_missing_descriptors();
  ::signal(SIGXFSZ, SIG_IGN);  // a write past the caller's RLIMIT_FSIZE is to fail with EFBIG, and so with a message
  const std::span<char* const> arguments(argv, static_cast<std::size_t>(argc));
  return belljar::command_line(arguments.subspan(arguments.empty() ? 0 : 1));  // argv may be empty: execve(2)
}
