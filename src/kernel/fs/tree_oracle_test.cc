// Random calls on names, beside the same calls of the host's kernel on its own tmpfs: every answer must be the same.
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "kernel/fs/test_tree.h"

namespace belljar::kernel {
namespace {

enum class Action { stat, lstat, open, mkdir, rmdir, unlink, rename, link, symlink, readlink, truncate, chdir, count };

struct Request {
  Action action = Action::stat;
  int flags = 0;
  char path[48] = {};
  char other[48] = {};
};

struct Answer {
  long result = 0;  // or -errno
  unsigned mode = 0;
  unsigned long links = 0;
  long size = 0;
  bool operator==(const Answer&) const = default;
};

// How a call is made: by the kernel under test, or by the host's.
using Call = long (*)(long number, const void*, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t);

std::uint64_t word(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

Answer perform(Call call, const Request& request) {
  Answer answer;
  struct stat status{};
  char text[64] = {};
  const void* const path = request.path;
  switch (request.action) {
    case Action::stat:
      answer.result = call(SYS_stat, path, word(&status), 0, 0, 0);
      break;
    case Action::lstat:
      answer.result = call(SYS_lstat, path, word(&status), 0, 0, 0);
      break;
    case Action::open:
      answer.result = call(SYS_open, path, static_cast<std::uint64_t>(request.flags), 0644, 0, 0);
      if (answer.result >= 0) {
        call(SYS_fstat, reinterpret_cast<const void*>(answer.result), word(&status), 0, 0, 0);
        call(SYS_close, reinterpret_cast<const void*>(answer.result), 0, 0, 0, 0);
        answer.result = 0;
      }
      break;
    case Action::mkdir:
      answer.result = call(SYS_mkdir, path, 0755, 0, 0, 0);
      break;
    case Action::rmdir:
      answer.result = call(SYS_rmdir, path, 0, 0, 0, 0);
      break;
    case Action::unlink:
      answer.result = call(SYS_unlink, path, 0, 0, 0, 0);
      break;
    case Action::rename:
      answer.result =
          call(SYS_renameat2, reinterpret_cast<const void*>(static_cast<long>(AT_FDCWD)), word(path),
               static_cast<std::uint64_t>(AT_FDCWD), word(request.other), static_cast<std::uint64_t>(request.flags));
      break;
    case Action::link:
      answer.result = call(SYS_link, path, word(request.other), 0, 0, 0);
      break;
    case Action::symlink:
      answer.result = call(SYS_symlink, request.other, word(path), 0, 0, 0);
      break;
    case Action::readlink:
      answer.result = call(SYS_readlink, path, word(text), sizeof text, 0, 0);
      break;
    case Action::truncate:
      answer.result = call(SYS_truncate, path, 100, 0, 0, 0);
      break;
    default:
      answer.result = call(SYS_chdir, path, 0, 0, 0, 0);
      break;
  }
  answer.mode = status.st_mode;
  answer.links = status.st_nlink;
  answer.size = S_ISDIR(status.st_mode) ? 0 : status.st_size;
  return answer;
}

long call_host(long number, const void* one, std::uint64_t two, std::uint64_t three, std::uint64_t four,
               std::uint64_t five) {
  const long result = ::syscall(number, one, two, three, four, five);
  return result < 0 ? -errno : result;
}

long call_kernel(long number, const void* one, std::uint64_t two, std::uint64_t three, std::uint64_t four,
                 std::uint64_t five) {
  const SyscallArguments arguments{{word(one), two, three, four, five, 0}};
  SyscallFunction function = nullptr;
  switch (number) {
#define SYSCALL(value, name, support, note, page) \
  case value:                                     \
    function = sys_##name;                        \
    break;
#define REFUSED(value, name, errno_value, note, page)
#include "kernel/syscalls/syscalls.def"
#undef SYSCALL
#undef REFUSED
  }
  const SyscallResult result = function(arguments);
  return result ? static_cast<long>(*result) : -value_of(result.error());
}

// A process in a folder of its own that answers by the host's kernel.
class Oracle {
 public:
  Oracle() {
    char folder[] = "/dev/shm/tree_oracle.XXXXXX";
    if (::mkdtemp(folder) == nullptr) return;
    folder_ = folder;
    if (::pipe(to_) != 0 || ::pipe(from_) != 0) return;
    child_ = ::fork();
    if (child_ == 0) serve();
    char byte = 0;
    is_ready_ = ::read(from_[0], &byte, 1) == 1 && byte == '+';
  }
  ~Oracle() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    for (const int fd : {to_[0], to_[1], from_[0], from_[1]}) ::close(fd);
    if (!folder_.empty()) static_cast<void>(std::system(("rm -rf " + folder_).c_str()));
  }
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  bool is_ready() const { return is_ready_; }
  Answer ask(const Request& request) {
    Answer answer;
    EXPECT_EQ(::write(to_[1], &request, sizeof request), static_cast<ssize_t>(sizeof request));
    EXPECT_EQ(::read(from_[0], &answer, sizeof answer), static_cast<ssize_t>(sizeof answer));
    return answer;
  }

 private:
  [[noreturn]] void serve() {
    ::umask(022);
    const bool is_in = ::chroot(folder_.c_str()) == 0 && ::chdir("/") == 0 && ::chmod("/", 01777) == 0;
    static_cast<void>(!::write(from_[1], is_in ? "+" : "-", 1));
    Request request;
    while (is_in && ::read(to_[0], &request, sizeof request) == static_cast<ssize_t>(sizeof request)) {
      const Answer answer = perform(call_host, request);
      if (::write(from_[1], &answer, sizeof answer) < 0) break;
    }
    ::_exit(0);
  }

  std::string folder_;
  int to_[2] = {-1, -1}, from_[2] = {-1, -1};
  pid_t child_ = -1;
  bool is_ready_ = false;
};

class Chooser {
 public:
  explicit Chooser(unsigned seed) : random_(seed) {}
  unsigned below(unsigned end) { return static_cast<unsigned>(random_() % end); }
  void path(char* to, std::size_t size) {
    constexpr const char* kNames[] = {"a", "b", "c", "dd", ".", "..", "a", "b"};
    std::string text = below(3) == 0 ? "/" : "";
    const unsigned parts = below(40) == 0 ? 0 : 1 + below(3);
    for (unsigned i = 0; i < parts; ++i) {
      if (i != 0) text += below(12) == 0 ? "//" : "/";
      text += kNames[below(std::size(kNames))];
    }
    if (below(8) == 0) text += "/";
    std::snprintf(to, size, "%s", text.c_str());
  }
  Request request() {
    Request request;
    request.action = static_cast<Action>(below(static_cast<unsigned>(Action::count)));
    path(request.path, sizeof request.path);
    path(request.other, sizeof request.other);
    constexpr int kOpenFlags[] = {O_RDONLY,
                                  O_CREAT | O_RDWR,
                                  O_CREAT | O_EXCL | O_WRONLY,
                                  O_RDONLY | O_DIRECTORY,
                                  O_RDONLY | O_NOFOLLOW,
                                  O_CREAT | O_NOFOLLOW | O_RDWR,
                                  O_RDWR | O_TRUNC,
                                  O_PATH,
                                  O_PATH | O_NOFOLLOW,
                                  O_PATH | O_DIRECTORY};
    if (request.action == Action::open) request.flags = kOpenFlags[below(std::size(kOpenFlags))];
    if (request.action == Action::rename) request.flags = static_cast<int>(below(3));
    return request;
  }

 private:
  std::mt19937 random_;
};

TEST_F(FileSystemTest, AnswersAsTheHostsKernel) {
  Oracle oracle;
  if (!oracle.is_ready()) {
    std::printf("NOT COVERED: names beside the host's kernel: chroot(2) is not allowed here\n");
    return;
  }
  kernel.task().credentials.euid = 0;
  ASSERT_EQ(call(sys_chroot, "/tmp"), 0);
  ASSERT_EQ(call(sys_chdir, "/"), 0);
  kernel.task().credentials.euid = 1000;
  Chooser chooser(20261130);
  for (int step = 0; step < 60'000; ++step) {
    const Request request = chooser.request();
    const Answer expected = oracle.ask(request);
    const Answer seen = perform(call_kernel, request);
    ASSERT_TRUE(seen == expected) << "step " << step << ": action " << static_cast<int>(request.action) << " ("
                                  << request.path << ", " << request.other << ", " << request.flags
                                  << "): " << seen.result << " instead of " << expected.result << "; mode " << seen.mode
                                  << "/" << expected.mode << " links " << seen.links << "/" << expected.links
                                  << " size " << seen.size << "/" << expected.size;
  }
}

}  // namespace
}  // namespace belljar::kernel
