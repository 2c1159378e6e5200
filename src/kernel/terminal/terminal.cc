#include "kernel/terminal/terminal.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>

#include "kernel/arena/roots.h"
#include "kernel/ipc/nameless.h"
#include "kernel/terminal/devices.h"
#include "kernel/time/clocks.h"

namespace belljar::kernel {
namespace {

constexpr Events kReadable = POLLIN | POLLRDNORM;
constexpr Events kWritable = POLLOUT | POLLWRNORM;
constexpr std::uint32_t kPart = 256;
constexpr std::uint64_t kTenth = 100'000'000;  // of a second: the unit of VTIME

TerminalState& terminal_state() {
  return root_object(arena_roots().terminals);
}

}  // namespace

SysResult<Ref<Terminal>> Terminal::make() {
  Ref<Terminal> terminal = make_ref<Terminal>();
  if (!terminal) return error(ENOMEM);
  terminal->uid = current().credentials.fsuid;
  terminal->gid = current().credentials.fsgid;
  TerminalState& state = terminal_state();
  LockGuard guard(state.lock);
  for (std::uint32_t number = 0; number < kCountMax; ++number) {
    if (state.terminals[number] != nullptr) continue;
    terminal->number_ = number;
    state.terminals[number] = terminal.get();
    return terminal;
  }
  return error(ENOSPC);
}

Ref<Terminal> Terminal::find(std::uint32_t number) {
  TerminalState& state = terminal_state();
  LockGuard guard(state.lock);
  return number < kCountMax ? Ref<Terminal>::of(state.terminals[number]) : Ref<Terminal>();
}

std::uint32_t Terminal::next_used(std::uint32_t number) {
  TerminalState& state = terminal_state();
  LockGuard guard(state.lock);
  while (number < kCountMax && state.terminals[number] == nullptr) ++number;
  return number;
}

void Terminal::fill_stat(struct stat* status) const {
  fill_nameless_stat(status, {.number = kTerminalInodesFrom + number_, .uid = uid, .gid = gid}, mode, kTerminalDevice);
  status->st_rdev = kTerminalMajor << 8 | number_;
  status->st_blksize = 1024;
}

// ---- the master's side ----

SysResult<std::uint64_t> Terminal::read_output(Buffers& to, bool is_nonblocking) {
  const auto take = [&]() -> SysResult<std::uint64_t> {
    LockGuard guard(lock_);
    std::uint64_t moved = 0;
    while (to.left() > 0) {
      std::uint32_t size = 0;
      const char* const bytes = line_.output.contiguous(&size);
      size = static_cast<std::uint32_t>(std::min<std::uint64_t>(size, to.left()));
      if (size == 0) break;
      const SysResult<void> put = to.put(bytes, size);
      if (!put && moved == 0) return std::unexpected(put.error());
      if (!put) break;
      line_.output.set_tail(line_.output.tail() + size);
      moved += size;
    }
    if (moved != 0) return moved;
    return error(was_slave_closed_ ? EIO : EAGAIN);
  };
  if (to.left() == 0) return 0;
  SysResult<std::uint64_t> taken = take();
  if (!taken && value_of(taken.error()) == EAGAIN && !is_nonblocking) {
    Waiting waiting(master_queue, POLLIN);
    while (true) {
      taken = take();
      if (taken || value_of(taken.error()) != EAGAIN) break;
      TRY_VOID(waiting.sleep());
    }
  }
  if (taken) slave_queue.wake_all(kWritable);
  return taken;
}

std::uint32_t Terminal::put_input_part(const char* bytes, std::uint32_t size, SignalSet& signals) {
  std::uint32_t done = 0;
  bool has_input = false;
  {
    LockGuard guard(lock_);
    while (done < size && line_.put_input(bytes[done], signals)) ++done;
    has_input = line_.has_input(line_.settings.c_cc[VTIME] == 0 ? line_.settings.c_cc[VMIN] : 1);
  }
  // Echo is for the master.
  master_queue.wake_all(kReadable);
  if (has_input) slave_queue.wake_all(kReadable);
  if (signals != 0) slave_queue.wake_all(kWritable);
  return done;
}

SysResult<std::uint64_t> Terminal::write_input(Buffers& from, bool is_nonblocking) {
  std::uint64_t moved = 0;
  char part[kPart];
  while (from.left() > 0) {
    const auto size = static_cast<std::uint32_t>(std::min<std::uint64_t>(from.left(), kPart));
    const SysResult<void> taken = from.take(part, size);
    if (!taken) return moved != 0 ? SysResult<std::uint64_t>(moved) : std::unexpected(taken.error());
    SignalSet signals = 0;
    std::uint32_t done = put_input_part(part, size, signals);
    if (done < size && !is_nonblocking) {
      Waiting waiting(master_queue, POLLOUT);
      while (true) {
        done += put_input_part(part + done, size - done, signals);
        if (done == size) break;
        const SysResult<void> slept = waiting.sleep();
        if (slept) continue;
        signal_foreground(signals);
        return moved + done != 0 ? SysResult<std::uint64_t>(moved + done) : std::unexpected(slept.error());
      }
    }
    moved += done;
    signal_foreground(signals);
    if (done < size) break;
  }
  if (moved == 0 && from.left() > 0) return error(EAGAIN);
  return moved;
}

Events Terminal::master_ready() {
  LockGuard guard(lock_);
  Events events = kWritable;
  if (line_.output.used() > 0) events |= kReadable;
  if (was_slave_closed_) events |= POLLHUP;
  return events;
}

void Terminal::close_master() {
  {
    TerminalState& state = terminal_state();
    LockGuard guard(state.lock);
    state.terminals[number_] = nullptr;
  }
  {
    LockGuard guard(lock_);
    is_master_closed_ = true;
  }
  LockGuard tasks(tasks_lock());
  hang_up();
}

// ---- the slave's side ----

SysResult<std::uint32_t> Terminal::open_slave() {
  LockGuard guard(lock_);
  if (is_locked.load() || is_master_closed_) return error(EIO);
  was_slave_closed_ = false;
  ++slave_count_;
  return generation_;
}

void Terminal::close_slave(std::uint32_t generation) {
  {
    LockGuard guard(lock_);
    if (generation != generation_ || --slave_count_ != 0) return;
    was_slave_closed_ = true;
  }
  master_queue.wake_all(kReadable | POLLHUP);
}

bool Terminal::is_hung_up(std::uint32_t generation) {
  LockGuard guard(lock_);
  return is_master_closed_ || generation != generation_;
}

SysResult<std::uint64_t> Terminal::copy_input(Buffers& to, bool& is_end) {
  std::uint64_t moved = 0;
  char part[kPart];
  is_end = false;
  while (to.left() > 0 && !is_end) {
    const auto room = static_cast<std::uint32_t>(std::min<std::uint64_t>(to.left(), kPart));
    std::uint32_t size = 0;
    {
      LockGuard guard(lock_);
      size = line_.take_input(part, room, is_end);
    }
    if (size == 0) break;
    TRY_VOID(to.put(part, size));
    moved += size;
  }
  if (moved != 0 || is_end) master_queue.wake_all(kWritable);
  return moved;
}

SysResult<std::uint64_t> Terminal::read_canonical(Buffers& to, bool is_nonblocking, std::uint32_t generation) {
  Waiting waiting(slave_queue, POLLIN);
  while (true) {
    bool has_line = false;
    bool is_canonical = true;
    {
      LockGuard guard(lock_);
      if (is_master_closed_ || generation != generation_) return 0;
      is_canonical = line_.is_canonical();
      has_line = line_.has_input(1);
    }
    if (!is_canonical) return read_raw(to, is_nonblocking, generation);
    bool is_end = false;
    if (has_line) {
      const std::uint64_t moved = TRY(copy_input(to, is_end));
      // Another reader may have been faster.
      if (moved != 0 || is_end) return moved;
      continue;
    }
    if (is_nonblocking) return error(EAGAIN);
    TRY_VOID(waiting.sleep());
  }
}

SysResult<std::uint64_t> Terminal::read_raw(Buffers& to, bool is_nonblocking, std::uint32_t generation) {
  Waiting waiting(slave_queue, POLLIN);
  std::uint64_t moved = 0;
  Deadline deadline = kNever;
  bool is_first = true;
  while (true) {
    std::uint32_t least = 0;
    std::uint64_t time = 0;
    {
      LockGuard guard(lock_);
      if (is_master_closed_ || generation != generation_) return moved;
      least = line_.settings.c_cc[VMIN];
      time = line_.settings.c_cc[VTIME] * kTenth;
    }
    bool is_end = false;
    const std::uint64_t part = TRY(copy_input(to, is_end));
    moved += part;
    if (to.left() == 0 || moved >= std::max<std::uint64_t>(least, 1)) return moved;
    if (is_nonblocking) return moved != 0 ? SysResult<std::uint64_t>(moved) : error(EAGAIN);
    if (least == 0 && time == 0) return moved;
    // With a least count the time runs from the last character on, without one from the call.
    if (time != 0 && (least == 0 ? is_first : part != 0)) deadline = now_ns() + time;
    is_first = false;
    const SysResult<void> slept = waiting.sleep(deadline);
    if (slept) continue;
    if (moved != 0 || value_of(slept.error()) == ETIMEDOUT) return moved;
    return std::unexpected(slept.error());
  }
}

SysResult<std::uint64_t> Terminal::read_input(Buffers& to, bool is_nonblocking, std::uint32_t generation) {
  if (to.left() == 0) return 0;
  if (is_hung_up(generation)) return 0;
  TRY_VOID(check_foreground(SIGTTIN));
  bool is_canonical = false;
  {
    LockGuard guard(lock_);
    is_canonical = line_.is_canonical();
  }
  return is_canonical ? read_canonical(to, is_nonblocking, generation) : read_raw(to, is_nonblocking, generation);
}

std::uint32_t Terminal::put_part(const char* bytes, std::uint32_t size) {
  std::uint32_t done = 0;
  {
    LockGuard guard(lock_);
    if (!line_.is_output_stopped) {
      while (done < size && line_.put_output(bytes[done])) ++done;
    }
  }
  if (done != 0) master_queue.wake_all(kReadable);
  return done;
}

SysResult<std::uint64_t> Terminal::write_output(Buffers& from, bool is_nonblocking, std::uint32_t generation) {
  bool stops = false;
  {
    LockGuard guard(lock_);
    stops = (line_.settings.c_lflag & TOSTOP) != 0;
  }
  if (stops) TRY_VOID(check_foreground(SIGTTOU));
  std::uint64_t moved = 0;
  char part[kPart];
  while (from.left() > 0) {
    if (is_hung_up(generation)) return moved != 0 ? SysResult<std::uint64_t>(moved) : error(EIO);
    const auto size = static_cast<std::uint32_t>(std::min<std::uint64_t>(from.left(), kPart));
    const SysResult<void> taken = from.take(part, size);
    if (!taken) return moved != 0 ? SysResult<std::uint64_t>(moved) : std::unexpected(taken.error());
    std::uint32_t done = put_part(part, size);
    SysResult<void> slept;
    if (done < size && !is_nonblocking) {
      Waiting waiting(slave_queue, POLLOUT);
      while (slept && !is_hung_up(generation)) {
        done += put_part(part + done, size - done);
        if (done == size) break;
        slept = waiting.sleep();
      }
    }
    moved += done;
    if (done == size) continue;
    if (moved != 0) return moved;
    if (!slept) return std::unexpected(slept.error());
    return error(is_nonblocking ? EAGAIN : EIO);
  }
  return moved;
}

Events Terminal::slave_ready(std::uint32_t generation) {
  LockGuard guard(lock_);
  if (is_master_closed_ || generation != generation_) return kReadable | kWritable | POLLHUP | POLLERR;
  Events events = 0;
  if (line_.has_input(line_.settings.c_cc[VTIME] == 0 ? line_.settings.c_cc[VMIN] : 1)) events |= kReadable;
  if (line_.output.room() >= kPart && !line_.is_output_stopped) events |= kWritable;
  return events;
}

}  // namespace belljar::kernel
