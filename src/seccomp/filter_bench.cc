// What the container filter costs: to install, and per call. Not a test; build the target seccomp_bench and run it.
//   seccomp_bench            prints medians
//   seccomp_bench COMMAND    runs a command under the filter
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "seccomp/filter.h"

namespace belljar {
namespace {

constexpr int kInstallRounds = 301;
constexpr int kCallRounds = 41;
constexpr int kCallsPerRound = 5000;

double now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

bool install() {
  const auto program = container_profile().program;
  const sock_fprog filter{static_cast<unsigned short>(program.size()), const_cast<sock_filter*>(program.data())};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// In a child for each round, as filters can't be taken off.
double install_us() {
  std::vector<double> rounds;
  for (int round = 0; round < kInstallRounds; ++round) {
    int ends[2];
    if (::pipe(ends) != 0) return -1;
    const pid_t child = ::fork();
    if (child == 0) {
      const double start = now_ns();
      if (!install()) ::_exit(1);
      const double spent = (now_ns() - start) / 1000;
      ::_exit(::write(ends[1], &spent, sizeof spent) == sizeof spent ? 0 : 1);
    }
    double spent = 0;
    if (::read(ends[0], &spent, sizeof spent) == sizeof spent) rounds.push_back(spent);
    ::close(ends[0]);
    ::close(ends[1]);
    ::waitpid(child, nullptr, 0);
  }
  return median(rounds);
}

struct Call {
  const char* name;
  void (*run)();
};

constexpr std::array kCalls = {
    Call{"getpid (bitmap)", [] { ::syscall(SYS_getpid); }},
    Call{"openat + close", [] { ::close(::open("/etc/passwd", O_RDONLY | O_CLOEXEC)); }},
    Call{"openat of a missing file", [] { (void)::open("/etc/missing", O_RDONLY | O_CLOEXEC); }},
    Call{"ioctl on a bad fd", [] { ::syscall(SYS_ioctl, -1, 0, 0); }},
    Call{"mmap + munmap",
         [] { ::munmap(::mmap(nullptr, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 65536); }},
    Call{"socket + close", [] { ::close(static_cast<int>(::syscall(SYS_socket, AF_UNIX, 1, 0))); }},
};

void call_costs(std::array<double, kCalls.size()>& result) {
  std::array<std::vector<double>, kCalls.size()> rounds;
  for (int round = 0; round < kCallRounds; ++round) {
    for (std::size_t i = 0; i < kCalls.size(); ++i) {
      const double start = now_ns();
      for (int n = 0; n < kCallsPerRound; ++n) kCalls[i].run();
      rounds[i].push_back((now_ns() - start) / kCallsPerRound);
    }
  }
  for (std::size_t i = 0; i < kCalls.size(); ++i) result[i] = median(rounds[i]);
}

int measure() {
  fmt::print("filter: {} instructions, install {:.1f} us\n", container_profile().program.size(), install_us());
  std::array<double, kCalls.size()> native{};
  std::array<double, kCalls.size()> filtered{};
  call_costs(native);
  if (!install()) return 1;
  call_costs(filtered);
  for (std::size_t i = 0; i < kCalls.size(); ++i) {
    fmt::print("{:26} native {:7.1f} ns  filtered {:7.1f} ns  {:.3f}x\n", kCalls[i].name, native[i], filtered[i],
               filtered[i] / native[i]);
  }
  return 0;
}

}  // namespace
}  // namespace belljar

int main(int argc, char** argv) {
  if (argc == 1) return belljar::measure();
  if (!belljar::install()) return 125;
  ::execvp(argv[1], argv + 1);
  return 127;
}
