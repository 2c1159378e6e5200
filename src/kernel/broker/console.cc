#include "kernel/broker/console.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "kernel/arena/roots.h"
#include "kernel/base/text.h"
#include "kernel/broker/broker_client.h"
#include "kernel/host/calls.h"
#include "kernel/mm/user_memory.h"
#include "kernel/task/process.h"

namespace belljar::kernel {

class ConsoleState {
 public:
  struct Side {
    Lock lock{LockRank::object};
    WaitQueue queue;
  };
  Side sides[shm::kStreams];
};

namespace {

constexpr std::uint32_t kPipeMode = S_IFIFO | 0600;
constexpr std::uint32_t kAtomicSize = PIPE_BUF;

std::uint32_t* raw(std::atomic<std::uint32_t>& word) {
  return reinterpret_cast<std::uint32_t*>(&word);
}

void wake_broker_side(std::atomic<std::uint32_t>& waits, std::atomic<std::uint32_t>& word) {
  if (waits.load() != 0) host::futex(raw(word), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

class ConsoleFile : public File {
 public:
  explicit ConsoleFile(shm::StreamIndex index) : index_(index) {}

  WaitQueue* queue() override { return &side().queue; }

  SysResult<void> stat(struct stat* status) override {
    *status = {};
    const Credentials& who = current().credentials;
    status->st_mode = kPipeMode;
    status->st_ino = 1 + index_;
    status->st_nlink = 1;
    status->st_uid = who.uid;
    status->st_gid = who.gid;
    status->st_blksize = kPageSize;
    return {};
  }

  std::size_t describe(char* text, std::size_t size) const override {
    TextWriter writer(text, size);
    (writer << "pipe:[").number(1 + index_) << ']';
    return writer.text().size();
  }

  SysResult<Ref<File>> reopen(std::uint32_t) override {
    Ref<File> file = open_console(index_);
    if (!file) return error(ENOMEM);
    return file;
  }

  SysResult<std::uint64_t> ioctl(std::uint32_t request, std::uint64_t argument) override {
    if (request != FIONREAD) return error(ENOTTY);
    TRY_VOID(copy_out(argument, static_cast<int>(stream().written.load() - stream().taken.load())));
    return 0ULL;
  }

 protected:
  ConsoleState::Side& side() { return arena_roots().console->sides[index_]; }
  shm::Stream& stream() { return shared_with_broker().streams[index_]; }

 private:
  shm::StreamIndex index_;
};

class ConsoleInput final : public ConsoleFile {
 public:
  using ConsoleFile::ConsoleFile;

  Events ready() override {
    shm::Stream& from = stream();
    from.taker_waits.store(1);  // before the look, so that what comes after it is told
    if (from.written.load() != from.taken.load()) return POLLIN | POLLRDNORM;
    return from.is_ended.load() != 0 ? POLLHUP : 0;
  }

  SysResult<std::uint64_t> read(Buffers& to, std::uint64_t*) override {
    if (to.left() == 0) return 0ULL;
    Waiting waiting(side().queue, POLLIN);
    while (true) {
      if (const std::uint64_t count = TRY(take(to)); count > 0) return count;
      if (stream().is_ended.load() != 0 && stream().written.load() == stream().taken.load()) return 0ULL;
      if (is_nonblocking()) return error(EAGAIN);
      if ((ready() & POLLIN) == 0 && stream().is_ended.load() == 0) TRY_VOID(waiting.sleep());
    }
  }

 private:
  SysResult<std::uint64_t> take(Buffers& to) {
    LockGuard guard(side().lock);
    shm::Stream& from = stream();
    const std::uint32_t taken = from.taken.load();
    std::uint64_t count = from.written.load() - taken;
    if (count > to.left()) count = to.left();
    for (std::uint64_t done = 0; done < count;) {
      const std::uint64_t at = (taken + done) % shm::Stream::kSize;
      const std::uint64_t part = count - done < shm::Stream::kSize - at ? count - done : shm::Stream::kSize - at;
      TRY_VOID(to.put(from.data + at, part));
      done += part;
    }
    if (count == 0) return 0ULL;
    from.taken.store(taken + static_cast<std::uint32_t>(count));
    wake_broker_side(from.writer_waits, from.taken);
    return count;
  }
};

class ConsoleOutput final : public ConsoleFile {
 public:
  using ConsoleFile::ConsoleFile;

  Events ready() override {
    shm::Stream& to = stream();
    to.writer_waits.store(1);
    if (to.is_ended.load() != 0) return POLLERR;
    return room(to) >= kAtomicSize ? POLLOUT | POLLWRNORM : 0;
  }

  SysResult<std::uint64_t> write(Buffers& from, std::uint64_t*) override {
    std::uint64_t done = 0;
    Waiting waiting(side().queue, POLLOUT);
    while (from.left() > 0) {
      if (stream().is_ended.load() != 0) {
        if (done > 0) return done;
        raise_signal(SIGPIPE);
        return error(EPIPE);
      }
      const auto count = put(from);
      if (!count) return done > 0 ? SysResult<std::uint64_t>(done) : count;
      done += *count;
      if (*count > 0) continue;
      if (is_nonblocking()) return done > 0 ? SysResult<std::uint64_t>(done) : error(EAGAIN);
      if ((ready() & (POLLOUT | POLLERR)) != 0) continue;
      if (const auto slept = waiting.sleep(); !slept) {
        return done > 0 ? SysResult<std::uint64_t>(done) : std::unexpected(slept.error());
      }
    }
    return done;
  }

 private:
  static std::uint32_t room(const shm::Stream& to) {
    return shm::Stream::kSize - (to.written.load() - to.taken.load());
  }

  SysResult<std::uint64_t> put(Buffers& from) {
    LockGuard guard(side().lock);
    shm::Stream& to = stream();
    const std::uint32_t written = to.written.load();
    std::uint64_t count = room(to);
    // Up to PIPE_BUF bytes go out as one (pipe(7)).
    if (count < from.left() && from.left() <= kAtomicSize) return 0ULL;
    if (count > from.left()) count = from.left();
    for (std::uint64_t done = 0; done < count;) {
      const std::uint64_t at = (written + done) % shm::Stream::kSize;
      const std::uint64_t part = count - done < shm::Stream::kSize - at ? count - done : shm::Stream::kSize - at;
      TRY_VOID(from.take(to.data + at, part));
      done += part;
    }
    if (count == 0) return 0ULL;
    to.written.store(written + static_cast<std::uint32_t>(count));
    wake_broker_side(to.taker_waits, to.written);
    return count;
  }
};

}  // namespace

void make_console() {
  arena_roots().console = make_object<ConsoleState>();
}

Ref<File> open_console(shm::StreamIndex index) {
  Ref<File> file;
  if (index == shm::kStdin) {
    file = make_ref<ConsoleInput>(index);
  } else {
    file = make_ref<ConsoleOutput>(index);
  }
  if (file) file->set_flags(index == shm::kStdin ? O_RDONLY : O_WRONLY);
  return file;
}

void wake_console_waiters() {
  for (ConsoleState::Side& side : arena_roots().console->sides) side.queue.wake_all();
}

}  // namespace belljar::kernel
