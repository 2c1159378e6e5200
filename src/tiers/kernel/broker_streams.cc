#include "tiers/kernel/broker_streams.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace belljar::broker {
namespace {

using kernel::shm::Stream;

void ring_guests(Shared& shared, std::atomic<std::uint32_t>& waits) {
  if (waits.exchange(0) == 0) return;
  shared.area().guest_bell.fetch_add(1);
  wake(shared.area().guest_bell);
}

}  // namespace

void follow_window(Shared& shared) {
  sigset_t changes;
  ::sigemptyset(&changes);
  ::sigaddset(&changes, SIGWINCH);
  while (true) {
    winsize size{};
    if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0) {
      shared.area().window.store(std::uint32_t{size.ws_row} << 16 | size.ws_col);
      shared.area().guest_bell.fetch_add(1);
      wake(shared.area().guest_bell);
    }
    ::sigwaitinfo(&changes, nullptr);
  }
}

void carry_input(Shared& shared) {
  Stream& stream = shared.area().streams[kernel::shm::kStdin];
  std::uint32_t written = 0;  // this side's own count: the shared one is for guests to read
  while (true) {
    const std::uint32_t taken = stream.taken.load();
    const std::uint32_t used = written - taken;
    if (used >= Stream::kSize) {
      stream.writer_waits.store(1);
      if (stream.taken.load() == taken) sleep_on(stream.taken, taken);
      stream.writer_waits.store(0);
      continue;
    }
    const std::uint32_t at = written % Stream::kSize;
    const std::uint32_t room = std::min(Stream::kSize - used, Stream::kSize - at);
    const ssize_t count = ::read(STDIN_FILENO, stream.data + at, room);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    written += static_cast<std::uint32_t>(count);
    stream.written.store(written);
    ring_guests(shared, stream.taker_waits);
  }
  stream.is_ended.store(1);
  stream.taker_waits.store(1);
  ring_guests(shared, stream.taker_waits);
}

void carry_output(Shared& shared, kernel::shm::StreamIndex index) {
  Stream& stream = shared.area().streams[index];
  const int fd = static_cast<int>(index);
  std::uint32_t taken = 0;
  while (true) {
    const bool is_over = shared.end_kind() != kernel::shm::End::kRunning;
    const std::uint32_t written = stream.written.load();
    const std::uint32_t waiting = std::min(written - taken, Stream::kSize);
    if (waiting == 0) {
      if (is_over) return;
      stream.taker_waits.store(1);
      if (shared.end_kind() == kernel::shm::End::kRunning) sleep_on(stream.written, written);
      stream.taker_waits.store(0);
      continue;
    }
    const std::uint32_t at = taken % Stream::kSize;
    const ssize_t count = ::write(fd, stream.data + at, std::min(waiting, Stream::kSize - at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      stream.is_ended.store(1);
      stream.writer_waits.store(1);
      ring_guests(shared, stream.writer_waits);
      return;
    }
    taken += static_cast<std::uint32_t>(count);
    stream.taken.store(taken);
    ring_guests(shared, stream.writer_waits);
  }
}

}  // namespace belljar::broker
