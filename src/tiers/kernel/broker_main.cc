// belljar-broker: the only way from a user-space kernel to the outside. It shows the root file system that it runs in,
// read only, and moves the standard streams. What guests share with it is hostile: each value is read once and checked,
// and no pointer or offset of theirs is followed.
//
// With `read-files` it is another program: see arena_reader.h.
//
// Descriptors: 0 to 2 the program's streams, 3 the arena, 4 the content file, 5 and 6 the content cache for reading and
// for its keeper. Arguments: where the image is mounted, whose files the cache may hold.
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "seccomp/filter.h"
#include "tiers/kernel/arena_reader.h"
#include "tiers/kernel/broker_files.h"
#include "tiers/kernel/broker_shared.h"
#include "tiers/kernel/broker_streams.h"
#include "tiers/kernel/cache_keeper.h"

namespace belljar::broker {
namespace {

// Answers requests until the sandbox has ended.
void serve(Shared& shared, Files& files) {
  while (true) {
    const std::uint32_t seen = shared.area().doorbell.load();
    for (kernel::shm::Request& request : shared.area().requests) {
      if (request.state.load() == kernel::shm::Request::kPosted) files.answer(request);
    }
    if (shared.end_kind() != kernel::shm::End::kRunning) return;
    shared.area().broker_waits.store(1);
    sleep_on(shared.area().doorbell, seen);
    shared.area().broker_waits.store(0);
  }
}

[[noreturn]] void end_as(const Shared& shared) {
  const int code = shared.end_code();
  switch (shared.end_kind()) {
    case kernel::shm::End::kExited:
      ::_exit(code & 0xff);
    case kernel::shm::End::kSignalled:
      end_by_signal(code);
    default:
      ::_exit(kEndedOtherwise);
  }
}

// For all threads; it adds to the container tier's filter, which init has installed.
bool confine_self() {
  const auto rows = broker_profile().program;
  const sock_fprog program{.len = static_cast<unsigned short>(rows.size()),
                           .filter = const_cast<sock_filter*>(rows.data())};  // NOLINT(*-const-cast): an old interface
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

// `folders`: where the image is mounted.
int run(std::span<const std::string> folders) {
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  ::prctl(PR_SET_NAME, "belljar-broker", 0, 0, 0);
  // Before the first look at what guests can write: so the keeper is beyond their reach.
  content_cache::Keeper keeper;
  if (::fcntl(kWritableCacheFd, F_GETFD) >= 0) keeper.start(Fd(kWritableCacheFd), folders);
  Shared shared;
  if (!shared.map()) return kEndedOtherwise;
  Files files;
  if (!files.open(keeper, shared.area().boot)) return kEndedOtherwise;
  if (::isatty(STDIN_FILENO) == 1) {
    sigset_t changes;
    ::sigemptyset(&changes);
    ::sigaddset(&changes, SIGWINCH);
    ::sigprocmask(SIG_BLOCK, &changes, nullptr);
    std::thread([&] { follow_window(shared); }).detach();
  }
  std::thread input([&] { carry_input(shared); });
  std::atomic<std::uint32_t> carrying = 2;
  const auto carry = [&](kernel::shm::StreamIndex index) {
    carry_output(shared, index);
    carrying.fetch_sub(1);
    wake(carrying);
  };
  std::thread output(carry, kernel::shm::kStdout);
  std::thread errors(carry, kernel::shm::kStderr);
  if (!confine_self()) return kEndedOtherwise;
  serve(shared, files);
  // Again and again: what the two sleep on stays as it is, so one that is only on its way to sleep misses a wake-up.
  for (std::uint32_t left = carrying.load(); left != 0; left = carrying.load()) {
    shared.wake_streams();
    sleep_on(carrying, left, std::chrono::milliseconds(10));
  }
  keeper.stop();
  output.join();
  errors.join();
  end_as(shared);
}

}  // namespace
}  // namespace belljar::broker

int main(int count, char** arguments) {
  const std::span<char* const> given(arguments, static_cast<std::size_t>(count));
  if (given.size() > 1 && std::string_view(given[1]) == "read-files") {
    return belljar::broker::read_arena(given.subspan(2));
  }
  const std::vector<std::string> folders(given.begin() + 1, given.end());
  return belljar::broker::run(folders);
}
