// What the container filter costs: to install, and per call. Not a test; build the target seccomp_bench and run it.
//   seccomp_bench            prints the tenth percentile (the quiet machine) and the median
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
#include <cstdlib>
#include <span>
#include <vector>

#include "seccomp/filter.h"

namespace belljar {
namespace {

constexpr int kInstallRounds = 501;
constexpr int kCallRounds = 301;
constexpr int kCallsPerRound = 1000;

constexpr sock_filter kAllowAll[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0}, {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};

double now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

bool install(std::span<const sock_filter> program) {
  const sock_fprog filter{static_cast<unsigned short>(program.size()), const_cast<sock_filter*>(program.data())};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

struct Spread {
  double p10;
  double p50;
};

Spread spread(std::vector<double> values) {
  std::ranges::sort(values);
  return {values[values.size() / 10], values[values.size() / 2]};
}

// In a child for each round, as filters can't be taken off.
Spread install_us(std::span<const sock_filter> program) {
  std::vector<double> rounds;
  for (int round = 0; round < kInstallRounds; ++round) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    const pid_t child = ::fork();
    if (child == 0) {
      const double start = now_ns();
      if (!install(program)) ::_exit(1);
      const double spent = (now_ns() - start) / 1000;
      ::_exit(::write(ends[1], &spent, sizeof spent) == sizeof spent ? 0 : 1);
    }
    double spent = 0;
    if (::read(ends[0], &spent, sizeof spent) == sizeof spent) rounds.push_back(spent);
    ::close(ends[0]);
    ::close(ends[1]);
    ::waitpid(child, nullptr, 0);
  }
  return spread(std::move(rounds));
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

using Costs = std::array<double, kCalls.size()>;

// Nanoseconds of each call, in one round.
Costs call_costs_ns() {
  Costs result{};
  for (std::size_t i = 0; i < kCalls.size(); ++i) {
    const double start = now_ns();
    for (int n = 0; n < kCallsPerRound; ++n) kCalls[i].run();
    result[i] = (now_ns() - start) / kCallsPerRound;
  }
  return result;
}

// Native rounds here and filtered rounds in a child, by turns, so that both see the same noise of the machine.
int measure_calls() {
  int to_child[2];
  int to_parent[2];
  if (::pipe(to_child) != 0 || ::pipe(to_parent) != 0) return 1;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(to_child[1]);
    if (!install(container_profile().program)) ::_exit(1);
    char turn = 0;
    while (::read(to_child[0], &turn, 1) == 1) {
      const Costs costs = call_costs_ns();
      if (::write(to_parent[1], costs.data(), sizeof costs) != sizeof costs) ::_exit(1);
    }
    ::_exit(0);
  }
  std::array<std::vector<double>, kCalls.size()> native;
  std::array<std::vector<double>, kCalls.size()> filtered;
  for (int round = 0; round < kCallRounds; ++round) {
    const Costs here = call_costs_ns();
    Costs there{};
    if (::write(to_child[1], "", 1) != 1) return 1;
    if (::read(to_parent[0], there.data(), sizeof there) != sizeof there) return 1;
    for (std::size_t i = 0; i < kCalls.size(); ++i) {
      native[i].push_back(here[i]);
      filtered[i].push_back(there[i]);
    }
  }
  ::close(to_child[1]);
  ::waitpid(child, nullptr, 0);
  for (std::size_t i = 0; i < kCalls.size(); ++i) {
    const Spread before = spread(native[i]);
    const Spread after = spread(filtered[i]);
    fmt::print("{:26} p10 {:7.0f} -> {:7.0f} ns ({:.2f}x)   p50 {:7.0f} -> {:7.0f} ns ({:.2f}x)\n", kCalls[i].name,
               before.p10, after.p10, after.p10 / before.p10, before.p50, after.p50, after.p50 / before.p50);
  }
  return 0;
}

int measure() {
  const auto program = container_profile().program;
  const Spread least = install_us(kAllowAll);
  const Spread ours = install_us(program);
  fmt::print("install: {} instructions p10 {:.1f} us, p50 {:.1f} us; 2 instructions p10 {:.1f} us, p50 {:.1f} us\n",
             program.size(), ours.p10, ours.p50, least.p10, least.p50);
  return measure_calls();
}

}  // namespace
}  // namespace belljar

int main(int argc, char** argv) {
  if (argc == 1) return belljar::measure();
  if (!belljar::install(belljar::container_profile().program)) return 125;
  ::execvp(argv[1], argv + 1);
  return 127;
}
