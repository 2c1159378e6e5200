#include "kernel/broker/console_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>

#include "kernel/arena/roots.h"
#include "kernel/broker/broker_client.h"
#include "kernel/broker/rings_shm.h"
#include "kernel/host/calls.h"
#include "kernel/terminal/terminal.h"
#include "kernel/terminal/terminal_files.h"

namespace belljar::kernel {
namespace {

std::uint32_t* raw(std::atomic<std::uint32_t>& word) {
  return reinterpret_cast<std::uint32_t*>(&word);
}

void ring_helper() {
  std::atomic<std::uint32_t>& bell = shared_with_broker().guest_bell;
  bell.fetch_add(1);
  host::futex(raw(bell), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

// Wakes the helper when there is something to take from the master's side, or room to put something there.
class HelperWaiter final : public Waiter {
 public:
  bool wake(Events) override {
    ring_helper();
    return true;
  }
};

}  // namespace

class ConsoleTerminal {
 public:
  Ref<Terminal> terminal;
  HelperWaiter waiter;
  std::uint32_t window = 0;  // as shm::Shared::window
  // How the program ended, to be reported: shm::End::Kind.
  std::atomic<std::uint32_t> end_kind = shm::End::kRunning;
  std::int32_t end_code = 0;
};

namespace {

ConsoleTerminal& console() {
  return *arena_roots().console_terminal;
}

void follow_window() {
  const std::uint32_t packed = shared_with_broker().window.load();
  if (packed == console().window) return;
  console().window = packed;
  console().terminal->set_window(
      {.rows = static_cast<std::uint16_t>(packed >> 16), .columns = static_cast<std::uint16_t>(packed)});
}

void move_input() {
  shm::Stream& from = shared_with_broker().streams[shm::kStdin];
  while (true) {
    from.taker_waits.store(1);  // before the look, so that what comes after it is told
    const std::uint32_t taken = from.taken.load();
    const std::uint32_t waiting = from.written.load() - taken;
    const std::uint32_t at = taken % shm::Stream::kSize;
    const std::uint32_t size = waiting < shm::Stream::kSize - at ? waiting : shm::Stream::kSize - at;
    if (size == 0) return;
    const Area area{reinterpret_cast<std::uint64_t>(from.data + at), size};
    Buffers bytes = Buffers::of_kernel(area);
    const auto moved = console().terminal->write_input(bytes, true);
    if (!moved || *moved == 0) return;  // until a program has read some
    from.taken.store(taken + static_cast<std::uint32_t>(*moved));
    if (from.writer_waits.load() != 0) host::futex(raw(from.taken), FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
}

// Moves what the terminal holds, as far as the broker's stream has room. False: there is more.
bool move_output() {
  shm::Stream& to = shared_with_broker().streams[shm::kStdout];
  // What is written meanwhile must not keep this from its end.
  for (std::uint32_t left = LineDiscipline::kOutputSize; left > 0;) {
    to.writer_waits.store(1);
    const std::uint32_t written = to.written.load();
    const std::uint32_t room = shm::Stream::kSize - (written - to.taken.load());
    const std::uint32_t at = written % shm::Stream::kSize;
    std::uint32_t size = room < shm::Stream::kSize - at ? room : shm::Stream::kSize - at;
    if (size > left) size = left;
    if (size == 0) return false;
    const Area area{reinterpret_cast<std::uint64_t>(to.data + at), size};
    Buffers bytes = Buffers::of_kernel(area);
    const auto moved = console().terminal->read_output(bytes, true);
    if (!moved || *moved == 0) return true;
    left -= static_cast<std::uint32_t>(*moved);
    to.written.store(written + static_cast<std::uint32_t>(*moved));
    if (to.taker_waits.load() != 0) host::futex(raw(to.written), FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
  ring_helper();  // to go on soon
  return true;
}

}  // namespace

SysResult<void> make_console_terminal(std::uint32_t uid, std::uint32_t gid) {
  auto* const made = make_object<ConsoleTerminal>();
  if (made == nullptr) return error(ENOMEM);
  made->terminal = TRY(Terminal::make());
  made->terminal->uid = uid;
  made->terminal->gid = gid;
  made->terminal->is_locked.store(false);
  made->terminal->master_queue.add(made->waiter);
  arena_roots().console_terminal = made;
  follow_window();
  return {};
}

bool has_console_terminal() {
  return arena_roots().console_terminal != nullptr;
}

SysResult<Ref<File>> open_console_terminal() {
  Ref<File> file = TRY(open_slave(console().terminal, O_RDWR | O_NOCTTY, {}, {}));
  file->set_flags(O_RDWR);
  return file;
}

void take_console_terminal() {
  static_cast<void>(console().terminal->become_controlling());
}

void move_console_terminal() {
  follow_window();
  move_input();
  const std::uint32_t end_kind = console().end_kind.load();
  if (!move_output() || end_kind == shm::End::kRunning) return;
  shm::End& end = shared_with_broker().end;
  if (end.kind.load() != shm::End::kRunning) return;
  end.code = console().end_code;
  end.kind.store(end_kind);
  ring_broker();
}

void end_after_console_terminal(std::uint32_t kind, std::int32_t code) {
  console().end_code = code;
  console().end_kind.store(kind);
  ring_helper();
}

}  // namespace belljar::kernel
